/** How good band logits are on tasks that were not used to fit or choose them. */
import { bootstrap, pairedBootstrap } from '../metrics/bootstrap.js';
import type { BootstrapResult, Statistic } from '../metrics/bootstrap.js';
import type { Interval } from '../metrics/interval.js';
import {
  auroc,
  averagePrecision,
  brierScore,
  expectedCalibrationError,
  reliabilityBins,
} from '../metrics/probe-metrics.js';
import type { ReliabilityBin } from '../metrics/probe-metrics.js';
import { bandLogLosses, bandProbabilities } from './count-head.js';

export interface Estimate {
  readonly value: number;
  /** Percentile bootstrap, 95%. */
  readonly interval: Interval;
}

export interface HeldOutMetrics {
  readonly auroc: Estimate;
  readonly averagePrecision: Estimate;
  /** Over bins of equal mass. */
  readonly calibrationError: Estimate;
  readonly brier: Estimate;
  readonly reliability: readonly ReliabilityBin[];
}

/** Bins of the calibration error and the reliability diagram. */
const BINS = 10;
const RESAMPLES = 1000;

export function heldOutMetrics(
  inBand: readonly boolean[],
  logits: ArrayLike<number>,
  seed: number,
  resamples = RESAMPLES,
): HeldOutMetrics {
  const probabilities = bandProbabilities(logits);
  const estimate = (
    metric: (labels: Uint8Array, scores: Float64Array) => number,
    scores: ArrayLike<number>,
  ): Estimate => {
    const { estimate: value, interval } = bootstrap(inBand.length, resampled(metric, inBand, scores), {
      seed,
      resamples,
    });
    return { value, interval };
  };
  return {
    auroc: estimate(auroc, logits),
    averagePrecision: estimate(averagePrecision, logits),
    calibrationError: estimate((labels, p) => expectedCalibrationError(labels, p, BINS), probabilities),
    brier: estimate(brierScore, probabilities),
    reliability: reliabilityBins(inBand, probabilities, BINS),
  };
}

export interface Difference {
  readonly value: number;
  /** 95%. */
  readonly interval: Interval;
}

/** AUROC of `first` − that of `second` on the same tasks, by a paired bootstrap. */
export function aurocDifference(
  inBand: readonly boolean[],
  first: ArrayLike<number>,
  second: ArrayLike<number>,
  seed: number,
): Difference {
  const [one, other] = [resampled(auroc, inBand, first), resampled(auroc, inBand, second)];
  const { estimate, interval } = pairedBootstrap(inBand.length, one, other, { seed, resamples: RESAMPLES });
  return { value: estimate, interval };
}

/** Mean log loss of `first` − that of `second` on the same tasks; the interval is a normal one over the tasks' differences. */
export function lossDifference(
  inBand: readonly boolean[],
  first: ArrayLike<number>,
  second: ArrayLike<number>,
): Difference {
  const subtracted = bandLogLosses(inBand, second);
  const differences = bandLogLosses(inBand, first).map((loss, i) => loss - subtracted[i]!);
  const mean = differences.reduce((sum, each) => sum + each, 0) / differences.length;
  const variance = differences.reduce((sum, each) => sum + (each - mean) ** 2, 0) / differences.length;
  const margin = 1.96 * Math.sqrt(variance / differences.length);
  return { value: mean, interval: [mean - margin, mean + margin] };
}

/** A task with the logits that fits on the other folds gave it. */
export interface OutOfFoldRow {
  readonly taskId: string;
  readonly inBand: boolean;
  readonly probeLogit: number;
  readonly lengthLogit: number;
  readonly ngramLogit: number;
}

export interface BaselineComparison {
  /** Mean AUROC over the runs. */
  readonly probe: number;
  readonly length: number;
  readonly ngram: number;
  /** Probe − baseline, by a paired bootstrap that keeps every run's size; `aboveZero` is the share of resamples where the probe wins. */
  readonly overLength: BootstrapResult;
  readonly overNgram: BootstrapResult;
}

/**
 * Compare a probe with its baselines on out-of-fold predictions, pooled over runs (one list a run, e.g. of another seed). The statistic is
 * the mean of the runs' AUROCs, so that a run's logits are only ever compared with its own.
 */
export function compareWithBaselines(runs: readonly (readonly OutOfFoldRow[])[], seed: number): BaselineComparison {
  const rows = runs.flat();
  const strata = runs.flatMap((run, r) => run.map(() => r));
  const meanAuroc = (logit: (row: OutOfFoldRow) => number): Statistic => {
    const [labels, logits] = [rows.map((row) => row.inBand), rows.map(logit)];
    const statistic = resampled(auroc, labels, logits);
    return (indices) => {
      let sum = 0;
      let from = 0;
      // Resamples come stratum by stratum, each of its run's size.
      for (const run of runs) sum += statistic(indices.subarray(from, (from += run.length)));
      return sum / runs.length;
    };
  };
  const all = Int32Array.from(rows, (_, i) => i);
  const probe = meanAuroc((row) => row.probeLogit);
  const length = meanAuroc((row) => row.lengthLogit);
  const ngram = meanAuroc((row) => row.ngramLogit);
  const over = (baseline: Statistic) =>
    pairedBootstrap(rows.length, probe, baseline, { seed, resamples: RESAMPLES, strata });
  return {
    probe: probe(all),
    length: length(all),
    ngram: ngram(all),
    overLength: over(length),
    overNgram: over(ngram),
  };
}

/**
 * A metric of resampled rows, which it is given by ascending score: an order that costs a metric's own sort next to nothing. The metrics do
 * not depend on the rows' order.
 */
function resampled(
  metric: (labels: Uint8Array, scores: Float64Array) => number,
  labels: readonly boolean[],
  scores: ArrayLike<number>,
): Statistic {
  const order = labels.map((_, row) => row).sort((a, b) => scores[a]! - scores[b]!);
  const rankOf = new Int32Array(order.length);
  order.forEach((row, rank) => (rankOf[row] = rank));
  const sortedLabels = Uint8Array.from(order, (row) => +labels[row]!);
  const sortedScores = Float64Array.from(order, (row) => scores[row]!);
  return (indices) => {
    const ranks = indices.map((row) => rankOf[row]!).sort();
    const drawnLabels = new Uint8Array(ranks.length);
    const drawnScores = new Float64Array(ranks.length);
    for (let i = 0; i < ranks.length; i++) {
      drawnLabels[i] = sortedLabels[ranks[i]!]!;
      drawnScores[i] = sortedScores[ranks[i]!]!;
    }
    return metric(drawnLabels, drawnScores);
  };
}
