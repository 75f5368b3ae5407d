/** Small decoders with random weights, written as Hugging Face folders for tests. */
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { writeCheckpoint } from '../src/lm/checkpoint.js';
import { weightShapes } from '../src/lm/config.js';
import type { DecoderConfig } from '../src/lm/config.js';
import { familyOf } from '../src/lm/families.js';
import { gaussian } from '../src/lm/gaussian.js';
import { seededRandom } from '../src/metrics/random.js';
import type { Tensor } from '../src/onnx/session.js';

/** Grouped queries (group 2), a head that is the embedding, no biases. */
export const TINY_LLAMA: DecoderConfig = {
  family: 'llama',
  vocabulary: 24,
  width: 16,
  layers: 2,
  heads: 4,
  kvHeads: 2,
  headDim: 4,
  feedForward: 24,
  epsilon: 1e-5,
  ropeTheta: 10000,
  ropeScaling: null,
  slidingWindow: null,
  maxPositions: 32,
  tiedHead: true,
  attentionBias: false,
};

/** Biases on q, k and v, a head of its own, heads wider than width / heads. */
export const TINY_QWEN2: DecoderConfig = {
  ...TINY_LLAMA,
  family: 'qwen2',
  headDim: 6,
  epsilon: 1e-6,
  tiedHead: false,
  attentionBias: true,
};

/** Norms on every side, a gate by GELU, and a window of 3 positions in one of two layers, with rotations of its own. */
export const TINY_GEMMA3: DecoderConfig = {
  ...TINY_LLAMA,
  family: 'gemma3_text',
  headDim: 6,
  epsilon: 1e-6,
  slidingWindow: { positions: 3, layers: [true, false], ropeTheta: 100 },
  queryScale: 5,
};

/** Weights large enough that every path matters: matrices N(0, 1/in), norms near 1, biases N(0, 0.2²), embeddings N(0, 0.3²). */
export function randomWeights(config: DecoderConfig, seed: number): Map<string, Tensor> {
  const random = seededRandom(seed);
  return new Map(
    [...weightShapes(config)].map(([name, shape]) => {
      const size = shape.reduce((a, b) => a * b, 1);
      if (name.endsWith('norm.weight')) {
        const least = 1 - familyOf(config).normShift;
        return [name, { shape, data: gaussian(random, size, 0.1).map((x) => least + x) }];
      }
      const deviation = name.includes('embed') ? 0.3 : name.endsWith('.bias') ? 0.2 : 1 / Math.sqrt(shape[1]!);
      return [name, { shape, data: gaussian(random, size, deviation) }];
    }),
  );
}

/** A folder that is removed when the test has finished. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'propel-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Write a checkpoint with random weights into a temporary folder. */
export function tinyCheckpoint(config: DecoderConfig = TINY_LLAMA, seed = 1): string {
  const folder = temporaryFolder();
  writeCheckpoint(folder, config, randomWeights(config, seed), { bos: 1, eos: 2, pad: 0 });
  return folder;
}

/** The shape of the micro-world's tokenizer: 280 tokens. */
export const MICRO_WORLD_VOCABULARY = 280;

/** Put the micro-world's tokenizer beside a checkpoint. */
export function addTokenizer(folder: string): void {
  for (const file of ['tokenizer.json', 'tokenizer_config.json']) {
    copyFileSync(new URL(`../data/micro-world/generator/${file}`, import.meta.url), join(folder, file));
  }
}

/** Rewrite `model.safetensors` with every tensor narrowed to two bytes; returns the values that the file then holds. */
export function narrowWeights(
  folder: string,
  weights: ReadonlyMap<string, Tensor>,
  type: 'BF16' | 'F16',
): Map<string, Tensor> {
  const header: Record<string, unknown> = {};
  const parts: Uint8Array[] = [];
  const narrowed = new Map<string, Tensor>();
  let at = 0;
  for (const [name, { shape, data }] of weights) {
    const halves = Uint16Array.from(data, type === 'BF16' ? toBfloat16 : toFloat16);
    header[name] = { dtype: type, shape, data_offsets: [at, at + halves.byteLength] };
    at += halves.byteLength;
    parts.push(new Uint8Array(halves.buffer));
    narrowed.set(name, { shape, data: Float32Array.from(halves, type === 'BF16' ? fromBfloat16 : fromFloat16) });
  }
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  writeFileSync(join(folder, 'model.safetensors'), Buffer.concat([length, json, ...parts]));
  return narrowed;
}

const bits = new DataView(new ArrayBuffer(4));

/** Truncation to the upper sixteen bits. */
function toBfloat16(x: number): number {
  bits.setFloat32(0, x);
  return bits.getUint16(0);
}
function fromBfloat16(half: number): number {
  bits.setUint32(0, half * 0x10000);
  return bits.getFloat32(0);
}

/** Rounding to the nearest binary16 of a number below 2¹⁵; ties go up. */
function toFloat16(x: number): number {
  const sign = x < 0 ? 0x8000 : 0;
  const magnitude = Math.abs(x);
  const exponent = Math.max(-14, Math.floor(Math.log2(magnitude || 2 ** -14)));
  const fraction = Math.round(magnitude * 2 ** (10 - exponent));
  return sign + (exponent + 14) * 1024 + fraction;
}
function fromFloat16(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 0x1f;
  const fraction = half & 0x3ff;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25));
}
