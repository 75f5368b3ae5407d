/** A language model that is opened with an adapter: everything it is asked is answered with that, and training goes on with it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { filledAdapter } from '../../tests/filled-adapter.js';
import {
  addTokenizer,
  MICRO_WORLD_VOCABULARY,
  temporaryFolder,
  TINY_LLAMA,
  tinyCheckpoint,
} from '../../tests/tiny-checkpoint.js';
import { writeAdapter } from './adapter-folder.js';
import type { AdapterLayout } from './adapter.js';
import { formatConfig } from './config.js';
import type { DecoderConfig } from './config.js';
import type { EngineThread as EngineThreadType } from './language-model.js';
import { writeMergedWeights } from './merge.js';
import { freshState } from './trainer.js';
import type { PolicyBatch } from './trainer.js';

// The built module, of the same types as the source: a worker is started from `.js`.
const built = new URL('../../dist/lm/language-model.js', import.meta.url);
const { EngineThread, LanguageModel } = (await import(built.href)) as typeof import('./language-model.js');

const CONFIG: DecoderConfig = { ...TINY_LLAMA, vocabulary: MICRO_WORLD_VOCABULARY };
const TARGETS = ['q_proj', 'down_proj'];
const LAYOUTS: readonly (readonly [string, AdapterLayout])[] = [
  ['of one rank', { rank: 3, alpha: 6, targets: TARGETS }],
  [
    'of ranks of modules’ own',
    {
      rank: 3,
      alpha: 6,
      targets: TARGETS,
      modules: {
        'model.layers.0.self_attn.q_proj': { rank: 2, alpha: 5 },
        'model.layers.1.mlp.down_proj': { rank: 4, alpha: 1 },
      },
    },
  ],
];
const IDS = [1, 5, 9, 4, 3, 7];

let engine: EngineThreadType;
beforeAll(async () => {
  engine = await EngineThread.start({ provider: 'cpu', threads: 1 });
});
afterAll(() => engine.close());

const batch: PolicyBatch = {
  batch: 1,
  time: IDS.length - 1,
  ids: BigInt64Array.from(IDS.slice(0, -1), BigInt),
  labels: BigInt64Array.from(IDS.slice(1), BigInt),
  mask: new Float32Array(IDS.length - 1).fill(1),
  advantages: new Float32Array(IDS.length - 1).fill(1),
  oldLogProbs: null,
  referenceLogProbs: null,
};
const distance = (a: Float32Array, b: Float32Array): number =>
  a.reduce((most, x, i) => Math.max(most, Math.abs(x - b[i]!)), 0);

describe.each(LAYOUTS)('a model with an adapter %s', (_, layout) => {
  async function opened() {
    const [base, merged, folder] = [tinyCheckpoint(CONFIG), temporaryFolder(), temporaryFolder()];
    const adapter = filledAdapter(CONFIG, layout, 1);
    writeAdapter(folder, adapter, base);
    writeMergedWeights(base, adapter, merged);
    writeFileSync(join(merged, 'config.json'), formatConfig(CONFIG, { bos: 1, eos: 2, pad: 0 }));
    for (const place of [base, merged]) addTokenizer(place);
    return {
      adapter,
      plain: await LanguageModel.open(engine, base),
      adapted: await LanguageModel.open(engine, base, folder),
      merged: await LanguageModel.open(engine, merged),
    };
  }

  it('samples, scores and reads as the one that it is merged into', async () => {
    const { plain, adapted, merged } = await opened();
    const request = {
      prompts: [[1, 5]],
      perPrompt: 4,
      maxNewTokens: 8,
      temperature: 1,
      stops: [2],
      seed: 7,
      adapter: null,
    };
    const tokens = async (model: typeof plain) => (await model.sample(request)).map((completion) => completion.tokens);
    expect(await tokens(adapted)).toEqual(await tokens(merged));
    expect(await tokens(adapted)).not.toEqual(await tokens(plain));
    const scores = await adapted.logProbs(batch, null);
    expect(distance(scores, await merged.logProbs(batch, null))).toBeLessThan(1e-5);
    expect(distance(scores, await plain.logProbs(batch, null))).toBeGreaterThan(0.01);
    const states = async (model: typeof plain) =>
      (await model.hiddenStates({ sequences: [IDS], layers: [2], poolings: ['mean', 'last'] })).get(2)!.data;
    expect(distance(await states(adapted), await states(merged))).toBeLessThan(1e-4);
    expect(distance(await states(adapted), await states(plain))).toBeGreaterThan(0.01);
    expect(new Set([plain.hash, adapted.hash, merged.hash]).size).toBe(3);
  });

  it('is trained from where the adapter is, with no distance from its start before the first step', async () => {
    const { adapter, plain, adapted } = await opened();
    expect(adapted.adapter).toEqual(adapter);
    const trainer = await adapted.train(layout, freshState(adapter.factors));
    const referenceLogProbs = await adapted.logProbs(batch, null);
    const loss = { tokens: batch.time, clip: 0.2, kl: 0.1, entropy: 0 };
    const report = await trainer.accumulate({ ...batch, referenceLogProbs }, loss);
    expect(distance(report.logProbs, referenceLogProbs)).toBeLessThan(1e-5);
    expect(Math.abs(report.klSum)).toBeLessThan(1e-4);
    await trainer.step({ learningRate: 1e-2, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0, maxNorm: 1 });
    const after = await adapted.logProbs(batch, { layout, factors: await trainer.values() });
    const sum = (values: Float32Array): number => values.reduce((a, b) => a + b, 0);
    expect(sum(after)).toBeGreaterThan(sum(referenceLogProbs));
    await trainer.release();
    // What is asked of the checkpoint itself does not know of it.
    expect(plain.adapter).toBeNull();
  });
});
