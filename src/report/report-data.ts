/** What the report shows, as plain values; whoever calls queries the store. */
import type { Band, TopicShare } from '../metrics/frontier.js';
import type { ReliabilityBin } from '../metrics/probe-metrics.js';
import type { StepRow } from '../store/rows.js';
import type { Results } from './results.js';

export interface ReportData {
  /** Name of the run, e.g. of its folder. */
  readonly title: string;
  readonly band: Band;
  readonly results: Results;
  /** Trained arms with their steps. */
  readonly training: readonly ArmTraining[];
  /** Topics of the valid tasks of each arm's evaluation. */
  readonly topics: readonly { readonly arm: string; readonly shares: readonly TopicShare[] }[];
  readonly probes: readonly ProbeReport[];
  readonly samples: readonly { readonly arm: string; readonly tasks: readonly SampleTask[] }[];
}

export interface ArmTraining {
  readonly arm: string;
  readonly steps: readonly Pick<
    StepRow,
    'step' | 'rewardMean' | 'validity' | 'klPerSequence' | 'clippedShare' | 'claimedInBand' | 'measuredInBand'
  >[];
}

/** A probe, or a baseline that it must beat, on held-out labels. */
export interface ProbeReport {
  readonly name: string;
  /** What it reads: layers and pooling, or what the baseline counts. */
  readonly features: string;
  readonly auroc: number;
  readonly averagePrecision: number;
  /** Expected calibration error; null for a baseline that gives no probability. */
  readonly calibrationError: number | null;
  /** Equal-mass bins on held-out labels; empty for what is not drawn. */
  readonly reliability: readonly ReliabilityBin[];
  /** What speaks against rewarding by it. */
  readonly warnings: readonly string[];
}

export interface SampleTask {
  /** What the generator was asked for. */
  readonly type: string;
  /** Program and call, or the completion that is none. */
  readonly text: string;
  readonly valid: boolean;
  /** `ok`, or why the task is not valid. */
  readonly outcome: string;
  readonly output: string | null;
  readonly topic: string;
  /** Passed attempts; null when invalid or not graded. */
  readonly passes: number | null;
}
