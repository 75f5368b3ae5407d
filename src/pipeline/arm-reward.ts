/** How each kind of arm scores the valid tasks of a training step: one small object a kind. Crowding and the gate come after. */
import { RunError } from '../errors.js';
import { inBand } from '../metrics/frontier.js';
import { deriveSeed, seededRandom } from '../metrics/random.js';
import { fitLengthBaseline } from '../probe/length-baseline.js';
import { randomRewards, VALID_REWARD } from '../reward/control-rewards.js';
import { probeReward } from '../reward/probe-reward.js';
import { solverReward } from '../reward/solver-reward.js';
import { NO_USAGE } from '../solver/usage.js';
import type { StepScoreRow } from '../store/rows.js';
import { armTrain } from './arm-config.js';
import type { RewardedArm } from './arm-config.js';
import { attemptTasks } from './attempts.js';
import type { Attempted } from './attempts.js';
import { mineWhenDue } from './mining.js';
import { openArmProbes, scoreTasks } from './probe-scores.js';
import type { ValidProposal } from './propose.js';
import type { Workspace } from './workspace.js';

/** What a reward says of a step's valid tasks, and the solver's attempts at them with what they came to. */
export interface StepScores extends Attempted {
  /** One a task; null of one whose attempts were lost to failures, so that its reward is not known. */
  readonly rewards: readonly (number | null)[];
  /** Scorer → logit, one a task; null for a reward without one. */
  readonly logits: readonly NonNullable<StepScoreRow['logits']>[] | null;
  /** Mean probability of the band by the arm's probes. */
  readonly claimedInBand: number | null;
  /** In band / graded by the solver. */
  readonly measuredInBand: number | null;
}

export interface ArmReward {
  /** Called before each step is proposed. */
  prepare?(step: number): Promise<void>;
  score(step: number, valid: readonly ValidProposal[]): Promise<StepScores>;
}

const NOTHING_MEASURED = {
  logits: null,
  claimedInBand: null,
  measuredInBand: null,
  attempts: [],
  labels: [],
  usage: NO_USAGE,
};

/** The reward of an arm, with what it has learnt from the labels. @throws UserError when that is not there. */
export async function openArmReward(workspace: Workspace, arm: string, settings: RewardedArm): Promise<ArmReward> {
  const { rewardClip } = armTrain(workspace.config.train, settings);
  switch (settings.reward) {
    case 'probe':
      return probeArm(workspace, arm, settings, rewardClip);
    case 'solver':
      return solverArm(workspace, arm);
    case 'length':
      return lengthArm(workspace, rewardClip);
    case 'random':
      return randomArm(workspace, arm);
    case 'valid':
      return VALIDITY_ONLY;
  }
}

/** r = min_j ℓ_j, the auxiliary probe's among them once the arm has mined. */
async function probeArm(
  workspace: Workspace,
  arm: string,
  { adversarial }: Extract<RewardedArm, { reward: 'probe' }>,
  clip: number,
): Promise<ArmReward> {
  let probes = await openArmProbes(workspace, arm);
  return {
    async prepare(step) {
      if (adversarial && (await mineWhenDue(workspace, arm, adversarial, step - 1))) {
        probes = await openArmProbes(workspace, arm);
      }
    },
    async score(_, valid) {
      const scores = await scoreTasks(workspace, probes, textsOf(valid));
      const scales = probes.map(({ probe }) => probe.scale);
      return {
        ...NOTHING_MEASURED,
        rewards: scores.logits.map((logits) => probeReward(logits, scales, clip)),
        logits: scores.logits.map((logits) => Object.fromEntries(probes.map(({ name }, j) => [name, logits[j]!]))),
        claimedInBand: mean(scores.claimed),
      };
    },
  };
}

/** Of a step's tasks more than this share, and more than a few, without a reward: something is down, and the step waits for it. */
const MOST_LOST = 0.25;
const FEW = 2;

/** r = 1[a ≤ p̂ ≤ b]: every valid task is attempted K times, in the loop. */
function solverArm(workspace: Workspace, arm: string): ArmReward {
  const { band } = workspace.config;
  return {
    async score(step, valid) {
      const tasks = valid.map(({ row, task }) => ({ id: row.id, task }));
      const attempted = await attemptTasks(workspace, tasks, {
        key: { phase: 'train-generator', arm, batch: step },
        purpose: `attempt loop ${arm}`,
        index: step,
        split: 'loop',
      });
      const { labels } = attempted;
      const lost = valid.length - labels.length;
      if (lost > FEW && lost > MOST_LOST * valid.length) {
        throw new RunError(
          `step ${step} of arm ${arm}: ${lost} of ${valid.length} tasks have attempts that the solver or the sandbox failed at, ` +
            'and cannot be rewarded; put that right, and the same command goes on from the last checkpoint',
        );
      }
      const passesOf = new Map(labels.map(({ taskId, passes }) => [taskId, passes]));
      const rewards = tasks.map(({ id }) => {
        const passes = passesOf.get(id);
        return passes === undefined ? null : solverReward(passes, band);
      });
      const measured = labels.map(({ passes }) => (inBand(passes, band) ? 1 : 0));
      return { ...NOTHING_MEASURED, ...attempted, rewards, measuredInBand: mean(measured) };
    },
  };
}

/** The band's logit from a task's length alone. The fit follows from the labels, so a resumed run makes it again. */
async function lengthArm(workspace: Workspace, clip: number): Promise<ArmReward> {
  const { config, store } = workspace;
  const baseline = await fitLengthBaseline(
    await workspace.reference(),
    store.labelledTasks({ phase: 'label' }).map(({ id, rendered, passes }) => ({ id, text: rendered!, passes })),
    { k: config.band.of, band: config.band },
    { ...config.probe, seed: deriveSeed(config.seed, 'length baseline', 0) },
  );
  return {
    async score(_, valid) {
      const logits = [...baseline.logits(textsOf(valid))];
      return {
        ...NOTHING_MEASURED,
        rewards: logits.map((logit) => probeReward([logit], [baseline.scale], clip)),
        logits: logits.map((length) => ({ length })),
      };
    },
  };
}

function randomArm({ config }: Workspace, arm: string): ArmReward {
  return {
    async score(step, valid) {
      const random = seededRandom(deriveSeed(config.seed, `random reward ${arm}`, step));
      return { ...NOTHING_MEASURED, rewards: randomRewards(valid.length, random) };
    },
  };
}

const VALIDITY_ONLY: ArmReward = {
  async score(_, valid) {
    return { ...NOTHING_MEASURED, rewards: valid.map(() => VALID_REWARD) };
  },
};

function textsOf(valid: readonly ValidProposal[]): string[] {
  return valid.map(({ row }) => row.rendered!);
}

/** Null of nothing. */
function mean(values: readonly number[]): number | null {
  return values.length ? values.reduce((a, b) => a + b, 0) / values.length : null;
}
