/** How an arm's training ended, and which checkpoint of it is measured: told by its rows, so the same while it runs, after a kill and in a report. */
import type { TrainingEnd } from '../report/results.js';
import { collapseOf, hasSignal, lastTrusted, silentSteps } from '../rl/collapse.js';
import type { Collapse, StepFigures } from '../rl/collapse.js';
import type { CheckpointRow } from '../store/rows.js';
import type { RunStore } from '../store/store.js';
import { armTrain, isTrained } from './arm-config.js';
import type { RewardedArm } from './arm-config.js';
import type { Config } from './config.js';

interface Run {
  readonly config: Pick<Config, 'arms' | 'train' | 'evaluate'>;
  readonly store: RunStore;
}

/** What shows after an arm's last step that its training has collapsed. @param ended whether no step follows */
export function collapseOfArm(run: Run, arm: string, ended: boolean): Collapse | null {
  return collapseOf(recentFigures(run, arm), armTrain(run.config.train, run.config.arms[arm]!), ended);
}

/** An arm's latest steps in a row that it could learn nothing from, as far as the stop rule looks back. */
export function silentStepsOf(run: Run, arm: string): readonly StepFigures[] {
  return silentSteps(recentFigures(run, arm));
}

function recentFigures({ config, store }: Run, arm: string): StepFigures[] {
  const settings = config.arms[arm] as RewardedArm;
  const recent = store.steps(arm).slice(-armTrain(config.train, settings).noSignalStop);
  return recent.map(({ step, klPerSequence, validity, rewardMean }) => {
    const signal = hasSignal(store.stepScores(arm, step).map(({ advantage }) => advantage));
    return { step, klPerSequence, validity, signal: signal || isEarnedInFull(settings, rewardMean) };
  });
}

/** Every sample valid and, by a reward of 0 or 1, worth the most there is: that is no collapse. */
function isEarnedInFull({ reward }: RewardedArm, rewardMean: number): boolean {
  return (reward === 'valid' || reward === 'solver') && rewardMean === 1;
}

/** Whether an arm has spent the solver trials that it may; null for one that may spend any number. */
export function spentTrials({ store }: Pick<Run, 'store'>, arm: string, settings: RewardedArm): string | null {
  if (settings.reward !== 'solver' || settings.trials === undefined) return null;
  const spent = store.countTrials('train-generator', arm);
  return spent >= settings.trials ? `${spent} of ${settings.trials} solver trials spent` : null;
}

/** Of an arm whose training has ended; null for one that is not trained. */
export function trainingEnd(run: Run, arm: string): TrainingEnd | null {
  const { config, store } = run;
  const settings = config.arms[arm]!;
  if (!isTrained(settings)) return null;
  const steps = store.steps(arm).at(-1)!.step;
  const last = store.lastCheckpoint(arm)!.step;
  const collapse = collapseOfArm(run, arm, true);
  if (collapse === null) {
    const reason = spentTrials(run, arm, settings);
    return { status: reason === null ? 'finished' : 'budget-spent', reason, steps, evaluatedStep: last };
  }
  const checkpoints = store.checkpoints(arm).map(({ step }) => step);
  const evaluatedStep = config.evaluate.checkpoint === 'last' ? last : lastTrusted(checkpoints, collapse);
  return { status: 'collapsed', reason: collapse.reason, steps, evaluatedStep };
}

/** The checkpoint of an arm that is measured, sampled and exported; null for the generator as it was before training. */
export function evaluatedCheckpoint(run: Run, arm: string): CheckpointRow | null {
  const end = trainingEnd(run, arm);
  return run.store.checkpoints(arm).find(({ step }) => step === end?.evaluatedStep) ?? null;
}
