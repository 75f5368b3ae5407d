/** A rollout in parts writes what the whole writes, as every part has its own of the uniforms. */
import { describe, expect, it } from 'vitest';
import { TINY_LLAMA, TINY_QWEN2, tinyCheckpoint } from '../../tests/tiny-checkpoint.js';
import { seededRandom } from '../metrics/random.js';
import { Differentiable } from '../onnx/differentiable.js';
import { Session } from '../onnx/session.js';
import { initialAdapter } from './adapter.js';
import type { Adapter } from './adapter.js';
import { bindWeights, openCheckpoint } from './checkpoint.js';
import { Engine } from './engine.js';
import { forwardBytes, rolloutWorkingBytes } from './footprint.js';
import type { RolloutSize } from './footprint.js';
import type { RolloutRequest } from './request-checks.js';
import { partOf, rolloutInParts, rolloutParts } from './rollout-parts.js';
import { groupedSampling, singleSampling } from './sampling.js';
import type { Sampling } from './sampling.js';
import { emitPrompts, emitStep } from './step-graphs.js';
import { stepRollout } from './step-rollout.js';

const rows = (most: number) => (size: RolloutSize) => size.samples <= most;
const REQUEST: RolloutRequest = {
  prompts: [[1, 5], [1, 9, 3, 20, 11], [4]],
  perPrompt: 4,
  maxNewTokens: 12,
  temperature: 1,
  stops: [2, 3],
  seed: 11,
  adapter: null,
};
const LAYOUT = { rank: 2, alpha: 4, targets: ['q_proj', 'down_proj'] } as const;

function randomAdapter(seed: number): Adapter {
  const adapter = initialAdapter(TINY_LLAMA, { ...LAYOUT, targets: [...LAYOUT.targets] }, seed);
  const random = seededRandom(seed);
  for (const { data } of adapter.factors.values()) data.forEach((_, i) => (data[i] = random() - 0.5));
  return adapter;
}

describe('the parts of a rollout', () => {
  const shape = { promptLengths: [2, 5, 1], groups: 1, perPrompt: 4, maxNewTokens: 12 };

  it('are one, where all of it fits', () => {
    expect(rolloutParts(shape, rows(12))).toEqual([{ prompts: [0, 3], samples: [0, 4] }]);
  });

  it('are whole prompts, as many as fit', () => {
    expect(rolloutParts(shape, rows(11))).toEqual([
      { prompts: [0, 2], samples: [0, 4] },
      { prompts: [2, 3], samples: [0, 4] },
    ]);
  });

  it('are like shares of a prompt’s samples, where those do not fit: 4 in twos rather than three and one', () => {
    expect(rolloutParts({ ...shape, promptLengths: [2] }, rows(3))).toEqual([
      { prompts: [0, 1], samples: [0, 2] },
      { prompts: [0, 1], samples: [2, 4] },
    ]);
  });

  it('are single samples at the least, even of a prompt too long for that', () => {
    const parts = rolloutParts(shape, ({ promptTime, samples }) => promptTime < 5 && samples <= 4);
    expect(parts.map(({ prompts, samples }) => [...prompts, ...samples])).toEqual([
      [0, 1, 0, 4],
      ...[0, 1, 2, 3].map((sample) => [1, 2, sample, sample + 1]),
      [2, 3, 0, 4],
    ]);
  });

  it('have as many prompts of every group', () => {
    const grouped = { promptLengths: [1, 2, 3, 4], groups: 2, perPrompt: 2, maxNewTokens: 5 };
    const asked: RolloutSize[] = [];
    const parts = rolloutParts(grouped, (size) => asked.push(size) > 0 && size.samples <= 4);
    expect(parts).toEqual([
      { prompts: [0, 1], samples: [0, 2] },
      { prompts: [1, 2], samples: [0, 2] },
    ]);
    // The first prompts of both groups are 1 and 3 tokens long, the second 2 and 4.
    expect(asked).toContainEqual({ prompts: 2, promptTime: 3, samples: 4, newTokens: 5 });
    expect(asked).toContainEqual({ prompts: 4, promptTime: 4, samples: 8, newTokens: 5 });
  });
});

describe('a part', () => {
  it('has the uniforms of its rows, step by step', () => {
    const sampling: Sampling = {
      prompts: [[1], [2, 2]],
      groups: 1,
      perPrompt: 2,
      samples: 4,
      maxNewTokens: 2,
      temperature: 1,
      stops: [],
      uniforms: Float32Array.of(0, 1, 2, 3, 10, 11, 12, 13),
      factors: {},
    };
    const second = partOf(sampling, { prompts: [1, 2], samples: [0, 2] });
    expect(second).toMatchObject({ prompts: [[2, 2]], perPrompt: 2, samples: 2 });
    expect([...second.uniforms]).toEqual([2, 3, 12, 13]);
    expect([...partOf(sampling, { prompts: [0, 2], samples: [1, 2] }).uniforms]).toEqual([1, 3, 11, 13]);
  });
});

describe('a budget', () => {
  it.each([
    ['whole prompts', { prompts: 2, promptTime: 5, samples: 8, newTokens: 12 }],
    ['some of a prompt’s samples', { prompts: 1, promptTime: 5, samples: 2, newTokens: 12 }],
    ['single samples', { prompts: 1, promptTime: 1, samples: 1, newTokens: 1 }],
  ])('that has room for %s gives the tokens of a rollout without one', async (_what, size) => {
    for (const config of [TINY_LLAMA, TINY_QWEN2]) {
      const folder = tinyCheckpoint(config);
      const free = await Engine.create({ provider: 'cpu', threads: 1 });
      const tight = await Engine.create({ provider: 'cpu', threads: 1, passBytes: rolloutWorkingBytes(config, size) });
      const [whole, cut] = [await free.rollout(folder, REQUEST), await tight.rollout(folder, REQUEST)];
      expect(cut.map(({ tokens, stopped }) => [tokens, stopped])).toEqual(
        whole.map(({ tokens, stopped }) => [tokens, stopped]),
      );
      cut.forEach(({ logProbs }, i) =>
        logProbs.forEach((logProb, t) => expect(logProb).toBeCloseTo(whole[i]!.logProbs[t]!, 5)),
      );
      await free.close();
      await tight.close();
    }
  });

  it('cuts a rollout of several adapters alike', async () => {
    const folder = tinyCheckpoint(TINY_LLAMA);
    const groups = [
      { adapter: randomAdapter(1), prompts: [[1, 5], [4]], seed: 3 },
      { adapter: randomAdapter(2), prompts: [[1, 9, 3]], seed: 4 },
    ];
    const request = { ...REQUEST, groups };
    const size = { prompts: 2, promptTime: 3, samples: 4, newTokens: 12 };
    const free = await Engine.create({ provider: 'cpu', threads: 1 });
    const tight = await Engine.create({
      provider: 'cpu',
      threads: 1,
      passBytes: rolloutWorkingBytes(TINY_LLAMA, size),
    });
    const tokens = async (engine: Engine) =>
      (await engine.rolloutGroups(folder, request)).map((group) => group.map((completion) => completion.tokens));
    expect(await tokens(tight)).toEqual(await tokens(free));
    const shape = { promptLengths: [2, 1, 3, 3], groups: 2, perPrompt: 4, maxNewTokens: 12 };
    expect(
      rolloutParts(shape, (part) => rolloutWorkingBytes(TINY_LLAMA, part) <= rolloutWorkingBytes(TINY_LLAMA, size)),
    ).toHaveLength(4);
    expect(groupedSampling(request).groups).toBe(2);
    await free.close();
    await tight.close();
  });

  it('cuts a rollout that goes token by token alike', async () => {
    const checkpoint = openCheckpoint(tinyCheckpoint(TINY_LLAMA));
    const session = (emit: typeof emitPrompts) => {
      const g = new Differentiable('fused');
      emit(g, TINY_LLAMA, bindWeights(g, checkpoint), null, null);
      return Session.create(g, { provider: 'cpu', threads: 1, externalFolder: checkpoint.weightsFolder });
    };
    const sessions = { prompt: await session(emitPrompts), step: await session(emitStep) };
    const sizes: number[] = [];
    const run = (part: Sampling) => {
      sizes.push(part.samples);
      const { prompt, step } = sessions;
      return stepRollout({ prompt: (feeds) => prompt.run(feeds), step: (feeds) => step.run(feeds) }, part, null);
    };
    const tokens = async (most: number) =>
      (await rolloutInParts(singleSampling(REQUEST), rows(most), run)).map((completion) => completion.tokens);
    const whole = await tokens(12);
    expect(await tokens(8)).toEqual(whole);
    expect(await tokens(3)).toEqual(whole);
    expect(sizes).toEqual([12, 8, 4, 2, 2, 2, 2, 2, 2]);
    await sessions.prompt.release();
    await sessions.step.release();
  });

  it('cuts hidden states, which stay the same', async () => {
    const folder = tinyCheckpoint(TINY_LLAMA);
    const sequences = [[1, 5, 6], [2], [3, 4, 5, 6, 7], [8, 9, 10]];
    const request = { sequences, layers: [0, 2], poolings: ['mean', 'last'] } as const;
    const free = await Engine.create({ provider: 'cpu', threads: 1 });
    const tight = await Engine.create({ provider: 'cpu', threads: 1, passBytes: forwardBytes(TINY_LLAMA, 1, 3) });
    const [whole, cut] = [await free.hiddenStates(folder, request), await tight.hiddenStates(folder, request)];
    for (const layer of request.layers) {
      cut.get(layer)!.data.forEach((state, i) => expect(state).toBeCloseTo(whole.get(layer)!.data[i]!, 5));
    }
    await free.close();
    await tight.close();
  });
});
