/** How a GGUF file scales its rotations, in its metadata or in tensors of their own, as the `rope_scaling` of a `config.json`. */
import { inOneLine } from '../../errors.js';
import { ropeFrequencies } from '../rope.js';
import { shortestFloat32 } from './metadata.js';
import { readWeights } from './weights.js';
import type { GgufFile, GgufTensor } from './reader.js';

/** Tensors that are no weights of the model: divisors of the frequencies, Llama 3's or longrope's. */
const FREQUENCIES = 'rope_freqs.weight';
const SHORT = 'rope_factors_short.weight';
const LONG = 'rope_factors_long.weight';
export const ROPE_TENSORS: ReadonlySet<string> = new Set([FREQUENCIES, SHORT, LONG]);

/** Of every Llama 3.1, 3.2 and 3.3; only the factor differs. */
const LLAMA3 = { low: 1, high: 4, positions: 8192 };
/** How far float32 arithmetic, by which the divisors were computed, may be off. */
const TOLERANCE = 1e-5;

/** What a frequency is computed from. */
export interface Rotation {
  readonly theta: number;
  /** Numbers of a head that are rotated. */
  readonly rotated: number;
}

/** @param name the architecture's. @returns null for none. @throws UserError naming what is not known */
export function readRopeScaling(file: GgufFile, name: string, rotation: Rotation): Record<string, unknown> | null {
  const { metadata, tensors } = file;
  const key = (rest: string) => `${name}.rope.scaling.${rest}`;
  const divisors = (tensor: string): number[] | null => divisorsOf(file, tensor, rotation.rotated / 2);
  const type = metadata.text(key('type')) ?? (tensors.some((tensor) => tensor.name === LONG) ? 'longrope' : 'none');
  const frequencies = divisors(FREQUENCIES);
  if (frequencies !== null) {
    if (type !== 'none') metadata.refuse(`it has ${FREQUENCIES} and the ${key('type')} '${inOneLine(type)}' at once`);
    return llama3(file, frequencies, rotation);
  }
  const factor = metadata.number(key('factor'));
  const original = metadata.whole(key('original_context_length'));
  switch (type) {
    case 'none':
      return null;
    case 'linear':
      return { rope_type: 'linear', factor: metadata.required(factor, key('factor')) };
    case 'yarn':
      return {
        rope_type: 'yarn',
        factor: metadata.required(factor, key('factor')),
        original_max_position_embeddings: metadata.required(original, key('original_context_length')),
        ...present('beta_fast', metadata.number(key('yarn_beta_fast'))),
        ...present('beta_slow', metadata.number(key('yarn_beta_slow'))),
      };
    case 'longrope':
      return {
        rope_type: 'longrope',
        short_factor: metadata.required(divisors(SHORT) ?? undefined, SHORT),
        long_factor: metadata.required(divisors(LONG) ?? undefined, LONG),
        original_max_position_embeddings: metadata.required(original, key('original_context_length')),
        ...present('attention_factor', metadata.number(key('attn_factor'))),
      };
    default:
      return metadata.refuse(`its ${key('type')} '${inOneLine(type)}' is not supported`);
  }
}

/** A key with its value, nothing where there is none. */
export function present(name: string, value: unknown): Record<string, unknown> {
  return value === undefined ? {} : { [name]: value };
}

/** The numbers of such a tensor, null where there is none. */
function divisorsOf(file: GgufFile, name: string, count: number): number[] | null {
  const tensor: GgufTensor | undefined = file.tensors.find((one) => one.name === name);
  if (tensor === undefined) return null;
  const { shape } = tensor;
  if (shape.length !== 1 || shape[0] !== count)
    return file.metadata.refuse(`${name} has the shape [${shape.join()}], not ${count} numbers, one a frequency`);
  return [...readWeights(file, tensor)].map(shortestFloat32);
}

/** The file holds what Llama 3's formula gives, not what it is computed from: the largest divisor is its factor, and the rest is checked. */
function llama3(
  { metadata }: GgufFile,
  divisors: readonly number[],
  { theta, rotated }: Rotation,
): Record<string, unknown> | null {
  const factor = divisors.reduce((a, b) => Math.max(a, b), 0);
  if (divisors.every((divisor) => divisor === 1)) return null;
  const { low, high, positions } = LLAMA3;
  const plain = ropeFrequencies(rotated, theta, null);
  const scaled = ropeFrequencies(rotated, theta, {
    type: 'llama3',
    factor,
    lowFrequencyFactor: low,
    highFrequencyFactor: high,
    originalPositions: positions,
  });
  const isLlama3 = divisors.every((divisor, i) => Math.abs((divisor * scaled[i]!) / plain[i]! - 1) < TOLERANCE);
  if (!isLlama3) metadata.refuse(`its ${FREQUENCIES} is not Llama 3's scaling of rotations; no other is known`);
  return {
    rope_type: 'llama3',
    factor,
    low_freq_factor: low,
    high_freq_factor: high,
    original_max_position_embeddings: positions,
  };
}
