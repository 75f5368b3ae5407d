/** The report of a run folder: results.json, report.html and the table of arms, all from the store. */
import { basename, join, resolve } from 'node:path';
import { UserError } from '../errors.js';
import { inBand, summariseEvaluation, topicShares } from '../metrics/frontier.js';
import type { Generation } from '../metrics/frontier.js';
import { mean } from '../metrics/student.js';
import { taskKey } from '../metrics/near-duplicates.js';
import { writeReport } from '../report/html.js';
import type { ReportData, SampleTask } from '../report/report-data.js';
import { armResult, writeResults } from '../report/results.js';
import type {
  ArmResult,
  ArmTraining,
  Results,
  TrainingEnd,
  TrainingStep,
  UnansweredCounts,
} from '../report/results.js';
import { armWarnings } from '../report/warnings.js';
import { sumUsage } from '../solver/usage.js';
import type { Phase, StepRow } from '../store/rows.js';
import { RunStore } from '../store/store.js';
import { isTrained, needsLabels } from './arm-config.js';
import type { Config } from './config.js';
import { armGenerations, measuredInStep } from './evaluate.js';
import type { StoredEvaluation } from './evaluate.js';
import { armDiversities, ratesByType, taskText } from './diversity.js';
import { outcomesInWords } from './invalid-outcomes.js';
import { minedBy } from './mining.js';
import { probeCards, probeReports, probeWarnings } from './probe-report.js';
import { accountOf } from './solver-account.js';
import { trainingEnd } from './training-end.js';

/** Sample tasks shown of each arm. */
const SAMPLES = 12;

/** Write `results.json` and `report.html` of a run folder. @throws UserError when no arm has been evaluated. */
export function report(folder: string): Results {
  const store = RunStore.read(folder, { whole: true });
  try {
    const run = store.run();
    if (!run) throw new UserError(`${folder} holds no run yet: start one with 'propel run'`);
    const config = { ...run.config, seed: run.seed } as unknown as Config;
    const evaluated = Object.keys(config.arms).filter((arm) => store.phaseFinished('evaluate', arm));
    if (!evaluated.length) throw new UserError(`${folder}: no arm has been evaluated yet: run 'propel evaluate'`);
    const account = accountOf({ config, store });
    const arms = armResults({ config, store }, evaluated);
    const results: Results = {
      seed: run.seed,
      versions: run.versions,
      config: run.config,
      topicRules: (run.config['topicRules'] as { readonly version: string }).version,
      ...(account && { solverAccount: account }),
      warnings: [
        ...probeWarnings(probeCards(store)),
        ...arms.flatMap((arm) => armWarnings(arm, outcomesInWords(store.tasks({ phase: 'evaluate', arm: arm.name })))),
      ],
      arms,
      curves: armTraining({ config, store }, evaluated),
      probes: probeReports(store),
    };
    writeResults(join(folder, 'results.json'), results);
    writeReport(
      join(folder, 'report.html'),
      reportData({ config, store }, basename(resolve(folder)), results, evaluated),
    );
    return results;
  } finally {
    store.close();
  }
}

interface Source {
  readonly config: Config;
  readonly store: RunStore;
}

function armResults(source: Source, arms: readonly string[]): ArmResult[] {
  const { config, store } = source;
  const generations = arms.map((arm) => armGenerations(source, arm));
  const diversities = armDiversities(store, arms);
  const evaluations = store.evaluations();
  return arms.map((arm, i) => {
    const settings = config.arms[arm]!;
    const seconds = (phase: Phase, of: string) => ({ [phase]: store.secondsOf(phase, of) });
    const stored = evaluations.get(arm) as unknown as StoredEvaluation;
    const mined = minedBy(store, arm, settings);
    const training = trainingEnd(source, arm);
    const steps = store.steps(arm);
    return armResult(summariseEvaluation(generations[i]!, config.band, { diversityTexts: diversities[i]!.texts }), {
      name: arm,
      seed: config.seed,
      training,
      seenBefore: seenBefore(source, arm, generations[i]!),
      diversity: diversities[i]!,
      byType: ratesByType(generations[i]!, config.domain.types, config.band),
      klPerSequence: klOf(steps, training),
      clippedShare: meanClipped(steps),
      claimedInBand: stored.claimedInBand,
      measuredInBand: stored.measuredInBand,
      solverTrials: {
        offline: needsLabels(settings) ? store.countTrials('label') : 0,
        inLoop: store.countTrials('train-generator', arm),
      },
      ...(config.solver.endpoint !== null && { unanswered: unansweredBy(source, arm) }),
      ...(mined && { mined }),
      seconds: {
        ...(needsLabels(settings) ? seconds('label', '') : {}),
        ...(settings.reward === 'probe' ? seconds('train-probe', '') : {}),
        ...(isTrained(settings) ? seconds('train-generator', arm) : {}),
        ...seconds('evaluate', arm),
      },
    });
  });
}

/** Every trained arm's steps, its timings left out. */
function armTraining(source: Source, arms: readonly string[]): ArmTraining[] {
  return arms
    .map((arm) => ({ arm, steps: source.store.steps(arm).map((row) => trainingStep(source, row)) }))
    .filter(({ steps }) => steps.length > 0);
}

function trainingStep(source: Source, row: StepRow): TrainingStep {
  return {
    step: row.step,
    rewardMean: row.rewardMean,
    rewardSd: row.rewardSd,
    validity: row.validity,
    klPerSequence: row.klPerSequence,
    gradientNorm: row.gradientNorm,
    loss: row.loss,
    entropy: row.entropy,
    claimedInBand: row.claimedInBand,
    clippedShare: row.clippedShare,
    solverTrials: row.solverTrials,
    measured: measuredInStep(source, row),
  };
}

/** Null without steps that kept it. */
function meanClipped(steps: readonly StepRow[]): number | null {
  const kept = steps.flatMap(({ clippedShare }) => clippedShare ?? []);
  return kept.length > 0 ? mean(kept) : null;
}

/** On the samples of the step after the checkpoint that is measured; of the last one, on those of its own step. */
function klOf(steps: readonly StepRow[], training: TrainingEnd | null): number | null {
  const after = steps.find(({ step }) => step - 1 === training?.evaluatedStep);
  return (after ?? steps.at(-1))?.klPerSequence ?? null;
}

function unansweredBy({ store }: Source, arm: string): UnansweredCounts {
  const { cutOff, empty, refused } = sumUsage(store.solverUsage({ phase: 'evaluate', arm }));
  return { cutOff, empty, refused };
}

/** How many of an arm's fresh generations are tasks that the probe was trained on or that the arm's own training has rewarded. */
function seenBefore(
  { config, store }: Source,
  arm: string,
  generations: readonly Generation[],
): ArmResult['seenBefore'] {
  const earlier = [
    ...store.tasks({ phase: 'label', arm: '', valid: true }),
    ...store.tasks({ phase: 'train-generator', arm, valid: true }),
  ];
  const known = new Set(earlier.map((row) => taskKey(taskText(row))));
  const seen = generations.filter((generation) => generation.valid && known.has(taskKey(generation)));
  const frontier = seen.filter(({ passes }) => passes !== null && inBand(passes, config.band));
  return { valid: seen.length, frontier: frontier.length };
}

function reportData(source: Source, title: string, results: Results, arms: readonly string[]): ReportData {
  const { config, store } = source;
  return {
    title,
    band: config.band,
    results,
    topics: arms.map((arm) => ({
      arm,
      shares: topicShares(store.tasks({ phase: 'evaluate', arm, valid: true }).map(({ topic }) => topic)),
    })),
    samples: arms.map((arm) => ({ arm, tasks: sampleTasks(source, arm) })),
  };
}

function sampleTasks({ store }: Source, arm: string): SampleTask[] {
  const passes = new Map(store.labelledTasks({ phase: 'evaluate', arm }).map((task) => [task.id, task.passes]));
  return store
    .tasks({ phase: 'evaluate', arm })
    .slice(0, SAMPLES)
    .map((row) => ({
      ...taskText(row),
      valid: row.valid,
      outcome: row.outcome,
      output: row.output,
      topic: row.topic,
      passes: passes.get(row.id) ?? null,
    }));
}
