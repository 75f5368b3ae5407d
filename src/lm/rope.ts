/**
 * Rotary position embeddings (Su et al. 2021) as checkpoints have them: the frequencies of each scaling, and the tables of cosines and sines.
 * Scalings: linear (Chen et al. 2023), llama3 (Dubey et al. 2024, as published with Llama 3.1), longrope (Ding et al. 2024, as in Phi-3), yarn
 * (Peng et al. 2023); dynamic (as transformers has it) changes nothing up to the model's own positions, beyond which no sequence goes here.
 */
import { z } from 'zod';
import type { Differentiable, Rotary } from '../onnx/differentiable.js';
import type { Dim, Value } from '../onnx/graph.js';
import { quoted } from './json-file.js';

export type RopeScaling =
  | { readonly type: 'linear'; readonly factor: number }
  | {
      readonly type: 'llama3';
      readonly factor: number;
      readonly lowFrequencyFactor: number;
      readonly highFrequencyFactor: number;
      readonly originalPositions: number;
    }
  | {
      readonly type: 'longrope';
      /** A divisor of each of the headDim / 2 frequencies, for sequences of up to `originalPositions`. */
      readonly shortFactors: readonly number[];
      /** The same for longer sequences, which are refused here: one key would have two rotations. */
      readonly longFactors: readonly number[];
      /** Scales the rotated queries and keys. */
      readonly attentionFactor: number;
      readonly originalPositions: number;
    }
  | {
      readonly type: 'yarn';
      readonly factor: number;
      /** Turns within the original positions from which on a pair is kept as it is, and up to which it is slowed down. */
      readonly betaFast: number;
      readonly betaSlow: number;
      /** Whether the pairs where these lie are whole numbers. */
      readonly truncate: boolean;
      /** Scales the rotated queries and keys. */
      readonly attentionFactor: number;
      readonly originalPositions: number;
    };

const positive = z.number().positive();
const factors = z.array(positive).nonempty();
const originalSchema = z.int().positive().nullish();
const scalingSchema = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('linear'), factor: positive }),
  z.looseObject({ type: z.literal('dynamic'), factor: positive }),
  z.looseObject({
    type: z.literal('llama3'),
    factor: positive,
    low_freq_factor: positive,
    high_freq_factor: positive,
    original_max_position_embeddings: originalSchema,
  }),
  z.looseObject({
    type: z.literal('longrope'),
    short_factor: factors,
    long_factor: factors,
    factor: positive.nullish(),
    attention_factor: positive.nullish(),
    original_max_position_embeddings: originalSchema,
  }),
  z.looseObject({
    type: z.literal('yarn'),
    factor: positive,
    attention_factor: positive.nullish(),
    beta_fast: positive.nullish(),
    beta_slow: positive.nullish(),
    mscale: z.number().nonnegative().nullish(),
    mscale_all_dim: z.number().nonnegative().nullish(),
    truncate: z.boolean().default(true),
    original_max_position_embeddings: originalSchema,
  }),
]);

/** What a `config.json` says of positions, where its versions put it in different places. */
export interface RopeFields {
  /** `rope_scaling`, else `rope_parameters`. */
  readonly scaling: Readonly<Record<string, unknown>> | null;
  readonly maxPositions: number;
  /** `original_max_position_embeddings` beside the scaling, which counts before that within; undefined for none. */
  readonly originalPositions: number | undefined;
  readonly headDim: number;
}

/** The scaling of a checkpoint, null for none; a text is why it cannot be used. Defaults and precedence are transformers'. */
export function parseRopeScaling({
  scaling,
  maxPositions,
  originalPositions,
  headDim,
}: RopeFields): RopeScaling | null | string {
  // Early Phi-3 checkpoints say `su`.
  const named = scaling?.['rope_type'] ?? scaling?.['type'] ?? 'default';
  if (named === 'default') return null;
  const type = named === 'su' ? 'longrope' : named;
  const parsed = scalingSchema.safeParse({ ...scaling, type });
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    if (issue.path[0] === 'type') {
      const known = 'linear, dynamic, llama3, longrope and yarn';
      return `rope_scaling ${quoted(named)} is not supported; supported are ${known}`;
    }
    return `rope_scaling.${issue.path.join('.')}: ${issue.message}`;
  }
  const s = parsed.data;
  if (s.type === 'linear') return { type: 'linear', factor: s.factor };
  // The base grows with what a sequence has beyond the model's positions.
  if (s.type === 'dynamic') return null;
  const original = originalPositions ?? s.original_max_position_embeddings ?? maxPositions;
  if (s.type === 'llama3') {
    return {
      type: 'llama3',
      factor: s.factor,
      lowFrequencyFactor: s.low_freq_factor,
      highFrequencyFactor: s.high_freq_factor,
      originalPositions: original,
    };
  }
  if (s.type === 'yarn') {
    return {
      type: 'yarn',
      factor: s.factor,
      betaFast: s.beta_fast ?? 32,
      betaSlow: s.beta_slow ?? 1,
      truncate: s.truncate,
      attentionFactor: s.attention_factor ?? yarnAttention(s.factor, s.mscale ?? 0, s.mscale_all_dim ?? 0),
      originalPositions: original,
    };
  }
  const half = headDim / 2;
  if (s.short_factor.length !== half || s.long_factor.length !== half)
    return `rope_scaling: short_factor and long_factor must have ${half} numbers, half the head dimension`;
  const extension = s.factor ?? maxPositions / original;
  return {
    type: 'longrope',
    shortFactors: s.short_factor,
    longFactors: s.long_factor,
    attentionFactor:
      s.attention_factor ?? (extension <= 1 ? 1 : Math.sqrt(1 + Math.log(extension) / Math.log(original))),
    originalPositions: original,
  };
}

/** 0.1 m ln s + 1, of yarn's scale s; the ratio of two where a checkpoint names both m, as DeepSeek's do. */
function yarnAttention(factor: number, mscale: number, mscaleAll: number): number {
  const of = (m: number): number => (factor <= 1 ? 1 : 0.1 * m * Math.log(factor) + 1);
  return mscale > 0 && mscaleAll > 0 ? of(mscale) / of(mscaleAll) : of(1);
}

/** The scaling as a `config.json` writes it. */
export function formatRopeScaling(scaling: RopeScaling): Record<string, unknown> {
  const type = { rope_type: scaling.type };
  if (scaling.type === 'linear') return { ...type, factor: scaling.factor };
  const original = { original_max_position_embeddings: scaling.originalPositions };
  if (scaling.type === 'llama3') {
    const { factor, lowFrequencyFactor: low, highFrequencyFactor: high } = scaling;
    return { ...type, factor, low_freq_factor: low, high_freq_factor: high, ...original };
  }
  if (scaling.type === 'yarn') {
    const { factor, betaFast, betaSlow, truncate, attentionFactor } = scaling;
    const betas = { beta_fast: betaFast, beta_slow: betaSlow };
    return { ...type, factor, ...betas, truncate, attention_factor: attentionFactor, ...original };
  }
  const { shortFactors: short, longFactors: long, attentionFactor } = scaling;
  return { ...type, short_factor: short, long_factor: long, attention_factor: attentionFactor, ...original };
}

/** Radians a position, of each pair of a head's dimensions: θ^(−2i/d), scaled. */
export function ropeFrequencies(headDim: number, theta: number, scaling: RopeScaling | null): number[] {
  const plain = Array.from({ length: headDim / 2 }, (_, i) => theta ** ((-2 * i) / headDim));
  if (scaling === null) return plain;
  if (scaling.type === 'linear') return plain.map((f) => f / scaling.factor);
  if (scaling.type === 'longrope') return plain.map((f, i) => f / scaling.shortFactors[i]!);
  if (scaling.type === 'yarn') return yarnFrequencies(plain, headDim, theta, scaling);
  const { factor, lowFrequencyFactor: low, highFrequencyFactor: high, originalPositions } = scaling;
  return plain.map((f) => {
    // Turns that the pair makes within the original positions: many are kept as they are, few are slowed down, between them a blend.
    const turns = (originalPositions * f) / (2 * Math.PI);
    const kept = Math.min(1, Math.max(0, (turns - low) / (high - low)));
    return kept * f + (1 - kept) * (f / factor);
  });
}

/** Pairs that turn often within the original positions are kept, those that hardly turn are slowed down by the factor, between them a ramp. */
function yarnFrequencies(
  plain: readonly number[],
  headDim: number,
  theta: number,
  { factor, betaFast, betaSlow, truncate, originalPositions }: RopeScaling & { readonly type: 'yarn' },
): number[] {
  const pairOf = (turns: number): number =>
    (headDim * Math.log(originalPositions / (turns * 2 * Math.PI))) / (2 * Math.log(theta));
  const [fast, slow] = [pairOf(betaFast), pairOf(betaSlow)];
  const low = Math.max(truncate ? Math.floor(fast) : fast, 0);
  const high = Math.min(truncate ? Math.ceil(slow) : slow, headDim - 1);
  // A step where both are one.
  const width = high === low ? 0.001 : high - low;
  return plain.map((f, i) => {
    const slowed = Math.min(1, Math.max(0, (i - low) / width));
    return slowed * (f / factor) + (1 - slowed) * f;
  });
}

/** Rows of the table of single positions; the other table has every multiple of it. */
const BLOCK = 1024;

/**
 * Tables of cos, sin and −sin for positions 0 to `length` − 1, computed once a run from two small constant ones by the angles' sum:
 * a model with 131,072 positions has no table of them, and each entry is as exact as float32 is.
 */
export function rotaryTables(
  g: Differentiable,
  { name, headDim, maxPositions, theta, scaling, length }: RotaryTableSettings,
): Omit<Rotary, 'positions'> {
  const frequencies = ropeFrequencies(headDim, theta, scaling);
  const scale = scaling?.type === 'longrope' || scaling?.type === 'yarn' ? scaling.attentionFactor : 1;
  const table = (part: string, rows: number, step: number, f: (angle: number) => number): Value => {
    const data = Float32Array.from({ length: rows * frequencies.length }, (_, i) =>
      f(Math.floor(i / frequencies.length) * step * frequencies[i % frequencies.length]!),
    );
    return g.initializer(`${name}_${part}`, [rows, frequencies.length], 'float32', data);
  };
  const position = g.op(
    'Range',
    [g.int64Scalar(0), g.op('Squeeze', [g.dim(length)], {}, [], 'int64'), g.int64Scalar(1)],
    {},
    [length],
    'int64',
  );
  const [block, within] = [
    g.emitDiv(position, g.int64([BLOCK])),
    g.op('Mod', [position, g.int64([BLOCK])], {}, [length], 'int64'),
  ];
  const [blocks, rows] = [Math.ceil(maxPositions / BLOCK), Math.min(BLOCK, maxPositions)];
  const cosA = g.emitGather(table('cos_blocks', blocks, BLOCK, Math.cos), block);
  const sinA = g.emitGather(table('sin_blocks', blocks, BLOCK, Math.sin), block);
  const cosB = g.emitGather(
    table('cos', rows, 1, (a) => scale * Math.cos(a)),
    within,
  );
  const sinB = g.emitGather(
    table('sin', rows, 1, (a) => scale * Math.sin(a)),
    within,
  );
  const cos = g.emitSub(g.emitMul(cosA, cosB), g.emitMul(sinA, sinB));
  const sin = g.emitAdd(g.emitMul(sinA, cosB), g.emitMul(cosA, sinB));
  return { cos, sin, negativeSin: g.emitNeg(sin) };
}

export interface RotaryTableSettings {
  /** What the tables' constants are called by. */
  readonly name: string;
  /** Numbers of a head that are rotated. */
  readonly headDim: number;
  readonly maxPositions: number;
  readonly theta: number;
  readonly scaling: RopeScaling | null;
  /** Positions that the run uses: a dimension of the graph. */
  readonly length: Dim;
}
