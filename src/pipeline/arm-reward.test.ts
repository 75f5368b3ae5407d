import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { standInReference } from '../../tests/planted-tasks.js';
import {
  plantedLogit,
  plantedReward,
  PROBES,
  probeOf,
  probeWorld,
  taskRow,
  worldSeed,
} from '../../tests/probe-world.js';
import type { PlantedProbe } from '../../tests/probe-world.js';
import { temporaryFolder } from '../../tests/propel-process.js';
import { RunError } from '../errors.js';
import { fitLengthBaseline } from '../probe/length-baseline.js';
import { readProbeNumbers, writeProbeNumbers } from '../probe/probe-file.js';
import { deriveSeed, seededRandom } from '../metrics/random.js';
import { sigmoid } from '../reward/band-logit.js';
import { taskId } from '../store/rows.js';
import type { Attempt } from '../solver/solver.js';
import type { RewardedArm } from './arm-config.js';
import { openArmReward } from './arm-reward.js';
import { loadConfig } from './config-file.js';
import { openMembers } from './probe-scores.js';
import type { ValidProposal } from './propose.js';
import type { Workspace } from './workspace.js';

const PASS: Attempt = { answer: 'right', status: 'answered' };
const FAIL: Attempt = { answer: 'wrong', status: 'answered' };
const CUT_OFF: Attempt = { answer: 'right', status: 'cut_off' };
const LOST: Attempt = { answer: '', status: 'error' };

/**
 * A step's valid tasks, and a solver that has made up its mind about them: K = 4, in band 1 or 2 passes. `again` is what it says when some
 * are asked a second time; else the same.
 */
function step(attempts: readonly (readonly Attempt[])[], again?: readonly (readonly Attempt[])[]) {
  const asked: string[][] = [];
  const workspace = {
    config: { ...loadConfig('pipelines/azr-micro.yaml'), band: { min: 1, max: 2, of: 4 }, seed: 3 },
    domain: {
      question: ({ name }: { name: string }) => name,
      grade: async (_: unknown, answers: string[]) => answers.map((answer) => (answer === 'right' ? 'pass' : 'fail')),
    },
    solver: async () => ({
      attempt: async (questions: string[]) => {
        asked.push(questions);
        const said = new Map((asked.length > 1 && again ? again : attempts).map((own, i) => [`task ${i}`, own]));
        return questions.map((question) => said.get(question)!);
      },
    }),
    sandbox: async () => ({ size: 1 }),
  } as unknown as Workspace;
  const valid = attempts.map(
    (_, i) => ({ row: { id: `task ${i}` }, task: { name: `task ${i}` } }) as unknown as ValidProposal,
  );
  const score = async (settings: RewardedArm, index = 1) =>
    (await openArmReward(workspace, 'mine', settings)).score(index, valid);
  return Object.assign(score, { asked });
}

describe('solver in the loop', () => {
  const SIL: RewardedArm = { reward: 'solver' };

  test('1 for one or two passes of four, with the attempts and labels of the step', async () => {
    const scores = await step([
      [PASS, FAIL, FAIL, FAIL],
      [FAIL, FAIL, FAIL, FAIL],
      [PASS, PASS, PASS, FAIL],
      [PASS, PASS, CUT_OFF, FAIL],
    ])(SIL);
    expect(scores.rewards).toEqual([1, 0, 0, 1]);
    expect(scores.measuredInBand).toBe(0.5);
    expect(scores.claimedInBand).toBeNull();
    expect(scores.attempts).toHaveLength(16);
    expect(scores.labels.map(({ passes, k, split }) => [passes, k, split])).toEqual(
      [1, 0, 3, 2].map((passes) => [passes, 4, 'loop']),
    );
  });

  test('a task that lost an attempt to the infrastructure is asked once more; what it answered first stands', async () => {
    const score = step(
      [
        [PASS, FAIL, FAIL, FAIL],
        [FAIL, LOST, LOST, FAIL],
      ],
      [
        [FAIL, FAIL, FAIL, FAIL],
        [PASS, PASS, PASS, PASS],
      ],
    );
    const { rewards, attempts, labels, measuredInBand } = await score(SIL);
    expect(score.asked).toEqual([['task 0', 'task 1'], ['task 1']]);
    expect(attempts.slice(4).map(({ verdict }) => verdict)).toEqual(['fail', 'pass', 'pass', 'fail']);
    expect(labels.map(({ passes }) => passes)).toEqual([1, 2]);
    expect(rewards).toEqual([1, 1]);
    expect(measuredInBand).toBe(1);
  });

  test('a task that loses an attempt twice earns nothing that is known, and is no failure', async () => {
    const { rewards, measuredInBand, attempts, labels } = await step([
      [PASS, FAIL, FAIL, FAIL],
      [PASS, FAIL, LOST, FAIL],
      [PASS, PASS, PASS, PASS],
    ])(SIL);
    expect(rewards).toEqual([1, null, 0]);
    expect(measuredInBand).toBe(0.5);
    expect(attempts.filter(({ verdict }) => verdict === 'error')).toHaveLength(1);
    expect(labels.map((label) => label.taskId)).toEqual(['task 0', 'task 2']);
  });

  test('more than a quarter of the tasks lost, and more than two, is a failure of the solver: the step stops', async () => {
    const lost = (count: number) => Array.from({ length: 12 }, (_, i) => [i < count ? LOST : PASS, FAIL, FAIL, FAIL]);
    expect((await step(lost(3))(SIL)).rewards.filter((reward) => reward === null)).toHaveLength(3);
    await expect(step(lost(4))(SIL)).rejects.toThrow(RunError);
    await expect(step(lost(4))(SIL)).rejects.toThrow(
      /^step 1 of arm mine: 4 of 12 tasks have attempts that the solver .* failed at/,
    );
    expect((await step(lost(2).slice(0, 2))(SIL)).rewards).toEqual([null, null]);
    await expect(step(lost(3).slice(0, 3))(SIL)).rejects.toThrow('3 of 3 tasks');
  });

  test('a step without a valid task measures nothing', async () => {
    expect(await step([])(SIL)).toMatchObject({ rewards: [], measuredInBand: null, attempts: [] });
  });
});

describe('controls', () => {
  const score = step([[], [], []]);

  test('validity alone pays every valid task the same', async () => {
    expect((await score({ reward: 'valid' })).rewards).toEqual([1, 1, 1]);
  });

  test('chance follows from the seed, the arm and the step', async () => {
    const { rewards } = await score({ reward: 'random' }, 2);
    expect(new Set(rewards).size).toBe(3);
    expect(rewards.every((reward) => reward! >= 0 && reward! < 1)).toBe(true);
    expect((await score({ reward: 'random' }, 2)).rewards).toEqual(rewards);
    expect((await score({ reward: 'random' }, 3)).rewards).not.toEqual(rewards);
    expect(rewards[0]).toBe(seededRandom(deriveSeed(3, 'random reward mine', 2))());
  });
});

describe('probes of an arm', () => {
  const folder = temporaryFolder();
  const world = (name: string, ...settings: string[]) => probeWorld(join(folder, name), settings);
  /** Texts of few and of many `a`: the first probe is the smaller on the left, the second on the right. */
  const TEXTS = ['bbbbbbb', 'abbbbbb', 'aabbbbb', 'aaabbbb', 'aaaaabb', 'aaaaaaa'];
  const proposals = (texts: readonly string[]) =>
    texts.map((rendered, i) => ({ row: { id: `task ${i}`, rendered } }) as unknown as ValidProposal);
  const smallest = (text: string, probes: readonly PlantedProbe[]) =>
    Math.min(...probes.map((probe) => plantedReward(probe, text)));
  const expectClose = (actual: readonly (number | null)[], expected: readonly number[]) => {
    expect(actual).toHaveLength(expected.length);
    expected.forEach((value, i) => expect(actual[i]).toBeCloseTo(value, 5));
  };

  test('one probe pays its own standardised logit, clipped, and claims its own probability', async () => {
    const { workspace } = world('one', 'arms={mine: {reward: probe, train: {rewardClip: 1.5}}}');
    const arm = workspace.config.arms['mine'] as RewardedArm;
    const scores = await (await openArmReward(workspace, 'mine', arm)).score(1, proposals(TEXTS));
    expectClose(
      scores.rewards,
      TEXTS.map((text) => plantedReward(PROBES[0]!, text, 1.5)),
    );
    expect(scores.rewards.at(-1)).toBe(1.5);
    expect(scores.logits!.map((logits) => Object.keys(logits))).toEqual(TEXTS.map(() => ['probe-0']));
    const claims = TEXTS.map((text) => sigmoid(plantedLogit(PROBES[0]!, text)));
    expect(scores.claimedInBand).toBeCloseTo(claims.reduce((a, b) => a + b, 0) / claims.length, 5);
  });

  test('two pay the smaller, each on its own scale, and claim the less sure probability', async () => {
    const { workspace } = world('two', 'arms={mine: {reward: probe, probes: 2}}');
    const arm = workspace.config.arms['mine'] as RewardedArm;
    const scores = await (await openArmReward(workspace, 'mine', arm)).score(1, proposals(TEXTS));
    const expected = TEXTS.map((text) => smallest(text, PROBES));
    expectClose(scores.rewards, expected);
    // Either probe is the smaller of some text: to ignore one would pay more.
    for (const probe of PROBES) {
      expect(TEXTS.some((text, i) => plantedReward(probe, text) > expected[i]! + 0.1)).toBe(true);
    }
    for (const [j, probe] of PROBES.entries()) {
      expectClose(
        scores.logits!.map((logits) => logits[`probe-${j}`]!),
        TEXTS.map((text) => plantedLogit(probe, text)),
      );
    }
    const claims = TEXTS.map((text) => sigmoid(Math.min(...PROBES.map((probe) => plantedLogit(probe, text)))));
    expect(scores.claimedInBand).toBeCloseTo(claims.reduce((a, b) => a + b, 0) / claims.length, 5);
  });

  test('the latest auxiliary probe joins the minimum; another file in its place is refused', async () => {
    const { workspace, store } = world('auxiliary', 'arms={mine: {reward: probe, probes: 2}}');
    const arm = workspace.config.arms['mine'] as RewardedArm;
    const auxiliary = [
      { slope: 0, offset: 5, scale: { mean: 0, sd: 1 } },
      { slope: 4, offset: -2, scale: { mean: -1, sd: 1 } },
    ];
    for (const [i, planted] of auxiliary.entries()) {
      const path = `auxiliary-${i}.safetensors`;
      const sha256 = writeProbeNumbers(join(store.folder, path), probeOf(planted));
      const counts = { mined: 1, falsePositives: 1, solverTrials: 4, elapsedSeconds: 0 };
      store.insertMining({ arm: 'mine', step: 2 * (i + 1), path, sha256, ...counts });
    }
    const scores = await (await openArmReward(workspace, 'mine', arm)).score(5, proposals(TEXTS));
    expectClose(
      scores.rewards,
      TEXTS.map((text) => smallest(text, [...PROBES, auxiliary[1]!])),
    );
    expect(TEXTS.some((text) => plantedReward(auxiliary[1]!, text) < smallest(text, PROBES) - 0.1)).toBe(true);
    expect(Object.keys(scores.logits![0]!)).toEqual(['probe-0', 'probe-1', 'auxiliary-4']);
    writeProbeNumbers(join(store.folder, 'auxiliary-1.safetensors'), probeOf(auxiliary[0]!));
    await expect(openArmReward(workspace, 'mine', arm)).rejects.toThrow(/is not the probe that the run trained/);
  });

  test('an arm that mines pays by what it has mined from the next step on', async () => {
    const settings = 'arms={mine: {reward: probe, adversarial: {every: 1, mine: 2, share: 1}}}';
    const { workspace, store } = world('mines', settings);
    const arm = workspace.config.arms['mine'] as RewardedArm;
    const reward = await openArmReward(workspace, 'mine', arm);
    const scorers = async (next: number) => {
      await reward.prepare!(next);
      const { logits, rewards } = await reward.score(next, proposals(TEXTS));
      return { names: Object.keys(logits![0]!), rewards, logits };
    };
    const first = await scorers(1);
    expect(first.names).toEqual(['probe-0']);
    const key = { phase: 'train-generator', arm: 'mine', batch: 1 } as const;
    store.commitBatch(key, 0, () => {
      store.insertTasks(TEXTS.map((text, i) => taskRow(key, i, text)));
      store.insertStepScores(
        TEXTS.map((_, i) => {
          const scored = { logits: first.logits![i]!, reward: first.rewards[i]!, advantage: 0 };
          return { taskId: taskId(key, i), arm: 'mine', step: 1, ...scored };
        }),
      );
    });
    const second = await scorers(2);
    expect(second.names).toEqual(['probe-0', 'auxiliary-1']);
    const mining = store.minings('mine').at(-1)!;
    const { scale } = readProbeNumbers(
      join(store.folder, mining.path),
      (await openMembers(workspace, 'mine'))[0]!.card,
    );
    second.rewards.forEach((paid, i) => {
      const auxiliary = (second.logits![i]!['auxiliary-1']! - scale.mean) / scale.sd;
      expect(paid).toBeCloseTo(Math.max(-2.5, Math.min(first.rewards[i]!, auxiliary)), 5);
    });
    expect(second.rewards.some((paid, i) => paid! < first.rewards[i]! - 1e-3)).toBe(true);
  });

  test('more probes than are trained are refused', async () => {
    const { workspace } = world('three', 'arms={mine: {reward: probe, probes: 3}}');
    const arm = workspace.config.arms['mine'] as RewardedArm;
    await expect(openArmReward(workspace, 'mine', arm)).rejects.toThrow('arm mine needs 3 probes, the run has 2');
  });

  test('the length arm pays the logit of a baseline fitted on the labels, on its scale, clipped', async () => {
    const { workspace, store } = world('length', 'arms={mine: {reward: length, train: {rewardClip: 1}}}');
    const { config } = workspace;
    const texts = ['b'.repeat(6), 'b'.repeat(20), 'b'.repeat(34)];
    const arm = config.arms['mine'] as RewardedArm;
    const { rewards, logits } = await (await openArmReward(workspace, 'mine', arm)).score(1, proposals(texts));
    const labels = store.labelledTasks({ phase: 'label' });
    const baseline = await fitLengthBaseline(
      standInReference,
      labels.map(({ id, rendered, passes }) => ({ id, text: rendered!, passes })),
      { k: config.band.of, band: config.band },
      { ...config.probe, seed: worldSeed('length baseline', 0) },
    );
    const own = [...baseline.logits(texts)];
    expect(logits).toEqual(own.map((length) => ({ length })));
    const { mean, sd } = baseline.scale;
    expectClose(
      rewards,
      own.map((logit) => Math.min(1, Math.max(-1, (logit - mean) / sd))),
    );
    // Long ones are in band, and more than one standard deviation above the rest.
    expect([rewards[0]! < 0, rewards[2]]).toEqual([true, 1]);
  });
});
