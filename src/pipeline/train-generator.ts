/**
 * Phase 3, train-generator. One step: propose → parse and check → score → reward → advantage → update → record.
 * How an arm scores is in arm-reward.ts; but for solver-in-the-loop arms, no solver runs within a step.
 */
import { RunError, UserError } from '../errors.js';
import { initialAdapter } from '../lm/adapter.js';
import type { Adapter, AdapterLayout } from '../lm/adapter.js';
import type { LanguageModel, TrainerThread } from '../lm/language-model.js';
import { freshState } from '../lm/trainer.js';
import type { TrainerState } from '../lm/trainer.js';
import { deriveSeed } from '../metrics/random.js';
import { gate } from '../reward/gate.js';
import { percent } from '../report/format.js';
import type { TrainingEnd } from '../report/results.js';
import { ADVANTAGE_ESTIMATORS } from '../rl/advantage.js';
import { ADAPTER_FILE, dropOptimiserState, writeTrainingCheckpoint } from '../rl/checkpoint.js';
import { updatePolicy } from '../rl/policy-update.js';
import type { UpdateSettings } from '../rl/policy-update.js';
import { sha256OfFile } from '../store/files.js';
import type { StepRow, StepScoreRow } from '../store/rows.js';
import { join } from 'node:path';
import { armTrain, isTrained, needsLabels } from './arm-config.js';
import type { RewardedArm } from './arm-config.js';
import { openArmCrowding } from './arm-crowding.js';
import type { ArmCrowding } from './arm-crowding.js';
import { openArmReward } from './arm-reward.js';
import type { ArmReward } from './arm-reward.js';
import { insertAttempted } from './attempts.js';
import { checkpointedState, checkpointPath } from './checkpoints.js';
import { outcomesInWords } from './invalid-outcomes.js';
import { updateFits } from './memory-budget.js';
import { baseOf } from './model-setting.js';
import { isMiningStep, minedBy } from './mining.js';
import type { MinedTotals } from './mining.js';
import { propose } from './propose.js';
import type { Proposal, ValidProposal } from './propose.js';
import { ungradedNote } from './progress.js';
import type { Progress } from './progress.js';
import { collapseOfArm, evaluatedCheckpoint, silentStepsOf, spentTrials, trainingEnd } from './training-end.js';
import type { TrainSettings } from './train-config.js';
import type { Workspace } from './workspace.js';

const PHASE = 'train-generator';

/** Where an arm's training ended; part of `propel train-generator --json`. */
export interface TrainedArm {
  readonly arm: string;
  readonly steps: number;
  /** Of the last step. */
  readonly rewardMean: number;
  readonly validity: number;
  readonly klPerSequence: number;
  readonly claimedInBand: number | null;
  readonly measuredInBand: number | null;
  /** Graded solver attempts in the loop, or at what was mined. */
  readonly solverTrials: number;
  /** Tasks that lost attempts to failures, and so were left out of their step's update or of the mining. */
  readonly ungraded: number;
  /** Tasks mined for auxiliary probes, and how many of them were out of band; null for an arm that mines none. */
  readonly mined: MinedTotals | null;
  readonly training: TrainingEnd;
  /** Folder of the checkpoint that is measured; null for the generator as it was before training. */
  readonly checkpoint: string | null;
  readonly seconds: number;
}

/** Train every arm that has a reward and is not yet trained. @throws UserError when what its reward is learnt from is not there. */
export async function trainGenerator(workspace: Workspace): Promise<TrainedArm[]> {
  const { config, store } = workspace;
  const trained = Object.entries(config.arms).flatMap(([arm, settings]) =>
    isTrained(settings) ? [{ arm, settings }] : [],
  );
  const pending = trained.filter(({ arm }) => !store.phaseFinished(PHASE, arm));
  for (const { arm, settings } of pending) requireRewardSource(workspace, arm, settings);
  for (const { arm, settings } of pending) await trainArm(workspace, arm, settings);
  return trained.map(({ arm, settings }) => summarise(workspace, arm, settings));
}

function requireRewardSource({ store }: Workspace, arm: string, settings: RewardedArm): void {
  if (settings.reward === 'probe' && !store.phaseFinished('train-probe', '')) {
    throw new UserError(`arm ${arm} needs a probe, which is not trained yet: run 'propel train-probe' first`);
  }
  if (needsLabels(settings) && !store.phaseFinished('label', '')) {
    throw new UserError(`arm ${arm} needs labels, which are not there yet: run 'propel label' first`);
  }
}

function summarise(workspace: Workspace, arm: string, settings: RewardedArm): TrainedArm {
  const { store } = workspace;
  const checkpoint = evaluatedCheckpoint(workspace, arm);
  const { step, rewardMean, validity, klPerSequence, claimedInBand, measuredInBand } = store.steps(arm).at(-1)!;
  return {
    arm,
    steps: step,
    rewardMean,
    validity,
    klPerSequence,
    claimedInBand,
    measuredInBand,
    solverTrials: store.countTrials(PHASE, arm),
    ungraded: store.countUngraded(PHASE, arm),
    mined: minedBy(store, arm, settings),
    training: trainingEnd(workspace, arm)!,
    checkpoint: checkpoint && join(store.folder, checkpoint.path),
    seconds: store.secondsOf(PHASE, arm),
  };
}

async function trainArm(workspace: Workspace, arm: string, settings: RewardedArm): Promise<void> {
  const { config, store } = workspace;
  const train = armTrain(config.train, settings);
  const policy = await workspace.policy(arm);
  const start = await startingPoint(workspace, arm, policy, train);
  store.truncateAfter(arm, start.step);
  const context: StepContext = {
    arm,
    train,
    policy,
    layout: policy.adapter?.layout ?? train.lora,
    trainer: await policy.train(policy.adapter?.layout ?? train.lora, start),
    reward: await openArmReward(workspace, arm, settings),
    crowding: await openArmCrowding(workspace, arm, settings, start.step),
    earlier: new Set(store.tasks({ phase: PHASE, arm, valid: true }).map((row) => row.rendered!)),
  };
  const { trainer, reward } = context;
  const progress = workspace.progress(`train-generator ${arm}`);
  let last = start.step;
  let stopped = whyStopped(workspace, arm, settings);
  for (let step = start.step + 1; step <= train.steps && !stopped; step++) {
    workspace.checkpoint();
    progress.update(step - 1, train.steps);
    await reward.prepare?.(step);
    const row = await trainStep(workspace, context, step);
    stopped = whyStopped(workspace, arm, settings);
    if (step % train.checkpointEvery === 0 || step === train.steps || stopped || minesAfter(settings, step)) {
      saveCheckpoint(workspace, context, step, await trainer.state(), last);
      last = step;
    }
    report(progress, row, train, notesOn(workspace, arm));
  }
  await trainer.release();
  const mining = store.minings(arm).reduce((sum, { elapsedSeconds }) => sum + elapsedSeconds, 0);
  store.finishPhase(PHASE, arm, mining);
  progress.done(`${endOf(trainingEnd(workspace, arm)!)}${notesOn(workspace, arm)}`);
}

/** What has gone wrong in an arm's steps so far; empty when nothing has. */
function notesOn(workspace: Workspace, arm: string): string {
  const { store } = workspace;
  const silent = silentStepsOf(workspace, arm);
  const last = silent.at(-1);
  const written = last === undefined ? '' : outcomesInWords(store.tasks({ phase: PHASE, arm, batch: last.step }));
  const nothing =
    last === undefined ? '' : `, nothing to learn from in ${silent.length} steps, now ${written || 'all valid'}`;
  return `${nothing}${ungradedNote(store.countUngraded(PHASE, arm))}`;
}

/** Why an arm's training ends with its latest step, be that its last or not; null when it goes on. */
function whyStopped(workspace: Workspace, arm: string, settings: RewardedArm): string | null {
  return collapseOfArm(workspace, arm, false)?.reason ?? spentTrials(workspace, arm, settings);
}

function endOf({ status, reason, steps }: TrainingEnd): string {
  if (reason === null) return `${steps} steps`;
  return `${status === 'collapsed' ? 'collapsed' : 'stopped'} at step ${steps}: ${reason}`;
}

function minesAfter(settings: RewardedArm, step: number): boolean {
  return settings.reward === 'probe' && settings.adversarial !== undefined && isMiningStep(settings.adversarial, step);
}

function report(progress: Progress, row: StepRow, train: TrainSettings, notes: string): void {
  const claimed = row.claimedInBand === null ? '' : `, claimed in band ${row.claimedInBand.toFixed(2)}`;
  const clipped = !row.clippedShare ? '' : `, clipped ${percent(row.clippedShare)}`;
  const measured = row.measuredInBand === null ? '' : `, measured in band ${row.measuredInBand.toFixed(2)}`;
  progress.update(
    row.step,
    train.steps,
    `reward ${row.rewardMean.toFixed(2)}, valid ${row.validity.toFixed(2)}${claimed}${measured}, KL ${row.klPerSequence.toFixed(2)}${clipped}${notes}`,
  );
}

/** The state of the generator's own adapter or of a fresh one, or that of the arm's last checkpoint. */
async function startingPoint(
  workspace: Workspace,
  arm: string,
  policy: LanguageModel,
  train: TrainSettings,
): Promise<TrainerState> {
  const { config, store } = workspace;
  const checkpoint = store.lastCheckpoint(arm);
  if (checkpoint) return checkpointedState(workspace, checkpoint);
  const { factors } =
    policy.adapter ?? initialAdapter(policy.config, train.lora, deriveSeed(config.seed, `adapter ${arm}`, 0));
  return freshState(factors);
}

interface StepContext {
  readonly arm: string;
  /** The train section as it is for the arm. */
  readonly train: TrainSettings;
  readonly policy: LanguageModel;
  /** Of the adapter that is trained: the generator's own, else the settings'. */
  readonly layout: AdapterLayout;
  readonly trainer: TrainerThread;
  readonly reward: ArmReward;
  readonly crowding: ArmCrowding | null;
  /** Rendered texts of the arm's earlier valid tasks; each step's are added. */
  readonly earlier: Set<string>;
}

async function trainStep(workspace: Workspace, context: StepContext, step: number): Promise<StepRow> {
  const { config, store, domain } = workspace;
  const { arm, train, policy, layout, trainer, earlier } = context;
  const adapter: Adapter = { layout, factors: await trainer.values() };
  const clock = stopwatch();

  let proposeSeconds = 0;
  const key = { phase: PHASE, arm, batch: step } as const;
  const proposals = await propose(workspace, {
    key,
    policy,
    size: train.batch,
    adapter,
    temperature: 1,
    earlier: config.domain.validity.rejectRepeats ? earlier : null,
    onSampled: () => (proposeSeconds = clock()),
  });
  const valid = proposals.filter(isValid);
  const checkSeconds = clock();

  const scores = await context.reward.score(step, valid);
  // Tasks without a reward crowd others all the same.
  const earned = context.crowding
    ? await context.crowding.charge(
        valid.map(({ row }) => row),
        scores.rewards.map((reward) => reward ?? 0),
      )
    : scores.rewards;
  const earnedBy = new Map(valid.map(({ row }, i) => [row.id, earned[i]!]));
  // What a task would have earned is not known when its attempts were lost: the step neither rewards nor penalises it.
  const lost = new Set(valid.flatMap(({ row }, i) => (scores.rewards[i] === null ? [row.id] : [])));
  const judged = proposals.filter(({ row }) => !lost.has(row.id));
  if (judged.length === 0) throw new RunError(`step ${step} of arm ${arm}: no task of the batch could be rewarded`);
  const rewards = judged.map(({ row }) => gate(row.valid, earnedBy.get(row.id) ?? Number.NaN, train.invalidPenalty));
  // The samples of a kind share a prompt, and are one group.
  const groups = judged.map(({ row }) => domain.kinds.indexOf(row.type));
  const advantages = ADVANTAGE_ESTIMATORS[train.advantage](rewards, groups);
  const scoreSeconds = clock();

  const rollouts = judged.map(({ prompt, completion }, i) => ({ prompt, ...completion, advantage: advantages[i]! }));
  const fits = updateFits(config.engine, policy.config, layout, await workspace.passBytes());
  const update = await updatePolicy(policy, trainer, rollouts, { ...updateSettings(train), fits });
  const updateSeconds = clock();

  const mean = rewards.reduce((a, b) => a + b, 0) / rewards.length;
  const row: StepRow = {
    arm,
    step,
    rewardMean: mean,
    rewardSd: Math.sqrt(rewards.reduce((sum, r) => sum + (r - mean) ** 2, 0) / rewards.length),
    validity: valid.length / proposals.length,
    klPerSequence: update.klPerSequence,
    gradientNorm: update.gradientNorm,
    loss: update.loss,
    entropy: update.entropy,
    clippedShare: update.clippedShare,
    claimedInBand: scores.claimedInBand,
    measuredInBand: scores.measuredInBand,
    solverTrials: scores.attempts.filter(({ verdict }) => verdict !== 'error').length,
    proposeSeconds,
    checkSeconds,
    scoreSeconds,
    updateSeconds,
  };
  const logits = new Map(valid.map(({ row: task }, i) => [task.id, scores.logits?.[i] ?? null]));
  const stepScores = judged.map(({ row: task }, i): StepScoreRow => ({
    taskId: task.id,
    arm,
    step,
    logits: logits.get(task.id) ?? null,
    reward: rewards[i]!,
    advantage: advantages[i]!,
  }));
  store.commitBatch(key, proposeSeconds + checkSeconds + scoreSeconds + updateSeconds, () => {
    store.insertTasks(proposals.map((proposal) => proposal.row));
    insertAttempted(store, key, scores);
    store.insertStep(row);
    store.insertStepScores(stepScores);
  });
  for (const { row: task } of valid) earlier.add(task.rendered!);
  return row;
}

function isValid(proposal: Proposal): proposal is ValidProposal {
  return proposal.task !== null;
}

function updateSettings(train: TrainSettings): UpdateSettings {
  const { updates, microBatch, microBatchTokens, clip, kl, entropy } = train;
  const { learningRate, beta1, beta2, weightDecay, maxNorm } = train;
  const optimiser = { learningRate, beta1, beta2, epsilon: 1e-8, weightDecay, maxNorm };
  return { updates, microBatch, microBatchTokens, clip, kl, entropy, optimiser };
}

/** Write the files, then the row that names them; the state that this one replaces goes last. */
function saveCheckpoint(
  { config, store }: Workspace,
  { arm, layout }: StepContext,
  step: number,
  state: TrainerState,
  last: number,
): void {
  const path = checkpointPath(arm, step);
  const folder = join(store.folder, path);
  writeTrainingCheckpoint(folder, state, layout, baseOf(config.arms[arm]!.policy ?? config.models.policy));
  const sha256 = sha256OfFile(join(folder, ADAPTER_FILE));
  store.transaction(() => {
    store.insertCheckpoint({ arm, step, path, sha256 });
    store.dropKeptAnswers({ phase: PHASE, arm, batch: step });
  });
  if (last > 0) dropOptimiserState(join(store.folder, checkpointPath(arm, last)));
}

/** Seconds since the last call. */
function stopwatch(): () => number {
  let last = performance.now();
  return () => {
    const now = performance.now();
    const seconds = (now - last) / 1000;
    last = now;
    return seconds;
  };
}
