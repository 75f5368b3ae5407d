/** Rollouts: their log-probabilities are the policy's, and their tokens follow from policy and uniforms alone. */
import { describe, expect, it } from 'vitest';
import { TINY_GEMMA3, TINY_LLAMA, TINY_QWEN2, tinyCheckpoint } from '../../tests/tiny-checkpoint.js';
import { filledAdapter } from '../../tests/filled-adapter.js';
import { seededRandom } from '../metrics/random.js';
import type { Dialect } from '../onnx/graph.js';
import { floatData, floats, integers, scalar, Session } from '../onnx/session.js';
import { initialAdapter } from './adapter.js';
import type { Adapter } from './adapter.js';
import { openCheckpoint, readWeights, writeCheckpoint } from './checkpoint.js';
import { Engine } from './engine.js';
import type { Completion, RolloutRequest } from './request-checks.js';
import { projectionShapes } from './config.js';
import type { DecoderConfig } from './config.js';
import { rolloutGraph } from './rollout-graph.js';
import type { TokenBatch } from './batch-rows.js';

const engine = await Engine.create({ provider: 'cpu', threads: 1 });

const PROMPTS = [[1, 5], [1, 9, 3, 20, 11], [4]];
const REQUEST: RolloutRequest = {
  prompts: PROMPTS,
  perPrompt: 4,
  maxNewTokens: 12,
  temperature: 1,
  stops: [2, 3],
  seed: 11,
  adapter: null,
};

const randomAdapter = (config: DecoderConfig): Adapter =>
  filledAdapter(config, { rank: 3, alpha: 6, targets: ['q_proj', 'v_proj', 'up_proj', 'o_proj'] }, 1);

/** log π of a completion's tokens by the graph that training uses. */
async function policyLogProbs(
  folder: string,
  prompt: readonly number[],
  tokens: readonly number[],
  adapter: Adapter | null,
): Promise<number[]> {
  const sequence = [...prompt, ...tokens];
  const ids = BigInt64Array.from(sequence.slice(0, -1), BigInt);
  const labels = BigInt64Array.from(sequence.slice(1), BigInt);
  const batch: TokenBatch = { batch: 1, time: ids.length, ids, labels, mask: new Float32Array(ids.length) };
  return [...(await engine.logProbs(folder, batch, adapter))].slice(prompt.length - 1);
}

async function worstDifference(
  folder: string,
  request: RolloutRequest,
  completions: readonly Completion[],
): Promise<number> {
  let worst = 0;
  for (const [i, { tokens, logProbs }] of completions.entries()) {
    const prompt = request.prompts[Math.floor(i / request.perPrompt)]!;
    const policy = await policyLogProbs(folder, prompt, tokens, request.adapter);
    expect(policy).toHaveLength(logProbs.length);
    policy.forEach((lp, t) => (worst = Math.max(worst, Math.abs(lp - logProbs[t]!))));
  }
  return worst;
}

describe.each([
  ['a llama, 2 query heads a key–value head', TINY_LLAMA],
  ['a llama without grouped queries', { ...TINY_LLAMA, kvHeads: 4 }],
  ['a llama with one key–value head', { ...TINY_LLAMA, kvHeads: 1 }],
  ['a qwen2 with biases and a head of its own', TINY_QWEN2],
  ['a gemma3, with a window in one of two layers', TINY_GEMMA3],
] as const)('rollouts of %s', (_, config) => {
  it('have the log-probabilities of the update’s graph to 1e-5, for prompts of any length', async () => {
    const folder = tinyCheckpoint(config);
    const completions = await engine.rollout(folder, REQUEST);
    expect(completions).toHaveLength(12);
    expect(await worstDifference(folder, REQUEST, completions)).toBeLessThan(1e-5);
  });

  it('have them with an adapter too, and with one sample a prompt', async () => {
    const folder = tinyCheckpoint(config);
    for (const perPrompt of [1, 3]) {
      const request = { ...REQUEST, perPrompt, adapter: randomAdapter(config) };
      expect(await worstDifference(folder, request, await engine.rollout(folder, request))).toBeLessThan(1e-5);
    }
  });
});

describe('several adapters in one batch', () => {
  const { prompts: _, seed: __, adapter: ___, ...common } = REQUEST;
  const adapters = [1, 2, 3].map((seed) => {
    const adapter = randomAdapter(TINY_LLAMA);
    const random = seededRandom(seed);
    return {
      ...adapter,
      factors: new Map(
        [...adapter.factors].map(([name, t]) => [name, { ...t, data: t.data.map((x) => x * (0.5 + random())) }]),
      ),
    };
  });
  const groups = [[[1, 5], [4]], [[1, 9, 3, 20, 11]], [[4], [1, 5], [2, 6, 6]]].map((prompts, i) => ({
    prompts,
    seed: 20 + i,
    adapter: adapters[i]!,
  }));

  it.each([
    ['a llama', TINY_LLAMA],
    ['a llama without grouped queries', { ...TINY_LLAMA, kvHeads: 4 }],
  ])('draw what each would alone, of prompts of any number and length: %s', async (_name, config) => {
    const folder = tinyCheckpoint(config);
    const own =
      config.kvHeads === TINY_LLAMA.kvHeads ? groups : groups.map((g) => ({ ...g, adapter: randomAdapter(config) }));
    const together = await engine.rolloutGroups(folder, { ...common, groups: own });
    expect(together.map((completions) => completions.length)).toEqual([8, 4, 12]);
    for (const [i, group] of own.entries()) {
      const alone = await engine.rollout(folder, { ...common, ...group });
      expect(together[i]!.map((c) => [c.tokens, c.stopped])).toEqual(alone.map((c) => [c.tokens, c.stopped]));
      alone.forEach(({ logProbs }, sample) =>
        logProbs.forEach((lp, t) => expect(Math.abs(lp - together[i]![sample]!.logProbs[t]!)).toBeLessThan(1e-5)),
      );
    }
  });

  it('must be of one layout, each with a prompt', async () => {
    const folder = tinyCheckpoint();
    const wider = initialAdapter(TINY_LLAMA, { rank: 4, alpha: 6, targets: ['q_proj'] }, 1);
    const other = { prompts: [[1]], seed: 1, adapter: wider };
    await expect(async () => engine.rolloutGroups(folder, { ...common, groups: [groups[0]!, other] })).rejects.toThrow(
      'adapters in one batch must have one rank, alpha and list of targets',
    );
    const empty = { ...groups[1]!, prompts: [] };
    await expect(async () => engine.rolloutGroups(folder, { ...common, groups: [groups[0]!, empty] })).rejects.toThrow(
      'adapter 1 of the batch has no prompts',
    );
    expect(await engine.rolloutGroups(folder, { ...common, groups: [] })).toEqual([]);
  });
});

describe('a seed', () => {
  it('gives the same tokens and log-probabilities again, another seed others', async () => {
    const folder = tinyCheckpoint();
    const first = await engine.rollout(folder, REQUEST);
    expect(await engine.rollout(folder, REQUEST)).toEqual(first);
    const other = await engine.rollout(folder, { ...REQUEST, seed: 12 });
    expect(other.map((c) => c.tokens)).not.toEqual(first.map((c) => c.tokens));
  });

  it('gives the samples of one prompt different tokens', async () => {
    const completions = await engine.rollout(tinyCheckpoint(), { ...REQUEST, prompts: [[1]], perPrompt: 8 });
    expect(new Set(completions.map((c) => c.tokens.join())).size).toBe(8);
  });
});

describe('a completion', () => {
  it('ends with the first stop token it draws, and says that it stopped', async () => {
    const completions = await engine.rollout(tinyCheckpoint(), { ...REQUEST, perPrompt: 20 });
    const stopped = completions.filter((c) => c.stopped);
    expect(stopped.length).toBeGreaterThan(10);
    for (const { tokens } of stopped) {
      expect([2, 3]).toContain(tokens.at(-1));
      expect(tokens.slice(0, -1).some((t) => t === 2 || t === 3)).toBe(false);
    }
  });

  it('is cut at maxNewTokens, and says that it did not stop', async () => {
    const completions = await engine.rollout(tinyCheckpoint(), { ...REQUEST, perPrompt: 20, maxNewTokens: 3 });
    const cut = completions.filter((c) => !c.stopped);
    expect(cut.length).toBeGreaterThan(10);
    for (const { tokens } of cut) expect(tokens).toHaveLength(3);
  });

  it('runs to maxNewTokens when there is no stop token', async () => {
    const completions = await engine.rollout(tinyCheckpoint(), { ...REQUEST, stops: [] });
    for (const { tokens, stopped } of completions) {
      expect(tokens).toHaveLength(12);
      expect(stopped).toBe(false);
    }
  });

  it('is one token long when every token is a stop', async () => {
    const stops = Array.from({ length: TINY_LLAMA.vocabulary }, (_, i) => i);
    const completions = await engine.rollout(tinyCheckpoint(), { ...REQUEST, stops });
    for (const { tokens, stopped } of completions) {
      expect(tokens).toHaveLength(1);
      expect(stopped).toBe(true);
    }
  });

  it('may start from an unlikely prompt of one token and fill every position the model has', async () => {
    const request = { ...REQUEST, prompts: [[23]], perPrompt: 2, maxNewTokens: 31, stops: [] };
    const folder = tinyCheckpoint();
    const completions = await engine.rollout(folder, request);
    expect(completions[0]!.tokens).toHaveLength(31);
    expect(await worstDifference(folder, request, completions)).toBeLessThan(1e-5);
  });
});

describe('an adapter', () => {
  it('gives the rollout of weights merged with scale · B A', async () => {
    const folder = tinyCheckpoint();
    const { config } = openCheckpoint(folder);
    const adapter = randomAdapter(config);
    const weights = readWeights(openCheckpoint(folder));
    for (let layer = 0; layer < config.layers; layer++) {
      for (const [module, [out, into]] of projectionShapes(config)) {
        const name = `model.layers.${layer}.${module}`;
        const A = adapter.factors.get(`${name}.lora_A`)?.data;
        const B = adapter.factors.get(`${name}.lora_B`)?.data;
        if (!A || !B) continue;
        const merged = weights.get(`${name}.weight`)!.data;
        for (let o = 0; o < out; o++) {
          for (let i = 0; i < into; i++) {
            for (let r = 0; r < 3; r++) merged[o * into + i]! += 2 * B[o * 3 + r]! * A[r * into + i]!;
          }
        }
      }
    }
    const mergedFolder = tinyCheckpoint();
    writeCheckpoint(mergedFolder, config, weights, { bos: 1, eos: 2, pad: 0 });
    const merged = await engine.rollout(mergedFolder, REQUEST);
    const adapted = await engine.rollout(folder, { ...REQUEST, adapter });
    expect(adapted.map((c) => c.tokens)).toEqual(merged.map((c) => c.tokens));
    adapted.forEach((c, i) =>
      c.logProbs.forEach((lp, t) => expect(Math.abs(lp - merged[i]!.logProbs[t]!)).toBeLessThan(1e-5)),
    );
    expect(await engine.rollout(folder, REQUEST)).not.toEqual(merged);
  });

  it('changes nothing while its B is zero', async () => {
    const folder = tinyCheckpoint();
    const adapter = initialAdapter(TINY_LLAMA, { rank: 2, alpha: 2, targets: ['q_proj'] }, 1);
    const [adapted, base] = [
      await engine.rollout(folder, { ...REQUEST, adapter }),
      await engine.rollout(folder, REQUEST),
    ];
    expect(adapted.map((c) => c.tokens)).toEqual(base.map((c) => c.tokens));
  });
});

/** A rollout of the graph itself, from given uniforms [maxNew][samples]. */
async function rolloutFrom(
  folder: string,
  dialect: Dialect,
  prompts: readonly (readonly number[])[],
  uniforms: readonly (readonly number[])[],
  { temperature = 1, stops = [2], pad = 0 } = {},
): Promise<{ tokens: number[][]; logProbs: number[][] }> {
  const session = await Session.create(rolloutGraph(openCheckpoint(folder), null, dialect), {
    provider: 'cpu',
    threads: 1,
    externalFolder: folder,
  });
  const time = Math.max(...prompts.map((p) => p.length));
  const padded = prompts.flatMap((p) => [...p, ...Array.from({ length: time - p.length }, () => pad)]);
  const out = await session.run({
    prompts: integers(BigInt64Array.from(padded, BigInt), [prompts.length, time]),
    promptLengths: integers(
      BigInt64Array.from(prompts, (p) => BigInt(p.length)),
      [prompts.length],
    ),
    uniforms: floats(Float32Array.from(uniforms.flat()), [uniforms.length, uniforms[0]!.length]),
    stops: integers(BigInt64Array.from(stops, BigInt), [stops.length]),
    temperature: scalar(temperature),
  });
  await session.release();
  const samples = uniforms[0]!.length;
  const steps = out['tokens']!.dims[0]!;
  const columns = (values: readonly number[]): number[][] =>
    Array.from({ length: samples }, (_, s) => Array.from({ length: steps }, (__, t) => values[t * samples + s]!));
  return {
    tokens: columns(Array.from(out['tokens']!.data as BigInt64Array, Number)),
    logProbs: columns([...floatData(out['logProbs'])]),
  };
}

function randomUniforms(steps: number, samples: number, seed: number): number[][] {
  const random = seededRandom(seed);
  return Array.from({ length: steps }, () => Array.from({ length: samples }, () => random()));
}

describe.each(['fused', 'standard'] as const)('the rollout’s graph in the %s dialect', (dialect) => {
  it('writes of prompts in one batch what it writes of each alone', async () => {
    const folder = tinyCheckpoint();
    const uniforms = randomUniforms(8, 6, 3);
    const options = { stops: [99] };
    const together = await rolloutFrom(folder, dialect, PROMPTS, uniforms, options);
    for (const [p, prompt] of PROMPTS.entries()) {
      const own = uniforms.map((row) => row.slice(2 * p, 2 * p + 2));
      const alone = await rolloutFrom(folder, dialect, [prompt], own, options);
      expect(together.tokens.slice(2 * p, 2 * p + 2)).toEqual(alone.tokens);
      alone.logProbs.flat().forEach((lp, i) => {
        expect(Math.abs(lp - together.logProbs.slice(2 * p, 2 * p + 2).flat()[i]!)).toBeLessThan(1e-5);
      });
    }
  });

  it('does not read the padding of a shorter prompt', async () => {
    const folder = tinyCheckpoint();
    const uniforms = randomUniforms(6, 3, 4);
    const [zeros, sevens] = [
      await rolloutFrom(folder, dialect, PROMPTS, uniforms, { stops: [99], pad: 0 }),
      await rolloutFrom(folder, dialect, PROMPTS, uniforms, { stops: [99], pad: 7 }),
    ];
    expect(sevens).toEqual(zeros);
  });

  it('ends as soon as every sample has stopped, writing nothing more of those that stopped before', async () => {
    const folder = tinyCheckpoint();
    const uniforms = randomUniforms(20, 3, 5);
    const free = await rolloutFrom(folder, dialect, PROMPTS, uniforms, { stops: [99] });
    // Stop tokens that end the samples after 2, 4 and 1 tokens at the latest.
    const stops = [free.tokens[0]![1]!, free.tokens[1]![3]!, free.tokens[2]![0]!];
    const ended = free.tokens.map((tokens) => tokens.findIndex((t) => stops.includes(t)) + 1);
    const stopped = await rolloutFrom(folder, dialect, PROMPTS, uniforms, { stops });
    expect(stopped.tokens[0]).toHaveLength(Math.max(...ended));
    stopped.tokens.forEach((tokens, s) => {
      expect(tokens.slice(0, ended[s])).toEqual(free.tokens[s]!.slice(0, ended[s]));
      expect(tokens.slice(ended[s]).every((t) => t === 0)).toBe(true);
      expect(stopped.logProbs[s]!.slice(ended[s]).every((lp) => lp === 0)).toBe(true);
    });
  });

  it('draws the token whose share of the cumulative distribution holds the uniform', async () => {
    const folder = tinyCheckpoint();
    // 4096 uniforms, evenly spaced: token counts are the probabilities times 4096, within the 2 that the ends of a share can cut.
    const n = 4096;
    const uniforms = [Array.from({ length: n }, (_, i) => (i + 0.5) / n)];
    for (const temperature of [1, 0.5, 3]) {
      const { tokens } = await rolloutFrom(folder, dialect, [[1, 5]], uniforms, { temperature });
      const p = await nextTokenDistribution(folder, [1, 5], temperature);
      const counts = p.map((_, token) => tokens.filter(([t]) => t === token).length);
      counts.forEach((count, token) => expect(Math.abs(count - n * p[token]!)).toBeLessThanOrEqual(2));
    }
  });

  it('draws a token of positive probability for uniforms 0 and 1, where others have none', async () => {
    // A head so large that all but a few tokens' probabilities underflow.
    const folder = tinyCheckpoint();
    const { config } = openCheckpoint(folder);
    const weights = readWeights(openCheckpoint(folder));
    weights.get('model.norm.weight')!.data.forEach((_, i, w) => (w[i] = 300));
    writeCheckpoint(folder, config, weights, { bos: 1, eos: 2, pad: 0 });
    const { tokens, logProbs } = await rolloutFrom(folder, dialect, [[1], [5], [9]], [[0, 1, 0.5, 0, 1, 1]], {});
    expect(tokens.flat()).toHaveLength(6);
    expect(logProbs.flat().every((lp) => lp > -80 && lp <= 0)).toBe(true);
  });
});

describe('sampling by the engine', () => {
  it('follows the softmax: χ² of 4096 first tokens below its 99.9% quantile', async () => {
    const folder = tinyCheckpoint();
    const request = { ...REQUEST, prompts: [[1, 5]], perPrompt: 4096, maxNewTokens: 1 };
    const completions = await engine.rollout(folder, request);
    const p = await nextTokenDistribution(folder, [1, 5], 1);
    const chiSquare = p.reduce((sum, share, token) => {
      const count = completions.filter((c) => c.tokens[0] === token).length;
      return sum + (count - 4096 * share) ** 2 / (4096 * share);
    }, 0);
    // 23 degrees of freedom.
    expect(chiSquare).toBeLessThan(49.7);
  });

  it('reports log-probabilities of the tempered distribution', async () => {
    const folder = tinyCheckpoint();
    const request = { ...REQUEST, prompts: [[1, 5]], perPrompt: 50, maxNewTokens: 1, temperature: 0.5 };
    const p = await nextTokenDistribution(folder, [1, 5], 0.5);
    for (const { tokens, logProbs } of await engine.rollout(folder, request)) {
      expect(Math.abs(logProbs[0]! - Math.log(p[tokens[0]!]!))).toBeLessThan(1e-5);
    }
  });
});

/** Probabilities of the token after a prompt: from log-probabilities at temperature 1, sharpened in float64. */
async function nextTokenDistribution(
  folder: string,
  prompt: readonly number[],
  temperature: number,
): Promise<number[]> {
  const { vocabulary } = openCheckpoint(folder).config;
  const logProbs = await Promise.all(
    Array.from({ length: vocabulary }, async (_, token) => (await policyLogProbs(folder, prompt, [token], null))[0]!),
  );
  const unnormalised = logProbs.map((lp) => Math.exp(lp / temperature));
  const total = unnormalised.reduce((a, b) => a + b, 0);
  return unnormalised.map((x) => x / total);
}

describe('a request that cannot be', () => {
  const folder = (): string => tinyCheckpoint();
  it.each([
    [{ prompts: [[1], []] }, 'sequence 1 has no tokens'],
    [{ prompts: [[1, 24]] }, "sequence 0 has token 24, the model's are 0 to 23"],
    [{ prompts: [[1, -1]] }, "sequence 0 has token -1, the model's are 0 to 23"],
    [{ stops: [24] }, "sequence 0 has token 24, the model's are 0 to 23"],
    [{ maxNewTokens: 28 }, "33 tokens are more than the model's 32 positions: shorten the texts"],
    [{ maxNewTokens: 0 }, '0 new tokens: at least 1'],
    [{ perPrompt: 0 }, '0 samples a prompt: at least 1'],
    [{ temperature: 0 }, 'temperature 0 is not a number above 0'],
    [{ temperature: Number.NaN }, 'temperature NaN is not a number above 0'],
  ])('%j is refused by name', async (change, message) => {
    await expect(engine.rollout(folder(), { ...REQUEST, ...change })).rejects.toMatchObject({
      name: 'UserError',
      message,
    });
  });

  it('hidden states of a layer that the model does not have are refused', async () => {
    const request = { sequences: [[1]], layers: [3], poolings: ['mean'] } as const;
    await expect(engine.hiddenStates(folder(), request)).rejects.toThrow('the model has no hidden states 3');
  });
  it('no prompts give no completions', async () => {
    expect(await engine.rollout(folder(), { ...REQUEST, prompts: [] })).toEqual([]);
  });
});
