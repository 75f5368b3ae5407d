import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PROBES, probeOf, probeWorld, taskRow } from '../../tests/probe-world.js';
import { temporaryFolder } from '../../tests/propel-process.js';
import type { TaskFilter, TaskRow } from '../store/rows.js';
import { openArmCrowding } from './arm-crowding.js';
import type { CrowdingSettings, RewardedArm } from './arm-config.js';
import { loadConfig } from './config-file.js';
import { taskActivations } from './probe-scores.js';
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
    const steps = [['lists'], ['strings', 'strings'], ['strings']];
    const going = await crowdingAfter([], {});
    for (const step of steps)
      await going!.charge(
        rows(...step),
        step.map(() => 1),
      );
    const resumed = await crowdingAfter(steps, {});
    const batch = rows('strings', 'lists');
    // Others: the batch's one and the three of the last two steps; the list of the first step is forgotten.
    expect(await resumed!.charge(batch, [1, 1])).toEqual([0.25, 1]);
    expect(await going!.charge(batch, [1, 1])).toEqual([0.25, 1]);
  });

  test('never charges a task below the smallest reward of its kind of arm', async () => {
    const solver = await crowdingAfter([], { weight: 9 }, { reward: 'solver' });
    expect(await solver!.charge(rows('sets', 'sets', 'lists'), [1, 0, 1])).toEqual([0, 0, 1]);
    const probe = await crowdingAfter([], { weight: 9 }, { reward: 'probe' });
    expect(await probe!.charge(rows('sets', 'sets'), [2, -1])).toEqual([-2.5, -2.5]);
  });
});

describe('an arm that is charged by activations', () => {
  const folder = temporaryFolder();

  test('pays the mean cosine of what the first probe reads, its own batch’s and the last steps’', async () => {
    const { workspace, store } = probeWorld(join(folder, 'run'), [
      'arms={mine: {reward: probe, probes: 2, crowding: {by: activations, weight: 0.5, window: 1}}}',
    ]);
    const key = { phase: 'train-generator', arm: 'mine', batch: 1 } as const;
    store.commitBatch(key, 0, () => {
      store.insertTasks([
        taskRow(key, 0, 'aab'),
        taskRow(key, 1, 'bcd', { valid: false, rendered: null, task: null, output: null }),
      ]);
    });
    const settings = workspace.config.arms['mine'] as RewardedArm;
    const crowding = await openArmCrowding(workspace, 'mine', settings, 1);
    const texts = ['aaaa', 'bbbb', 'abab'];
    const rewards = [2, -2.4, 0];
    const paid = await crowding!.charge(
      texts.map((text, i) => taskRow({ ...key, batch: 2 }, i, text)),
      rewards,
    );
    const vectors = await taskActivations(workspace, probeOf(PROBES[0]!), [...texts, 'aab']);
    texts.forEach((_, i) => {
      const others = vectors.filter((_vector, j) => j !== i);
      const likeness = others.map((other) =>
        Math.max(
          0,
          other.reduce((sum, x, c) => sum + x * vectors[i]![c]!, 0),
        ),
      );
      const crowded = likeness.reduce((sum, each) => sum + each, 0) / others.length;
      expect(crowded).toBeGreaterThan(0.3);
      expect(paid[i]).toBeCloseTo(Math.max(-2.5, rewards[i]! - 0.5 * crowded), 9);
    });
    expect(paid[1]).toBe(-2.5);
  });

  test('never falls below its own clip where the arm has one of its own', async () => {
    const solver = await crowdingAfter([], { weight: 9 }, { reward: 'probe', train: { rewardClip: 1 } });
    expect(await solver!.charge(rows('sets', 'sets'), [0.5, -1])).toEqual([-1, -1]);
  });
});
