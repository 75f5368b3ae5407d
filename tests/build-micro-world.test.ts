/** The micro-world is built from nothing: corpus, tokenizer, models, cards. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { checkpointHash, openCheckpoint } from '../src/lm/checkpoint.js';
import { Tokenizer } from '../src/lm/tokenizer.js';
import type * as Build from '../src/pipeline/micro-world/build.js';
import { MODELS } from '../src/pipeline/micro-world/recipe.js';

// The sandbox's workers are compiled, so what starts them is too.
const built = new URL('../dist/pipeline/micro-world/build.js', import.meta.url);
const { buildMicroWorld } = (await import(built.href)) as typeof Build;

const folder = mkdtempSync(join(tmpdir(), 'propel-world-'));
afterAll(() => rmSync(folder, { recursive: true }));

const silent = () => ({ update: () => {}, done: () => {} });

/** The recipe's models, made small. */
const models = MODELS.map((recipe) => ({
  ...recipe,
  config: { ...recipe.config, layers: 1, width: 32, heads: 2, kvHeads: 2, headDim: 16, feedForward: 32 },
  training: {
    ...recipe.training,
    stages: recipe.training.stages.map((stage) => ({ ...stage, documents: 2400, learningRate: 0.02, warmUpSteps: 10 })),
  },
}));

function build(name: string) {
  const [cache, target] = [join(folder, name, 'cache'), join(folder, name, 'target')];
  const corpus = { seed: 3, trainingDocuments: 600, trainingFunctions: 300, heldOutDocuments: 50 };
  return buildMicroWorld({ corpus, models, cache, target, progress: silent }).then(() => target);
}

it('makes checkpoints that open, with cards that fit them, and learns', async () => {
  const target = await build('first');
  for (const { name, config, training } of models) {
    const model = join(target, name);
    const card = JSON.parse(readFileSync(join(model, 'card.json'), 'utf8')) as {
      sha256: string;
      heldOut: Record<string, { taskLoss: number }>;
      parameters: number;
    };
    expect(card.sha256).toBe(checkpointHash(model));
    expect(openCheckpoint(model).config).toMatchObject({ layers: 1, family: config.family });
    expect((await Tokenizer.open(model)).vocabulary).toBeLessThanOrEqual(config.vocabulary);
    const kinds = new Set(training.stages.flatMap(({ mixture }) => Object.keys(mixture)));
    expect(new Set(Object.keys(card.heldOut))).toEqual(kinds);
    // An untrained model knows nothing: log 280 = 5.6 nats a token.
    expect(card.heldOut['code_o question']!.taskLoss).toBeLessThan(4);
    expect(readFileSync(join(model, 'README.md'), 'utf8')).toContain(card.sha256);
  }
}, 240_000);
