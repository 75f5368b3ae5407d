/**
 * What a decoder takes, from its configuration alone: parameters, bytes, and the operations of a token. Activations are those that the
 * graphs keep at once; what ONNX Runtime needs beside them within an operator is not counted.
 */
import { factorShapes } from './adapter.js';
import type { AdapterLayout } from './adapter.js';
import { parameterCount, projectionShapes } from './config.js';
import type { DecoderConfig } from './config.js';
import { familyOf } from './families.js';
import type { UpdateMemory } from './memory.js';

const FLOAT = 4;

/** Bytes of one parameter by the type that it is stored in. */
const TYPE_BYTES = { float32: 4, bfloat16: 2, float16: 2 } as const;
type StoredType = keyof typeof TYPE_BYTES;

const sizeOf = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

export function parameterBytes(config: DecoderConfig): Record<StoredType, number> {
  const parameters = parameterCount(config);
  const bytes = Object.entries(TYPE_BYTES).map(([type, size]) => [type, size * parameters]);
  return Object.fromEntries(bytes) as Record<StoredType, number>;
}

/** Parameters that multiply every token: all linear maps and the head; looking up an embedding multiplies nothing. */
export function multiplyingParameters(config: DecoderConfig): number {
  const layer = [...projectionShapes(config).values()].reduce((sum, shape) => sum + sizeOf(shape), 0);
  return config.layers * layer + config.vocabulary * config.width;
}

/** Of an adapter. */
export function factorCount(config: DecoderConfig, layout: AdapterLayout): number {
  return [...factorShapes(config, layout).values()].reduce((sum, shape) => sum + sizeOf(shape), 0);
}

/** Keys and values of one token in all layers. */
export function cacheBytesPerToken({ layers, kvHeads, headDim }: DecoderConfig): number {
  return 2 * layers * kvHeads * headDim * FLOAT;
}

/** Floats of one position within one layer: the stream twice, each normed, and what is added to it where that is normed too; q, k, v as
 * projected and as rotated; the heads' output by head and merged; gate, up and their product. */
function layerFloats(config: DecoderConfig): number {
  const { width, heads, kvHeads, headDim, feedForward } = config;
  const streams = familyOf(config).normsAround ? 6 : 4;
  return streams * width + 2 * (heads + 2 * kvHeads) * headDim + 2 * heads * headDim + 3 * feedForward;
}

/**
 * Of the two layers' worth that a forward pass holds at most, with one layer's attention scores before and after the softmax; of
 * sequences after a common prefix, where there is one.
 */
export function forwardBytes(config: DecoderConfig, batch: number, time: number, prefix = 0): number {
  return FLOAT * ((prefix + batch * time) * layerFloats(config) + 2 * scoreFloats(config, batch, time, prefix));
}

/** Of one layer: the prefix sees itself, a sequence the prefix and itself. */
function scoreFloats({ heads }: DecoderConfig, batch: number, time: number, prefix: number): number {
  return heads * (prefix * prefix + batch * time * (prefix + time));
}

export interface RolloutSize {
  readonly prompts: number;
  readonly promptTime: number;
  readonly samples: number;
  readonly newTokens: number;
}

/** A growing cache is there twice while it is copied into the next; sampling holds logits, probabilities and their sums. */
export function rolloutBytes(
  config: DecoderConfig,
  { prompts, promptTime, samples, newTokens }: RolloutSize,
): { readonly cache: number; readonly activations: number } {
  const prompt = prompts * promptTime * cacheBytesPerToken(config);
  const written = samples * newTokens * cacheBytesPerToken(config);
  const sampling = 4 * FLOAT * samples * config.vocabulary;
  const scores = 2 * FLOAT * samples * config.heads * (promptTime + newTokens);
  const reading = forwardBytes(config, prompts, promptTime);
  return { cache: prompt + 2 * written, activations: Math.max(reading, sampling + scores) };
}

/** All that a rollout works with beside the weights. */
export function rolloutWorkingBytes(config: DecoderConfig, size: RolloutSize): number {
  const { cache, activations } = rolloutBytes(config, size);
  return cache + activations;
}

/** Sequences of so many tokens, after a prefix that they have in common. */
export interface UpdateShape {
  readonly batch: number;
  readonly time: number;
  readonly prefix?: number;
}

/**
 * A forward pass kept for its backward one: every layer's activations and attention probabilities and the adapter's inner ones, or with
 * `recompute` those of one layer and every layer's input; of the head, which a common prefix does not reach, logits, log-probabilities and the
 * gradient of the logits, of all rows or of a chunk.
 */
export function updateBytes(
  config: DecoderConfig,
  layout: AdapterLayout,
  { batch, time, prefix = 0 }: UpdateShape,
  { headRows, recompute }: UpdateMemory,
): number {
  const rows = prefix + batch * time;
  const adapted = factorShapes(config, layout).size / 2;
  const kept = rows * layerFloats(config) + scoreFloats(config, batch, time, prefix);
  const all = config.layers * kept + rows * layout.rank * adapted;
  const layers = recompute ? all / config.layers + config.layers * rows * config.width : all;
  const head = 3 * Math.min(batch * time, headRows ?? Infinity) * config.vocabulary;
  return FLOAT * (layers + head) + forwardBytes(config, batch, time, prefix);
}

/** Values, two moments and the gathered gradients of an adapter; AdamW's results stand beside them for a moment. */
export function trainerBytes(config: DecoderConfig, layout: AdapterLayout): { optimiser: number; gradients: number } {
  const floats = FLOAT * factorCount(config, layout);
  return { optimiser: 2 * 3 * floats, gradients: 2 * floats };
}

/** Operators of a forward pass, each of which costs a start whatever its size. Counted in the graphs of the families. */
export function operatorCount(config: DecoderConfig): number {
  const { queryKeyNorm, normsAround } = familyOf(config);
  const perLayer = 40 + (queryKeyNorm ? 6 : 0) + (normsAround ? 4 : 0);
  return 60 + perLayer * config.layers;
}
