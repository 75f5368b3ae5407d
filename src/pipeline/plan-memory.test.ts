/** A run's memory, worked out by hand from a tiny decoder's sizes. */
import { describe, expect, it } from 'vitest';
import { TINY_LLAMA } from '../../tests/tiny-checkpoint.js';
import {
  forwardBytes,
  parameterBytes,
  rolloutBytes,
  rolloutWorkingBytes,
  trainerBytes,
  updateBytes,
} from '../lm/footprint.js';
import { loadConfig } from './config-file.js';
import { planMemory } from './plan-memory.js';
import type { RunMemory } from './plan-memory.js';
import type { PlannedModel } from './plan-models.js';
import type { Expectations } from './plan-work.js';

const EXPECTED: Expectations = {
  validity: { label: 0.5, train: 0.5, evaluate: 0.5 },
  taskTokens: 5,
  answerTokens: 3,
  promptTokens: 4,
  questionTokens: 2,
};
const WEIGHTS = parameterBytes(TINY_LLAMA).float32;
const LAYOUT = { rank: 2, alpha: 4, targets: ['q_proj', 'v_proj'] };

const model = (name: string, settings: readonly string[], config = TINY_LLAMA): PlannedModel => ({
  name,
  settings,
  config,
  tokenizer: null,
  types: ['F32'],
  assumed: null,
  problem: null,
});

function config(arms: Readonly<Record<string, unknown>>, ...settings: string[]) {
  return loadConfig('pipelines/azr-micro.yaml', [
    'domain.types=[code_o]',
    'policy={maxNewTokens: 10, stops: []}',
    'solver={maxNewTokens: 6, stops: []}',
    'label={tasks: 40, batch: 20}',
    `train={steps: 4, batch: 12, microBatch: 8, lora: ${JSON.stringify(LAYOUT)}}`,
    'evaluate={generations: 30, batch: 16}',
    'band={min: 1, max: 2, of: 4}',
    'sandbox.workers=3',
    `arms=${JSON.stringify(arms)}`,
    ...settings,
  ]);
}
const KEEP_ALL = { headRows: null, recompute: false };
const ARMS = { base: { reward: 'none' }, propel: { reward: 'probe' } };
const MODELS = [model('generator', ['models.policy', 'models.reference']), model('solver', ['models.solver'])];

describe('the memory of a run', () => {
  const { models, process, resident, working, total, fits } = planMemory(config(ARMS), MODELS, EXPECTED, null);

  it('holds a rollout of the largest batch, an update of a micro-batch and hidden states of 64 texts', () => {
    const use = (name: string) => models[0]!.uses.find((one) => one.use === name)!;
    const rollout = rolloutBytes(TINY_LLAMA, { prompts: 1, promptTime: 4, samples: 20, newTokens: 10 });
    expect(use('rollout')).toMatchObject({ sequences: 20, tokens: 14, weights: WEIGHTS, ...rollout });
    expect(use('update')).toMatchObject({
      sequences: 8,
      tokens: 14,
      activations: updateBytes(TINY_LLAMA, LAYOUT, { batch: 8, time: 14 }, KEEP_ALL),
      ...trainerBytes(TINY_LLAMA, LAYOUT),
    });
    expect(use('hidden')).toMatchObject({ sequences: 64, tokens: 12, activations: forwardBytes(TINY_LLAMA, 64, 12) });
    const { weights, activations, cache, optimiser, gradients, total: all } = use('update');
    expect(all).toBe(weights + activations + cache + optimiser + gradients);
  });

  it('holds the solver’s attempts at 64 questions', () => {
    const size = { prompts: 64, promptTime: 12, samples: 256, newTokens: 6 };
    expect(models[1]!.uses).toMatchObject([{ use: 'rollout', sequences: 256, ...rolloutBytes(TINY_LLAMA, size) }]);
  });

  it('says which sequences are longer than the model’s positions', () => {
    const beyond = (maxPositions: number) => {
      const short = MODELS.map((one) => ({ ...one, config: { ...one.config!, maxPositions } }));
      const uses = planMemory(config(ARMS), short, EXPECTED, null).models.flatMap((one) => one!.uses);
      return uses.filter(({ beyondPositions }) => beyondPositions).map(({ use, tokens }) => `${use} ${tokens}`);
    };
    // Prompt 4 and 10 written; a question of 12 and 6 answered. Texts whose hidden states are read are cut off.
    expect(beyond(18)).toEqual([]);
    expect(beyond(17)).toEqual(['rollout 18']);
    expect(beyond(13)).toEqual(['rollout 14', 'update 14', 'rollout 18']);
  });

  it('counts the weights of every graph that stays, and the largest use once', () => {
    // Policy: without and with an adapter, the KL's reference, the update; reference: all candidates, and one probe's layers.
    expect(models.map((one) => one!.graphs)).toEqual([4 + 2, 1]);
    expect(resident).toBe(7 * WEIGHTS);
    expect(working).toBe(Math.max(...models.flatMap((one) => one!.uses.map((use) => use.total - use.weights))));
    // Two workers of the sandbox beside the first.
    expect(process).toBe(1.1 * 2 ** 30 + 2 * 64 * 2 ** 20);
    expect(total).toBe(process + resident + working);
    expect(fits).toBe(null);
  });

  it('counts one copy of weights that all graphs share', () => {
    const small = { ...config(ARMS), engine: { ...config(ARMS).engine, provider: 'cpu', memory: 'small' } } as const;
    const shared = planMemory(small, MODELS, EXPECTED, null);
    expect(shared.models.map((one) => one!.graphs)).toEqual([1, 1]);
    expect(shared.resident).toBe(2 * WEIGHTS);
    const updateOf = ({ models: planned }: RunMemory) => planned[0]!.uses.find(({ use }) => use === 'update')!;
    const plain = planMemory(config(ARMS), MODELS, EXPECTED, null);
    expect(updateOf(shared).activations).toBeLessThan(updateOf(plain).activations);
  });

  it('counts weights in the type they are computed with', () => {
    const weights = (engine: object, types: PlannedModel['types'] = ['BF16']) => {
      const planned = { ...config(ARMS), engine: { ...config(ARMS).engine, ...engine } };
      const [use] = planMemory(planned, [{ ...MODELS[0]!, types }], EXPECTED, null).models[0]!.uses;
      return use!.weights;
    };
    expect(weights({ provider: 'cuda' })).toBe(WEIGHTS / 2);
    expect(weights({ provider: 'auto' })).toBe(WEIGHTS / 2);
    expect(weights({ provider: 'cpu' })).toBe(WEIGHTS);
    expect(weights({ provider: 'webgpu' })).toBe(WEIGHTS);
    expect(weights({ provider: 'webgpu', dtype: 'float16' })).toBe(WEIGHTS / 2);
    expect(weights({ provider: 'cuda', dtype: 'float32' })).toBe(WEIGHTS);
    // Unknown, or of more than one type.
    expect(weights({ provider: 'cuda' }, null)).toBe(WEIGHTS);
    expect(weights({ provider: 'cuda' }, ['BF16', 'F32'])).toBe(WEIGHTS);
  });

  it('holds a prompt of many tokens once: 32 + 5 · 11 of 90 tokens, where whole sequences of 43 would be two', () => {
    const limited = loadConfig('pipelines/azr-micro.yaml', [
      'domain.types=[code_o]',
      'policy={maxNewTokens: 10, stops: []}',
      `train={batch: 12, microBatch: 8, microBatchTokens: 90, lora: ${JSON.stringify(LAYOUT)}}`,
      `arms=${JSON.stringify(ARMS)}`,
    ]);
    const plan = planMemory(limited, MODELS, { ...EXPECTED, promptTokens: 33 }, null);
    expect(plan.models[0]!.uses.find(({ use }) => use === 'update')).toMatchObject({
      sequences: 5,
      tokens: 43,
      activations: updateBytes(TINY_LLAMA, LAYOUT, { batch: 5, time: 11, prefix: 32 }, KEEP_ALL),
    });
  });

  it('needs no hidden states without a probe, and no update without training', () => {
    const uses = (arms: Readonly<Record<string, unknown>>) =>
      planMemory(config(arms), MODELS, EXPECTED, null).models[0]!.uses.map(({ use }) => use);
    expect(uses({ base: { reward: 'none' } })).toEqual(['rollout']);
    expect(uses({ sil: { reward: 'solver' } })).toEqual(['rollout', 'update']);
  });
});

describe('an arm’s own training', () => {
  const updates = (arms: Readonly<Record<string, unknown>>, budget: number | null = null) =>
    planMemory(config(arms), MODELS, EXPECTED, budget).models[0]!.uses.filter(({ use }) => use === 'update');
  const activations = (batch: number, layout = LAYOUT) =>
    updateBytes(TINY_LLAMA, layout, { batch, time: 14 }, KEEP_ALL);

  it('has an update of its own; arms alike have one together', () => {
    const wide = { batch: 40, microBatch: 40 };
    const arms = { ...ARMS, wide: { reward: 'valid', train: wide }, also: { reward: 'length', train: wide } };
    expect(updates(arms)).toMatchObject([
      { arms: ['propel'], sequences: 8, activations: activations(8) },
      { arms: ['wide', 'also'], sequences: 40, activations: activations(40) },
    ]);
    const { working } = planMemory(config(arms), MODELS, EXPECTED, null);
    const trainer = trainerBytes(TINY_LLAMA, LAYOUT);
    expect(working).toBe(activations(40) + trainer.optimiser + trainer.gradients);
  });

  it.each([
    [{ microBatch: 3 }, 3, LAYOUT],
    [{ batch: 4 }, 4, LAYOUT],
    [{ microBatchTokens: 30 }, 2, LAYOUT],
    [{ lora: { rank: 6 } }, 8, { ...LAYOUT, rank: 6 }],
  ])('%j', (train, sequences, layout) => {
    expect(updates({ mine: { reward: 'valid', train } })).toMatchObject([
      { sequences, activations: activations(sequences, layout), ...trainerBytes(TINY_LLAMA, layout) },
    ]);
  });

  it('writes as large batches as it trains on', () => {
    const [rollout] = planMemory(config({ mine: { reward: 'valid', train: { batch: 50 } } }), MODELS, EXPECTED, null)
      .models[0]!.uses;
    expect(rollout!.sequences).toBe(50);
  });

  it('is planned on the arm’s own policy alone', () => {
    const arms = { ...ARMS, own: { reward: 'valid', policy: 'other', train: { batch: 40, microBatch: 40 } } };
    const models = [...MODELS, model('other', ['arms.own.policy'])];
    const uses = planMemory(config(arms), models, EXPECTED, null).models.map((one) =>
      one!.uses.map(({ use, sequences }) => `${use} ${sequences}`),
    );
    expect(uses).toEqual([['rollout 20', 'update 8', 'hidden 64'], ['rollout 256'], ['rollout 40', 'update 40']]);
  });

  it('is refused by a budget that its own update passes', () => {
    const { process, resident } = planMemory(config(ARMS), MODELS, EXPECTED, null);
    const [update] = updates(
      { propel: { reward: 'probe', train: { lora: { rank: 600 } } } },
      process + resident + 500_000,
    );
    expect(update!.sequencesThatFit).toBe(0);
  });
});

describe('a budget', () => {
  it('says what fits, and how many sequences at once would', () => {
    const none = planMemory(config(ARMS), MODELS, EXPECTED, null);
    const exact = planMemory(config(ARMS), MODELS, EXPECTED, none.total);
    expect(exact.fits).toBe(true);
    const short = planMemory(config(ARMS), MODELS, EXPECTED, none.process + none.resident + none.working - 1);
    expect(short.fits).toBe(false);
    const left = none.working - 1;
    for (const { use, sequences, sequencesThatFit, total, weights } of short.models.flatMap((one) => one!.uses)) {
      // All but the largest use fit as they are.
      expect(sequencesThatFit! >= sequences, use).toBe(total - weights <= left);
    }
    const update = short.models[0]!.uses.find(({ use }) => use === 'update')!;
    const trainer = trainerBytes(TINY_LLAMA, LAYOUT);
    const needed = (n: number) =>
      updateBytes(TINY_LLAMA, LAYOUT, { batch: n, time: 14 }, KEEP_ALL) + trainer.optimiser + trainer.gradients;
    expect(needed(update.sequencesThatFit!)).toBeLessThanOrEqual(left);
    expect(needed(update.sequencesThatFit! + 1)).toBeGreaterThan(left);
  });

  it('that the weights alone pass lets nothing through', () => {
    const { models, fits } = planMemory(config(ARMS), MODELS, EXPECTED, 2 ** 30);
    expect(fits).toBe(false);
    expect(models.flatMap((one) => one!.uses.map(({ sequencesThatFit }) => sequencesThatFit))).toEqual([0, 0, 0, 0]);
  });

  it('of the configuration cuts what does not fit to what a run would have at once', () => {
    const free = planMemory(config(ARMS), MODELS, EXPECTED, null);
    const left = rolloutWorkingBytes(TINY_LLAMA, { prompts: 5, promptTime: 12, samples: 20, newTokens: 6 }) + 1000;
    const memory = `${(free.process + free.resident + left) / 1e6}MB`;
    const cut = planMemory(config(ARMS, `engine.memory=${memory}`), MODELS, EXPECTED, null);
    expect(cut.fits).toBe(true);
    expect(cut.working).toBeLessThanOrEqual(left);
    // Whole questions, each with its four attempts; of the others as many as fit.
    expect(cut.models[1]!.uses[0]).toMatchObject({ sequences: 20, uncut: 256 });
    for (const { use, sequences, uncut, sequencesThatFit } of cut.models[0]!.uses) {
      if (use !== 'rollout') expect(sequences, use).toBe(Math.min(uncut, sequencesThatFit!));
    }
    // What is given says what fits, not what a run does.
    const given = planMemory(config(ARMS, `engine.memory=${memory}`), MODELS, EXPECTED, 2 ** 30);
    expect(given.fits).toBe(false);
    expect(given.models[1]!.uses[0]).toMatchObject({ sequences: 20, uncut: 256, sequencesThatFit: 0 });
  });

  it('cannot be told of a model that is unknown', () => {
    const unknown = { ...MODELS[1]!, config: null, problem: 'not here' };
    const { models, fits } = planMemory(config(ARMS), [MODELS[0]!, unknown], EXPECTED, 2 ** 40);
    expect(models[1]).toBe(null);
    expect(fits).toBe(null);
  });
});
