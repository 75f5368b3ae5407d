/** Phase 4, evaluate: fresh generations of every arm, re-scored by the solver itself. A probe's score is never a result. */
import type { CodeTask } from '../domain/azr/index.js';
import type { Adapter } from '../lm/adapter.js';
import { inBand, summariseEvaluation } from '../metrics/frontier.js';
import type { Generation } from '../metrics/frontier.js';
import { wilsonInterval } from '../metrics/interval.js';
import type { MeasuredRate } from '../report/results.js';
import type { BatchKey, LabelRow, StepRow, TaskRow } from '../store/rows.js';
import { taskId } from '../store/rows.js';
import { attemptTasks, insertAttempted } from './attempts.js';
import { requireTrained, trainedAdapter } from './checkpoints.js';
import { openArmProbes, scoreTasks } from './probe-scores.js';
import { taskText } from './diversity.js';
import { ungradedNote } from './progress.js';
import { outcomesInWords } from './invalid-outcomes.js';
import { propose } from './propose.js';
import type { Workspace } from './workspace.js';

const PHASE = 'evaluate';

/** What is stored of an arm's evaluation beside its rows. */
export interface StoredEvaluation {
  /** Mean probability of the band by the arm's probes (the least sure of an ensemble) over the valid tasks; null without a probe. */
  readonly claimedInBand: number | null;
  /** In band / valid by the solver, over the same tasks. */
  readonly measuredInBand: number;
}

/** Evaluate every arm that is not yet evaluated. @throws UserError, before any work, when one is not trained. */
export async function evaluate(workspace: Workspace): Promise<void> {
  const { config, store } = workspace;
  const pending = Object.keys(config.arms).filter((arm) => !store.phaseFinished(PHASE, arm));
  for (const arm of pending) requireTrained(workspace, arm);
  // An endpoint that does not answer is told before any work.
  if (pending.length > 0) await workspace.solver();
  for (const arm of pending) {
    const adapter = await trainedAdapter(workspace, arm);
    await evaluateArm(workspace, arm, adapter);
    await rescoreSteps(workspace, arm);
    const started = performance.now();
    const measured = await measure(workspace, arm);
    store.finishPhase(PHASE, arm, (performance.now() - started) / 1000, () =>
      store.saveEvaluation(arm, { ...measured }),
    );
  }
}

async function evaluateArm(workspace: Workspace, arm: string, adapter: Adapter | null): Promise<void> {
  const { config, store } = workspace;
  const { generations, batch: size } = config.evaluate;
  const progress = workspace.progress(`evaluate ${arm}`);
  const batches = Math.ceil(generations / size);
  for (let batch = store.batches(PHASE, arm).length; batch < batches; batch++) {
    workspace.checkpoint();
    progress.update(batch * size, generations);
    const started = performance.now();
    const key = { phase: PHASE, arm, batch } as const;
    const proposals = await propose(workspace, {
      key,
      policy: await workspace.policy(arm),
      size: Math.min(size, generations - batch * size),
      adapter,
      temperature: config.policy.temperature,
      earlier: null,
    });
    const valid = proposals.flatMap(({ row, task }) => (task ? [{ id: row.id, task }] : []));
    const attempted = await attemptTasks(workspace, valid, {
      key,
      purpose: `attempt evaluate ${arm}`,
      index: batch,
      split: PHASE,
    });
    store.commitBatch(key, (performance.now() - started) / 1000, () => {
      store.insertTasks(proposals.map(({ row }) => row));
      insertAttempted(store, key, attempted);
    });
  }
  const summary = summariseEvaluation(armGenerations(workspace, arm), config.band);
  progress.update(generations, generations);
  const { n, frontier, ungraded } = summary;
  const none = summary.valid === 0 ? `, none valid: ${outcomesInWords(store.tasks({ phase: PHASE, arm }))}` : '';
  progress.done(`${frontier} of ${n - ungraded} in band${none}${ungradedNote(ungraded)}`);
}

/** An arm's fresh generations with their pass counts, in the order they were written. */
export function armGenerations({ store }: Pick<Workspace, 'store'>, arm: string): Generation[] {
  const passes = new Map(store.labelledTasks({ phase: PHASE, arm }).map((task) => [task.id, task.passes]));
  return store.tasks({ phase: PHASE, arm }).map((row) => ({
    ...taskText(row),
    valid: row.valid,
    passes: passes.get(row.id) ?? null,
    topic: row.topic,
  }));
}

async function measure(workspace: Workspace, arm: string): Promise<StoredEvaluation> {
  const { config, store } = workspace;
  const labelled = store.labelledTasks({ phase: PHASE, arm });
  const measuredInBand =
    labelled.filter(({ passes }) => inBand(passes, config.band)).length / Math.max(1, labelled.length);
  const probes = await openArmProbes(workspace, arm);
  if (!probes.length || !labelled.length) return { claimedInBand: null, measuredInBand };
  const { claimed } = await scoreTasks(
    workspace,
    probes,
    labelled.map((task) => task.rendered!),
  );
  return { claimedInBand: claimed.reduce((a, b) => a + b, 0) / claimed.length, measuredInBand };
}

/** The arm under which re-scored tasks of a training step stand in the evaluate phase. */
export const rescoredArm = (arm: string, step: number): string => `${arm}/step-${step}`;

/** Training steps whose tasks are re-scored for the report: the first, and every n-th. */
export function rescoredSteps(steps: number, every: number): number[] {
  if (!every) return [];
  return Array.from({ length: steps }, (_, i) => i + 1).filter((step) => step === 1 || step % every === 0);
}

/**
 * After training, let the solver attempt what some steps were rewarded for: claimed against measured, over the course of training. A step
 * that the solver has measured itself is left alone.
 */
async function rescoreSteps(workspace: Workspace, arm: string): Promise<void> {
  const { config, store } = workspace;
  const trained = store.steps(arm);
  const steps = rescoredSteps(trained.length, config.evaluate.rescoreEvery).filter(
    (step) => trained[step - 1]!.measuredInBand === null,
  );
  if (!steps.length) return;
  const progress = workspace.progress(`re-score ${arm}`);
  for (const [i, step] of steps.entries()) {
    workspace.checkpoint();
    progress.update(i, steps.length);
    const key: BatchKey = { phase: PHASE, arm: rescoredArm(arm, step), batch: 0 };
    if (store.hasBatch(key)) continue;
    const started = performance.now();
    const rows: TaskRow[] = store
      .tasks({ phase: 'train-generator', arm, batch: step, valid: true })
      .map((row) => ({ ...row, ...key, id: taskId(key, row.item) }));
    const tasks = rows.map((row) => ({ id: row.id, task: row.task as unknown as CodeTask }));
    const attempted = await attemptTasks(workspace, tasks, {
      key,
      purpose: `attempt re-score ${arm}`,
      index: step,
      split: 're-score',
    });
    store.commitBatch(key, (performance.now() - started) / 1000, () => {
      store.insertTasks(rows);
      insertAttempted(store, key, attempted);
    });
  }
  progress.update(steps.length, steps.length);
  const lost = steps.reduce((sum, step) => sum + store.countUngraded(PHASE, rescoredArm(arm, step)), 0);
  progress.done(`${steps.length} steps${ungradedNote(lost)}`);
}

/** What the solver found of a training step's samples, in the loop or re-scored; null where it was not asked. */
export function measuredInStep(
  { config, store }: Pick<Workspace, 'config' | 'store'>,
  { arm, step, measuredInBand }: StepRow,
): MeasuredRate | null {
  const samples = { phase: 'train-generator', arm, batch: step } as const;
  const labels: Pick<LabelRow, 'passes'>[] = store.labelledTasks(
    measuredInBand === null ? { phase: PHASE, arm: rescoredArm(arm, step) } : samples,
  );
  if (!labels.length) return null;
  const inBandCount = labels.filter(({ passes }) => inBand(passes, config.band)).length;
  const invalid = store.countTasks({ ...samples, valid: false });
  const of = labels.length + invalid;
  return { inBand: inBandCount, of, rate: inBandCount / of, interval: wilsonInterval(inBandCount, of) };
}
