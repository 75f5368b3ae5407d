/** A decoder's sizes, worked out by hand for a tiny one and as published for real ones. */
import { describe, expect, it } from 'vitest';
import { TINY_LLAMA } from '../../tests/tiny-checkpoint.js';
import { QWEN_3B, QWEN_7B } from '../../tests/qwen-configs.js';
import { TARGET_MODULES } from './adapter.js';
import { parameterCount, parseConfig } from './config.js';
import {
  cacheBytesPerToken,
  factorCount,
  forwardBytes,
  multiplyingParameters,
  parameterBytes,
  rolloutBytes,
  trainerBytes,
  updateBytes,
} from './footprint.js';

const LAYOUT = { rank: 3, alpha: 6, targets: [...TARGET_MODULES] };
const qwen3B = parseConfig(JSON.stringify(QWEN_3B), 'config.json');
const qwen7B = parseConfig(JSON.stringify(QWEN_7B), 'config.json');

describe('parameters', () => {
  it('of a tiny decoder: 384 of embeddings, which are the head too, 1,952 a layer, 16 of the last norm', () => {
    // A layer: q and o 256, k and v 128, gate, up and down 384 each, two norms of 16.
    expect(parameterCount(TINY_LLAMA)).toBe(384 + 2 * (2 * 256 + 2 * 128 + 3 * 384 + 32) + 16);
    expect(parameterBytes(TINY_LLAMA)).toEqual({ float32: 17_216, bfloat16: 8608, float16: 8608 });
    expect(multiplyingParameters(TINY_LLAMA)).toBe(2 * 1920 + 384);
  });

  it('of Qwen2.5 are those that are published: 3.09 and 7.62 billion', () => {
    expect(parameterCount(qwen3B)).toBe(3_085_938_688);
    expect(parameterCount(qwen7B)).toBe(7_615_616_512);
  });

  it('of an adapter are rank · (in + out) a module', () => {
    // q and o 3 · 32, k and v 3 · 24, gate, up and down 3 · 40.
    expect(factorCount(TINY_LLAMA, LAYOUT)).toBe(2 * (2 * 96 + 2 * 72 + 3 * 120));
  });
});

describe('memory', () => {
  it('of a token’s keys and values: 2 · layers · key–value heads · head width floats', () => {
    expect(cacheBytesPerToken(TINY_LLAMA)).toBe(4 * 2 * 2 * 2 * 4);
    expect(cacheBytesPerToken(qwen3B)).toBe(4 * 2 * 36 * 2 * 128);
  });

  it('of a forward pass: one layer’s 232 floats a position, and its scores twice', () => {
    // 4 · 16 + 2 · 8 · 4 + 2 · 16 + 3 · 24 = 232; scores 3 · 4 heads · 5².
    expect(forwardBytes(TINY_LLAMA, 3, 5)).toBe(4 * (15 * 232 + 2 * 300));
  });

  it('of a rollout: prompts once, what is written twice, and what sampling or reading the prompts needs', () => {
    const size = { prompts: 2, promptTime: 5, samples: 6, newTokens: 7 };
    expect(rolloutBytes(TINY_LLAMA, size)).toEqual({
      cache: 128 * (2 * 5 + 2 * 6 * 7),
      activations: forwardBytes(TINY_LLAMA, 2, 5),
    });
    // With a hundred samples it is sampling: four times the logits, and the scores of 12 positions twice.
    expect(rolloutBytes(TINY_LLAMA, { ...size, samples: 100 }).activations).toBe(4 * (4 * 100 * 24 + 2 * 100 * 4 * 12));
  });

  it('of an update: every layer kept, adapters’ inner values, three times the logits, and a pass beside them', () => {
    const layers = 2 * (15 * 232 + 3 * 4 * 25);
    const adapters = 15 * 3 * 14;
    const head = 3 * 15 * 24;
    const bytes = updateBytes(TINY_LLAMA, LAYOUT, { batch: 3, time: 5 }, { headRows: null, recompute: false });
    expect(bytes).toBe(4 * (layers + adapters + head) + forwardBytes(TINY_LLAMA, 3, 5));
  });

  it('of an update that computes layers and head in parts: one of two layers, two layers’ inputs, the logits of 4 rows', () => {
    const layer = 15 * 232 + 3 * 4 * 25 + 15 * 3 * 7;
    const bytes = updateBytes(TINY_LLAMA, LAYOUT, { batch: 3, time: 5 }, { headRows: 4, recompute: true });
    expect(bytes).toBe(4 * (layer + 2 * 15 * 16 + 3 * 4 * 24) + forwardBytes(TINY_LLAMA, 3, 5));
  });

  it('of an update after a prefix of 7: its rows once, what three sequences of 5 see of it, no logits of it', () => {
    const scores = 4 * (7 * 7 + 15 * 12);
    const layers = 2 * (22 * 232 + scores);
    const [adapters, head] = [22 * 3 * 14, 3 * 15 * 24];
    const pass = 22 * 232 + 2 * scores;
    const shape = { batch: 3, time: 5, prefix: 7 };
    expect(updateBytes(TINY_LLAMA, LAYOUT, shape, { headRows: null, recompute: false })).toBe(
      4 * (layers + adapters + head + pass),
    );
  });

  it('of training: values and two moments, before and after a step, and gradients twice', () => {
    expect(trainerBytes(TINY_LLAMA, LAYOUT)).toEqual({ optimiser: 6 * 4 * 1392, gradients: 2 * 4 * 1392 });
  });
});
