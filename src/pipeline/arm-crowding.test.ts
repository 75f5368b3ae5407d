import { describe, expect, test } from 'vitest';
import type { TaskFilter, TaskRow } from '../store/rows.js';
import { openArmCrowding } from './arm-crowding.js';
import type { CrowdingSettings, RewardedArm } from './arm-config.js';
import { loadConfig } from './config-file.js';
import type { Workspace } from './workspace.js';

const rows = (...topics: string[]) => topics.map((topic) => ({ topic }) as TaskRow);

/** The arm's crowding after as many steps as are given, each by the topics of its valid tasks. */
function crowdingAfter(
  steps: readonly string[][],
  crowding: Partial<CrowdingSettings>,
  arm: Partial<RewardedArm> = {},
) {
  const workspace = {
    config: loadConfig('pipelines/azr-micro.yaml'),
    store: { tasks: ({ batch }: TaskFilter) => rows(...steps[batch! - 1]!) },
  } as unknown as Workspace;
  const settings = { by: 'topic', weight: 1, window: 2, ...crowding } as const;
  return openArmCrowding(
    workspace,
    'mine',
    { reward: 'valid', ...arm, crowding: settings } as RewardedArm,
    steps.length,
  );
}

describe('an arm with crowding', () => {
  test('charges within the batch', async () => {
    const crowding = await crowdingAfter([], { weight: 0.5 });
    // Of the three others of each string, two are strings; the list is alone.
    const paid = await crowding!.charge(rows('strings', 'strings', 'strings', 'lists'), [1, 1, 0.5, 1]);
    expect(paid.map((reward) => reward.toFixed(4))).toEqual(['0.6667', '0.6667', '0.1667', '1.0000']);
  });

  test('a resumed arm charges as one that was not stopped, and forgets what is beyond its window', async () => {
    const steps = [['lists'], ['strings', 'sets'], ['strings']];
    const going = await crowdingAfter([], {});
    for (const step of steps)
      await going!.charge(
        rows(...step),
        step.map(() => 1),
      );
    const resumed = await crowdingAfter(steps, {});
    const batch = rows('strings', 'lists');
    // Others: the batch's one and the three of the last two steps; the list of the first step is forgotten.
    expect(await resumed!.charge(batch, [1, 1])).toEqual([0.5, 1]);
    expect(await going!.charge(batch, [1, 1])).toEqual([0.5, 1]);
  });

  test('never charges a task below the smallest reward of its kind of arm', async () => {
    const solver = await crowdingAfter([], { weight: 9 }, { reward: 'solver' });
    expect(await solver!.charge(rows('sets', 'sets', 'lists'), [1, 0, 1])).toEqual([0, 0, 1]);
    const probe = await crowdingAfter([], { weight: 9 }, { reward: 'probe' });
    expect(await probe!.charge(rows('sets', 'sets'), [2, -1])).toEqual([-2.5, -2.5]);
  });
});
