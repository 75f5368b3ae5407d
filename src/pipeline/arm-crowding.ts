/** What an arm's valid tasks pay for being alike: the pool of its last steps, and what makes two tasks alike. */
import { cosineSimilarity, crowdedReward, crowding, sameTopic } from '../reward/crowding.js';
import type { TaskRow } from '../store/rows.js';
import { armTrain, smallestReward } from './arm-config.js';
import type { CrowdingSettings, RewardedArm } from './arm-config.js';
import { openMembers, taskActivations } from './probe-scores.js';
import type { Workspace } from './workspace.js';

export interface ArmCrowding {
  /** The rewards of a step's valid tasks once they have paid. The step joins the pool of those that follow. */
  charge(valid: readonly TaskRow[], rewards: readonly number[]): Promise<number[]>;
}

/** An arm's pool as it is after `step`, filled from the store; null for an arm without crowding. */
export async function openArmCrowding(
  workspace: Workspace,
  arm: string,
  settings: RewardedArm,
  step: number,
): Promise<ArmCrowding | null> {
  const { store, config } = workspace;
  const { crowding: own } = settings;
  if (!own) return null;
  const smallest = smallestReward(settings, armTrain(config.train, settings));
  const past: TaskRow[][] = [];
  for (let batch = Math.max(1, step - own.window + 1); batch <= step; batch++) {
    past.push(store.tasks({ phase: 'train-generator', arm, batch, valid: true }));
  }
  if (own.by === 'topic') {
    const describe = async (rows: readonly TaskRow[]) => rows.map(({ topic }) => topic);
    return pool(own, smallest, past, describe, sameTopic);
  }
  const [member] = await openMembers(workspace, arm);
  const describe = (rows: readonly TaskRow[]) =>
    taskActivations(
      workspace,
      member!.probe,
      rows.map(({ rendered }) => rendered!),
    );
  return pool(own, smallest, past, describe, cosineSimilarity);
}

/** @param describe what is compared of a step's tasks; the same for the same step, so that a resumed run goes on alike */
async function pool<Description>(
  { weight, window }: CrowdingSettings,
  smallest: number,
  past: readonly (readonly TaskRow[])[],
  describe: (rows: readonly TaskRow[]) => Promise<Description[]>,
  similarity: (a: Description, b: Description) => number,
): Promise<ArmCrowding> {
  const steps: Description[][] = [];
  for (const rows of past) steps.push(await describe(rows));
  return {
    async charge(valid, rewards) {
      const batch = await describe(valid);
      const crowded = crowding(batch, steps.flat(), similarity);
      steps.push(batch);
      if (steps.length > window) steps.shift();
      return rewards.map((reward, i) => crowdedReward(reward, crowded[i]!, weight, smallest));
    },
  };
}
