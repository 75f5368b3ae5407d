// Models with random weights for benchmarks, in temporary folders.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { initialAdapter } from '../../../dist/lm/adapter.js';
import { openCheckpoint, writeCheckpoint } from '../../../dist/lm/checkpoint.js';
import { weightShapes } from '../../../dist/lm/config.js';
import { gaussian } from '../../../dist/lm/gaussian.js';
import { seededRandom } from '../../../dist/metrics/random.js';

const llama = {
  family: 'llama',
  epsilon: 1e-6,
  ropeTheta: 10000,
  ropeScaling: null,
  slidingWindow: null,
  maxPositions: 256,
  tiedHead: true,
  attentionBias: false,
};

/** The micro-world's solver. */
export const MICRO_WORLD = {
  ...llama,
  vocabulary: 280,
  width: 128,
  layers: 4,
  heads: 4,
  kvHeads: 4,
  headDim: 32,
  feedForward: 352,
};

/** Four layers of width 256, grouped queries. */
export const WIDTH_256 = {
  ...llama,
  vocabulary: 512,
  width: 256,
  layers: 4,
  heads: 4,
  kvHeads: 2,
  headDim: 64,
  feedForward: 704,
};

/** Twelve layers of width 576, grouped queries, a vocabulary of 8192: 47 million weights. */
export const WIDTH_576 = {
  ...llama,
  vocabulary: 8192,
  width: 576,
  layers: 12,
  heads: 9,
  kvHeads: 3,
  headDim: 64,
  feedForward: 1536,
};

/** LoRA of rank 16 on every linear module. */
export const LORA_16 = {
  rank: 16,
  alpha: 32,
  targets: ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj'],
};

/** An adapter of which both factors are random. */
export function randomAdapter(config, layout, seed) {
  const adapter = initialAdapter(config, layout, seed);
  const random = seededRandom(seed);
  for (const [name, { data }] of adapter.factors) {
    if (name.endsWith('lora_B')) data.set(gaussian(random, data.length, 0.02));
  }
  return adapter;
}

/** Write a model with random weights; the caller removes its folder. */
export function randomCheckpoint(config) {
  const folder = mkdtempSync(join(tmpdir(), 'propel-bench-'));
  const random = seededRandom('benchmark weights');
  const weights = new Map();
  for (const [name, shape] of weightShapes(config)) {
    const size = shape.reduce((a, b) => a * b, 1);
    const data =
      shape.length === 1
        ? new Float32Array(size).fill(1)
        : gaussian(random, size, name.includes('embed') ? 0.05 : 1 / Math.sqrt(shape[1]));
    weights.set(name, { shape, data });
  }
  writeCheckpoint(folder, config, weights, { bos: 1, eos: 2, pad: 0 });
  return { checkpoint: openCheckpoint(folder), weights };
}

/** n random token ids. */
export function randomTokens(n, vocabulary, purpose) {
  const random = seededRandom(purpose);
  return Array.from({ length: n }, () => Math.floor(random() * vocabulary));
}
