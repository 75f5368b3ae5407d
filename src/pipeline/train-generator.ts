/**
 * Phase 3, train-generator. One step: propose → parse and check → score by the probe → reward → advantage → update → record.
 * No solver runs here.
 */
import { UserError } from '../errors.js';
import { initialAdapter } from '../lm/adapter.js';
import type { Adapter } from '../lm/adapter.js';
import type { TrainerThread } from '../lm/language-model.js';
import { freshState } from '../lm/trainer.js';
import type { TrainerState } from '../lm/trainer.js';
import { deriveSeed } from '../metrics/random.js';
import { probeRewards } from '../reward/probe-reward.js';
import { ADVANTAGE_ESTIMATORS } from '../rl/advantage.js';
import { ADAPTER_FILE, dropOptimiserState, writeTrainingCheckpoint } from '../rl/checkpoint.js';
import { updatePolicy } from '../rl/policy-update.js';
import { sha256OfFile } from '../store/files.js';
import type { StepRow, StepScoreRow } from '../store/rows.js';
import { join } from 'node:path';
import { checkpointedState, checkpointPath } from './checkpoints.js';
import type { Config } from './config.js';
import { openArmProbes, scoreTasks } from './probe-scores.js';
import type { ArmProbe } from './probe-scores.js';
import { propose } from './propose.js';
import type { Progress } from './progress.js';
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
  /** The last checkpoint's folder. */
  readonly checkpoint: string;
  readonly seconds: number;
}

/** Train every arm that has a reward and is not yet trained. @throws UserError when the probes are not trained. */
export async function trainGenerator(workspace: Workspace): Promise<TrainedArm[]> {
  const { config, store } = workspace;
  const trained = Object.keys(config.arms).filter((arm) => config.arms[arm]!.reward !== 'none');
  const pending = trained.filter((arm) => !store.phaseFinished(PHASE, arm));
  if (pending.length && !store.phaseFinished('train-probe', '')) {
    throw new UserError(`arm ${pending[0]} needs a probe, which is not trained yet: run 'propel train-probe' first`);
  }
  for (const arm of pending) await trainArm(workspace, arm, await openArmProbes(workspace, arm));
  return Object.keys(config.arms).flatMap((arm) => {
    const last = store.steps(arm).at(-1);
    if (!last) return [];
    const { step, rewardMean, validity, klPerSequence, claimedInBand } = last;
    const checkpoint = join(store.folder, store.lastCheckpoint(arm)!.path);
    return [
      {
        arm,
        steps: step,
        rewardMean,
        validity,
        klPerSequence,
        claimedInBand,
        checkpoint,
        seconds: store.secondsOf(PHASE, arm),
      },
    ];
  });
}

async function trainArm(workspace: Workspace, arm: string, probes: readonly ArmProbe[]): Promise<void> {
  const { config, store } = workspace;
  const { train } = config;
  const policy = await workspace.policy();
  const start = await startingPoint(workspace, arm);
  store.truncateAfter(arm, start.step);
  const trainer = await policy.train(train.lora, start);
  const earlier = new Set(store.tasks({ phase: PHASE, arm, valid: true }).map((row) => row.rendered!));
  const progress = workspace.progress(`train-generator ${arm}`);
  let last = start.step;
  const beyondKl = (row: StepRow | undefined) =>
    train.klStop !== null && row !== undefined && row.klPerSequence > train.klStop;
  let stoppedByKl = beyondKl(store.steps(arm).at(-1));
  for (let step = start.step + 1; step <= train.steps && !stoppedByKl; step++) {
    workspace.checkpoint();
    progress.update(step - 1, train.steps);
    const row = await trainStep(workspace, { arm, step, probes, trainer, earlier });
    stoppedByKl = beyondKl(row);
    if (step % train.checkpointEvery === 0 || step === train.steps || stoppedByKl) {
      saveCheckpoint(workspace, arm, step, await trainer.state(), last);
      last = step;
    }
    report(progress, row, train);
  }
  await trainer.release();
  store.finishPhase(PHASE, arm, 0);
  progress.done(stoppedByKl ? `stopped at step ${last}: KL above ${train.klStop} nats` : `${train.steps} steps`);
}

function report(progress: Progress, row: StepRow, train: Config['train']): void {
  const claimed = row.claimedInBand === null ? '' : `, claimed in band ${row.claimedInBand.toFixed(2)}`;
  progress.update(
    row.step,
    train.steps,
    `reward ${row.rewardMean.toFixed(2)}, valid ${row.validity.toFixed(2)}${claimed}, KL ${row.klPerSequence.toFixed(2)}`,
  );
}

/** A fresh adapter's state, or that of the arm's last checkpoint. */
async function startingPoint(workspace: Workspace, arm: string): Promise<TrainerState> {
  const { config, store } = workspace;
  const checkpoint = store.lastCheckpoint(arm);
  if (checkpoint) return checkpointedState(workspace, checkpoint);
  const { config: decoder } = await workspace.policy();
  return freshState(initialAdapter(decoder, config.train.lora, deriveSeed(config.seed, `adapter ${arm}`, 0)).factors);
}

interface StepContext {
  readonly arm: string;
  readonly step: number;
  readonly probes: readonly ArmProbe[];
  readonly trainer: TrainerThread;
  /** Rendered texts of the arm's earlier valid tasks; this step's are added. */
  readonly earlier: Set<string>;
}

async function trainStep(workspace: Workspace, context: StepContext): Promise<StepRow> {
  const { config, store } = workspace;
  const { train } = config;
  const { arm, step, probes, trainer, earlier } = context;
  const policy = await workspace.policy();
  const adapter: Adapter = { layout: train.lora, factors: await trainer.values() };
  const clock = stopwatch();

  let proposeSeconds = 0;
  const key = { phase: PHASE, arm, batch: step } as const;
  const proposals = await propose(workspace, {
    key,
    size: train.batch,
    adapter,
    temperature: 1,
    earlier: config.domain.validity.rejectRepeats ? earlier : null,
    onSampled: () => (proposeSeconds = clock()),
  });
  const checkSeconds = clock();

  const valid = proposals.filter(({ row }) => row.valid);
  const scores = await scoreTasks(
    workspace,
    probes,
    valid.map(({ row }) => row.rendered!),
  );
  const logits = new Map(valid.map(({ row }, i) => [row.id, scores.logits[i]!]));
  const rewards = probeRewards(
    proposals.map(({ row }) => logits.get(row.id) ?? null),
    { scales: probes.map(({ probe }) => probe.scale), clip: train.rewardClip, penalty: train.invalidPenalty },
  );
  const advantages = ADVANTAGE_ESTIMATORS[train.advantage](
    rewards,
    proposals.map(({ row }) => workspace.domain.kinds.indexOf(row.type)),
  );
  const scoreSeconds = clock();

  const rollouts = proposals.map(({ prompt, completion }, i) => ({ prompt, ...completion, advantage: advantages[i]! }));
  const update = await updatePolicy(policy, trainer, rollouts, {
    updates: train.updates,
    microBatch: train.microBatch,
    clip: train.clip,
    kl: train.kl,
    entropy: train.entropy,
    optimiser: {
      learningRate: train.learningRate,
      beta1: train.beta1,
      beta2: train.beta2,
      epsilon: 1e-8,
      weightDecay: train.weightDecay,
      maxNorm: train.maxNorm,
    },
  });
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
    claimedInBand: scores.claimed.length ? scores.claimed.reduce((a, b) => a + b, 0) / scores.claimed.length : null,
    measuredInBand: null,
    solverTrials: 0,
    proposeSeconds,
    checkSeconds,
    scoreSeconds,
    updateSeconds,
  };
  const stepScores = proposals.map(({ row: task }, i): StepScoreRow => {
    const own = logits.get(task.id);
    const named = own ? Object.fromEntries(probes.map(({ name }, j) => [name, own[j]!])) : null;
    return { taskId: task.id, arm, step, logits: named, reward: rewards[i]!, advantage: advantages[i]! };
  });
  store.commitBatch(key, proposeSeconds + checkSeconds + scoreSeconds + updateSeconds, () => {
    store.insertTasks(proposals.map((proposal) => proposal.row));
    store.insertStep(row);
    store.insertStepScores(stepScores);
  });
  for (const { row: task } of valid) earlier.add(task.rendered!);
  return row;
}

/** Write the files, then the row that names them; the state that this one replaces goes last. */
function saveCheckpoint(
  { config, store }: Workspace,
  arm: string,
  step: number,
  state: TrainerState,
  last: number,
): void {
  const path = checkpointPath(arm, step);
  const folder = join(store.folder, path);
  writeTrainingCheckpoint(folder, state, config.train.lora, config.models.policy);
  store.insertCheckpoint({ arm, step, path, sha256: sha256OfFile(join(folder, ADAPTER_FILE)) });
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
