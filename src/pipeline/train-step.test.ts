/** One step of an arm's training, with a generator that writes what it is told to: what reaches the update and what is recorded. */
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { standInReference } from '../../tests/planted-tasks.js';
import { plantedLogit, plantedReward, PROBES, probeWorld } from '../../tests/probe-world.js';
import { temporaryFolder } from '../../tests/propel-process.js';
import { TINY_LLAMA } from '../../tests/tiny-checkpoint.js';
import { initialAdapter } from '../lm/adapter.js';
import type { AdapterLayout } from '../lm/adapter.js';
import { freshState } from '../lm/trainer.js';
import type { LossSettings, PolicyBatch, TrainerState } from '../lm/trainer.js';
import { trainGenerator } from './train-generator.js';
import type { Workspace } from './workspace.js';

const folder = temporaryFolder();
const KINDS = ['code_o', 'code_i'];
/** The token that a text is written as: its place among all that the script holds. */
const FIRST_TOKEN = 10;

interface Trained {
  readonly workspace: Workspace;
  /** Text → the advantage that the update saw, of each step that saw it. */
  readonly advantages: Map<string, number[]>;
  readonly losses: LossSettings[];
  /** Of each request to the generator. */
  readonly sampled: { readonly temperature: number; readonly adapter: unknown }[];
  /** What a step's check was given as written before. */
  readonly earlier: (readonly string[])[];
}

/** Train an arm on scripts: a list of texts a step and kind. Those that hold `z` are invalid. */
async function train(name: string, scripts: readonly (readonly string[])[][], ...settings: string[]): Promise<Trained> {
  const texts = scripts.flat(2);
  const size = scripts[0]!.flat().length;
  const world = probeWorld(join(folder, name), [
    `train.batch=${size}`,
    `train.steps=${scripts.length}`,
    `domain.types=[${KINDS.join(', ')}]`,
    'policy.temperature=0.5',
    ...settings,
  ]);
  const queue = scripts.flat();
  const [advantages, losses] = [new Map<string, number[]>(), [] as LossSettings[]];
  const [sampled, earlier]: [Trained['sampled'], Trained['earlier'][number][]] = [[], []];
  let written = 0;
  const trainerOf = (layout: AdapterLayout, state: TrainerState) => {
    let steps = state.step;
    return {
      values: async () => initialAdapter(TINY_LLAMA, layout, 1).factors,
      state: async () => ({ ...freshState(initialAdapter(TINY_LLAMA, layout, 1).factors), step: steps }),
      accumulate: async (batch: PolicyBatch, loss: LossSettings) => {
        losses.push(loss);
        for (let at = 0; at < batch.mask.length; at++) {
          if (batch.mask[at] === 0) continue;
          const text = texts[Number(batch.labels[at]) - FIRST_TOKEN]!;
          advantages.set(text, [...(advantages.get(text) ?? []), batch.advantages[at]!]);
        }
        return { loss: 0.5, klSum: 2 * batch.batch, entropySum: 1, clipped: 1, logProbs: new Float32Array(0) };
      },
      step: async () => {
        steps++;
        return { gradientNorm: 1 };
      },
      release: async () => {},
    };
  };
  const policy = {
    config: TINY_LLAMA,
    tokenizer: {
      ends: [2],
      controlToken: () => undefined,
      tokenBytes: () => [],
      question: () => [1],
      decode: ([token]: number[]) => texts[token! - FIRST_TOKEN]!,
    },
    sample: async ({
      perPrompt,
      temperature,
      adapter,
    }: {
      perPrompt: number;
      temperature: number;
      adapter: unknown;
    }) => {
      sampled.push({ temperature, adapter });
      const script = queue.shift()!;
      expect(script).toHaveLength(perPrompt);
      return script.map(() => ({ tokens: [FIRST_TOKEN + written++], logProbs: Float32Array.of(-1), stopped: true }));
    },
    logProbs: async ({ batch, time }: PolicyBatch) => new Float32Array(batch * time),
    train: async (layout: AdapterLayout, state: TrainerState) => trainerOf(layout, state),
  };
  const domain = {
    ...world.workspace.domain,
    kinds: KINDS,
    asksInChat: false,
    taskEnd: null,
    prompt: () => '',
    parse: (type: string, snippet: string) => ({ type, snippet, input: '1', output: '1' }),
    render: ({ snippet }: { snippet: string }) => snippet,
    check: async (tasks: { snippet: string }[], _: unknown, { earlier: known }: { earlier?: ReadonlySet<string> }) => {
      earlier.push([...(known ?? ['(not asked)'])]);
      return tasks.map((task) => {
        const valid = !task.snippet.includes('z');
        const outcome = valid ? 'ok' : 'unparsable';
        const topic = task.snippet.includes('b') ? 'strings' : 'lists';
        return { valid, outcome, detail: '', task: valid ? task : null, topic, facts: null };
      });
    },
  };
  const workspace = {
    ...world.workspace,
    domain,
    policy: async () => policy,
    check: (tasks: { snippet: string }[], known: ReadonlySet<string> | null) =>
      domain.check(tasks, null, known ? { earlier: known } : {}),
  } as unknown as Workspace;
  await trainGenerator(workspace);
  return { workspace, advantages, losses, sampled, earlier };
}

const scoresOf = ({ store }: Workspace, step = 1) => {
  const texts = new Map(store.tasks({ phase: 'train-generator', arm: 'mine' }).map((row) => [row.id, row.completion]));
  return new Map(store.stepScores('mine', step).map((row) => [texts.get(row.taskId)!, row]));
};
const expectClose = (actual: Iterable<readonly [string, number]>, expected: Readonly<Record<string, number>>) => {
  const found = Object.fromEntries(actual);
  expect(Object.keys(found).sort()).toEqual(Object.keys(expected).sort());
  for (const [text, value] of Object.entries(expected)) expect(found[text], text).toBeCloseTo(value, 5);
};

describe('a step with the solver in the loop', () => {
  // As many p as passes of four, in band 1 and 2; the solver's attempts at a text with x are lost; z is invalid.
  const O = ['apa', 'abb', 'axb', 'zb'];
  const I = ['acc', 'apd', 'zc', 'zd'];
  const passes = (text: string) => (text.includes('x') ? -1 : [...text].filter((letter) => letter === 'p').length);
  let trained: Trained;

  test('rewards and advantages are those of each task type, what was lost is left out', async () => {
    trained = await train(
      'sil',
      [[O, I]],
      'arms={mine: {reward: solver, train: {invalidPenalty: -0.5, advantage: rloo, updates: 2, kl: 0.25}}}',
    );
    expect(O.map(passes)).toEqual([1, 0, -1, 0]);
    const rewards = { apa: 1, abb: 0, zb: -0.5, acc: 0, apd: 1, zc: -0.5, zd: -0.5 };
    const scores = scoresOf(trained.workspace);
    expectClose(
      [...scores].map(([text, { reward }]) => [text, reward]),
      rewards,
    );
    // Less the mean of the others of the type: of code_o 1, 0, −0.5; of code_i 0, 1, −0.5, −0.5.
    const advantages = { apa: 1.25, abb: -0.25, zb: -1, acc: 0, apd: 4 / 3, zc: -2 / 3, zd: -2 / 3 };
    expectClose(
      [...scores].map(([text, { advantage }]) => [text, advantage]),
      advantages,
    );
    // Two updates on the same samples.
    for (const [text, seen] of trained.advantages) {
      expect(seen, text).toHaveLength(2);
      for (const advantage of seen) expect(advantage).toBeCloseTo(advantages[text as keyof typeof advantages], 5);
    }
    expect(trained.advantages.has('axb')).toBe(false);
    expect(trained.losses.every(({ kl, tokens }) => kl === 0.25 && tokens === 7)).toBe(true);
  });

  test('the row says what was earned, valid, spent and measured, and what the update reported', () => {
    const [row] = trained.workspace.store.steps('mine');
    const rewards = [1, 0, -0.5, 0, 1, -0.5, -0.5];
    const mean = 0.5 / 7;
    expect(row!.rewardMean).toBeCloseTo(mean, 12);
    expect(row!.rewardSd).toBeCloseTo(Math.sqrt(rewards.reduce((sum, r) => sum + (r - mean) ** 2, 0) / 7), 12);
    expect(row).toMatchObject({ validity: 5 / 8, klPerSequence: 2, gradientNorm: 1, claimedInBand: null });
    // Four graded, two of them in band; the fifth lost all of its attempts.
    expect(row).toMatchObject({ measuredInBand: 0.5, solverTrials: 16 });
    expect(row!.clippedShare).toBeGreaterThan(0);
  });

  test('the policy itself writes, at temperature 1', () => {
    expect(trained.sampled.map(({ temperature }) => temperature)).toEqual([1, 1]);
    for (const { adapter } of trained.sampled) expect(adapter).toMatchObject({ layout: { rank: 8 } });
  });
});

test('a step with probes: the minimum is what is paid, its logits are kept, the claim is recorded', async () => {
  const texts = ['bbbb', 'abbb', 'aabb', 'aaaa', 'zb', 'zc'];
  const { workspace } = await train(
    'probes',
    [[texts.slice(0, 3), texts.slice(3)]],
    'arms={mine: {reward: probe, probes: 2}}',
  );
  expect(await workspace.reference()).toBe(standInReference);
  const scores = scoresOf(workspace);
  const smallest = (text: string) => Math.min(...PROBES.map((probe) => plantedReward(probe, text)));
  const valid = texts.filter((text) => !text.includes('z'));
  expectClose(
    [...scores].map(([text, { reward }]) => [text, reward]),
    {
      ...Object.fromEntries(valid.map((text) => [text, smallest(text)])),
      zb: -3,
      zc: -3,
    },
  );
  for (const text of valid) {
    expect(scores.get(text)!.logits!['probe-1']).toBeCloseTo(plantedLogit(PROBES[1]!, text), 5);
  }
  expect(scores.get('zb')!.logits).toBeNull();
  expect(workspace.store.steps('mine')[0]!.claimedInBand).toBeGreaterThan(0);
});

test('crowding is paid from what was earned, and a task without a reward crowds the others', async () => {
  const { workspace } = await train(
    'crowded',
    [
      [
        ['apb', 'axb'],
        ['apc', 'apd'],
      ],
    ],
    'arms={mine: {reward: solver, crowding: {by: topic, weight: 0.6}}}',
  );
  // Of the three others of apb one is a string; of apc one a list.
  expectClose(
    [...scoresOf(workspace)].map(([text, { reward }]) => [text, reward]),
    { apb: 0.8, apc: 0.8, apd: 0.8 },
  );
});

test('what an earlier step wrote is known to the next, unless repeats are valid', async () => {
  const scripts = [
    [
      ['apb', 'zb'],
      ['apc', 'zc'],
    ],
    [
      ['apd', 'ape'],
      ['apf', 'apg'],
    ],
  ];
  const arm = 'arms={mine: {reward: valid}}';
  expect((await train('known', scripts, arm)).earlier).toEqual([[], ['apb', 'apc']]);
  const { earlier } = await train('repeats', scripts, arm, 'domain.validity.rejectRepeats=false');
  expect(earlier).toEqual([['(not asked)'], ['(not asked)']]);
});
