/**
 * Adversarial probe co-evolution: every so many steps the solver attempts some of the tasks that the arm's probes score highest, and an
 * auxiliary probe, fitted on the labels and all that was mined so far, joins the minimum that rewards the arm.
 *
 * Candidates are the distinct valid tasks of the steps since the last mining; the `share` of them with the highest reward by the probes
 * (before clip and crowding) are those scored as useful, and `mine` of these are drawn by seed. Out of band, they are false positives.
 */
import { join } from 'node:path';
import type { CodeTask } from '../domain/azr/index.js';
import { deriveSeed, seededRandom } from '../metrics/random.js';
import { countFalsePositives, fitAuxiliaryProbe } from '../probe/auxiliary.js';
import { distinctTexts } from '../probe/labels.js';
import { writeProbeNumbers } from '../probe/probe-file.js';
import { probeReward } from '../reward/probe-reward.js';
import type { RunStore } from '../store/store.js';
import type { AdversarialSettings, Arm } from './arm-config.js';
import { attemptTasks, insertAttempted } from './attempts.js';
import { auxiliaryProbePath } from './checkpoints.js';
import { ungradedNote } from './progress.js';
import { openArmProbes, openMembers } from './probe-scores.js';
import type { Workspace } from './workspace.js';

const PHASE = 'train-generator';

/** Whether an arm mines after a step, should another follow. */
export function isMiningStep({ every }: AdversarialSettings, step: number): boolean {
  return step > 0 && step % every === 0;
}

/**
 * Mine after a step whose checkpoint is written, unless it is not due or done already. The probe's file is written first, then in one
 * transaction all rows: broken off at any moment, it is done again from the start or not at all.
 * @returns whether the arm has another auxiliary probe now
 */
export async function mineWhenDue(
  workspace: Workspace,
  arm: string,
  settings: AdversarialSettings,
  step: number,
): Promise<boolean> {
  const { config, store } = workspace;
  if (!isMiningStep(settings, step) || store.minings(arm).some((mining) => mining.step === step)) return false;
  workspace.checkpoint();
  const started = performance.now();
  const progress = workspace.progress(`mine ${arm}`);
  const useful = mostUseful(await candidates(workspace, arm, settings, step), settings.share);
  const drawn = draw(useful, settings.mine, deriveSeed(config.seed, `mine ${arm}`, step));
  const key = { phase: PHASE, arm, batch: step } as const;
  const attempted = await attemptTasks(workspace, drawn, {
    key,
    purpose: `attempt mined ${arm}`,
    index: step,
    split: 'mined',
  });
  const { attempts, labels } = attempted;

  const textOf = new Map(drawn.map(({ id, text }) => [id, text]));
  const mined = labels.map(({ taskId, passes }) => ({ id: taskId, text: textOf.get(taskId)!, passes }));
  const earlier = labelledTexts(workspace, { phase: PHASE, arm, split: 'mined' });
  const [member] = await openMembers(workspace, arm);
  const auxiliary = await fitAuxiliaryProbe(
    await workspace.reference(),
    member!.probe,
    member!.card.l2,
    labelledTexts(workspace, { phase: 'label' }),
    [...earlier, ...mined],
  );

  const path = auxiliaryProbePath(arm, step);
  const sha256 = writeProbeNumbers(join(store.folder, path), auxiliary);
  const falsePositives = countFalsePositives(mined, auxiliary);
  const solverTrials = attempts.filter(({ verdict }) => verdict !== 'error').length;
  const elapsedSeconds = (performance.now() - started) / 1000;
  store.transaction(() => {
    insertAttempted(store, key, attempted);
    store.insertMining({ arm, step, mined: mined.length, falsePositives, solverTrials, path, sha256, elapsedSeconds });
  });
  progress.done(`${falsePositives} of ${mined.length} out of band${ungradedNote(drawn.length - mined.length)}`);
  return true;
}

function labelledTexts({ store }: Workspace, filter: Parameters<Workspace['store']['labelledTasks']>[0]) {
  return store.labelledTasks(filter).map(({ id, rendered, passes }) => ({ id, text: rendered!, passes }));
}

export interface MinedTotals {
  readonly tasks: number;
  readonly falsePositives: number;
}

/** What an arm has mined in all; null for one that does not. */
export function minedBy(store: RunStore, arm: string, settings: Arm): MinedTotals | null {
  if (settings.reward !== 'probe' || !settings.adversarial) return null;
  const minings = store.minings(arm);
  return {
    tasks: minings.reduce((sum, { mined }) => sum + mined, 0),
    falsePositives: minings.reduce((sum, { falsePositives }) => sum + falsePositives, 0),
  };
}

interface Candidate {
  readonly id: string;
  readonly task: CodeTask;
  readonly text: string;
  /** By the probes' minimum, neither clipped nor charged for crowding. */
  readonly reward: number;
}

/** The valid tasks since the last mining, as they were written. All were scored by the probes that the arm has now. */
async function candidates(
  workspace: Workspace,
  arm: string,
  { every }: AdversarialSettings,
  step: number,
): Promise<Candidate[]> {
  const { store } = workspace;
  const probes = await openArmProbes(workspace, arm);
  const scales = probes.map(({ probe }) => probe.scale);
  const steps = Array.from({ length: every }, (_, i) => step - every + 1 + i);
  const logitsOf = new Map(
    steps.flatMap((batch) => store.stepScores(arm, batch).map(({ taskId, logits }) => [taskId, logits] as const)),
  );
  return steps
    .flatMap((batch) => store.tasks({ phase: PHASE, arm, batch, valid: true }))
    .map(({ id, task, rendered }) => {
      const logits = probes.map(({ name }) => logitsOf.get(id)![name]!);
      return { id, task: task as unknown as CodeTask, text: rendered!, reward: probeReward(logits, scales, Infinity) };
    });
}

/** The `share` with the highest reward, rounded up, of the first task of each text; best first, equals as they were written. */
export function mostUseful<Task extends { readonly text: string; readonly reward: number }>(
  tasks: readonly Task[],
  share: number,
): Task[] {
  const distinct = distinctTexts(tasks);
  return distinct.toSorted((a, b) => b.reward - a.reward).slice(0, Math.ceil(share * distinct.length));
}

/** Up to `count` of them by seed, in their own order. */
export function draw<Task>(tasks: readonly Task[], count: number, seed: number): Task[] {
  const random = seededRandom(seed);
  return tasks
    .map((task, at) => ({ task, at, lot: random() }))
    .toSorted((a, b) => a.lot - b.lot)
    .slice(0, count)
    .toSorted((a, b) => a.at - b.at)
    .map(({ task }) => task);
}
