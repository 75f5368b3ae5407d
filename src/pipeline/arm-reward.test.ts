import { describe, expect, test } from 'vitest';
import { RunError } from '../errors.js';
import type { Attempt } from '../solver/solver.js';
import type { RewardedArm } from './arm-config.js';
import { openArmReward } from './arm-reward.js';
import { loadConfig } from './config-file.js';
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
    const { rewards, attempts, labels } = await score(SIL);
    expect(score.asked).toEqual([['task 0', 'task 1'], ['task 1']]);
    expect(attempts.slice(4).map(({ verdict }) => verdict)).toEqual(['fail', 'pass', 'pass', 'fail']);
    expect(labels.map(({ passes }) => passes)).toEqual([1, 2]);
    expect(rewards).toEqual([1, 1]);
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
    expect(labels.map(({ taskId }) => taskId)).toEqual(['task 0', 'task 2']);
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
  });
});
