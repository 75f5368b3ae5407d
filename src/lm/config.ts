/** A decoder's architecture, read from and written as a Hugging Face `config.json`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { inOneLine, UserError } from '../errors.js';
import { parseFields, parseJsonText } from './json-file.js';
import { formatRopeScaling, parseRopeScaling } from './rope.js';
import type { RopeScaling } from './rope.js';

/** What a family's name alone decides. */
interface Family {
  readonly architecture: string;
  /** Linear modules with a bias, where `attentionBias` says so. */
  readonly biased: readonly string[];
  /** `attention_bias` where `config.json` has none; always or never: the family's, whatever it says. */
  readonly attentionBias: boolean | 'always' | 'never';
  /** Whether `mlp_bias` counts. */
  readonly mlpBias: boolean;
  /** Whether queries and keys are normalised, head by head, before their rotation. */
  readonly queryKeyNorm: boolean;
  /** Whether q, k and v are one matrix, and gate and up another. */
  readonly fused: boolean;
  /** Whether `sliding_window` counts: always, only with `use_sliding_window`, or never. */
  readonly window: 'always' | 'switched' | 'never';
  /** What transformers takes where `config.json` is silent. */
  readonly defaults: {
    readonly epsilon: number;
    readonly positions: number;
    readonly headDim?: number;
    /** Else as many as heads, as where it is null. */
    readonly kvHeads?: number;
    readonly slidingWindow?: number;
    readonly originalPositions?: number;
  };
}

const QUERY_KEY_VALUE = ['self_attn.q_proj', 'self_attn.k_proj', 'self_attn.v_proj'];
const PLAIN: Family = {
  architecture: 'LlamaForCausalLM',
  biased: [...QUERY_KEY_VALUE, 'self_attn.o_proj'],
  attentionBias: false,
  mlpBias: false,
  queryKeyNorm: false,
  fused: false,
  window: 'never',
  defaults: { epsilon: 1e-6, positions: 2048 },
};

/** The decoders that are supported, by their `model_type`. */
export const FAMILIES = {
  llama: { ...PLAIN, mlpBias: true },
  mistral: {
    ...PLAIN,
    architecture: 'MistralForCausalLM',
    attentionBias: 'never',
    window: 'always',
    defaults: { epsilon: 1e-6, positions: 131_072, kvHeads: 8, slidingWindow: 4096 },
  },
  qwen2: {
    ...PLAIN,
    architecture: 'Qwen2ForCausalLM',
    biased: QUERY_KEY_VALUE,
    attentionBias: 'always',
    window: 'switched',
    defaults: { epsilon: 1e-6, positions: 32_768, kvHeads: 32, slidingWindow: 4096 },
  },
  qwen3: {
    ...PLAIN,
    architecture: 'Qwen3ForCausalLM',
    queryKeyNorm: true,
    window: 'switched',
    defaults: { epsilon: 1e-6, positions: 32_768, headDim: 128, kvHeads: 32, slidingWindow: 4096 },
  },
  phi3: {
    ...PLAIN,
    architecture: 'Phi3ForCausalLM',
    attentionBias: 'never',
    fused: true,
    window: 'always',
    defaults: { epsilon: 1e-5, positions: 4096, originalPositions: 4096 },
  },
} as const satisfies Record<string, Family>;

export type FamilyName = keyof typeof FAMILIES;

/** The numbers that the decoder definition needs; symbols after Vaswani et al. 2017 and Touvron et al. 2023. */
export interface DecoderConfig {
  readonly family: FamilyName;
  readonly vocabulary: number;
  /** Width of the residual stream. */
  readonly width: number;
  readonly layers: number;
  readonly heads: number;
  /** Key–value heads; `heads / kvHeads` query heads share one. */
  readonly kvHeads: number;
  readonly headDim: number;
  /** Width of the feed-forward layer. */
  readonly feedForward: number;
  readonly epsilon: number;
  readonly ropeTheta: number;
  readonly ropeScaling: RopeScaling | null;
  /** Positions up to which the decoder is exact: the checkpoint's own, or fewer where a sliding window or longrope's short factors end. */
  readonly maxPositions: number;
  /** Latest positions that a token attends to, itself included; null: all. */
  readonly slidingWindow: number | null;
  /** Whether the language-model head is the embedding matrix. */
  readonly tiedHead: boolean;
  /** Whether attention's projections have biases; `hasBias` says which. */
  readonly attentionBias: boolean;
}

/** A size of a model: damage would else become a loop or a table of any length. Each bound is far above what models have. */
const sizeTo = (most: number) =>
  z.int('is no whole number').min(1, 'is less than 1').max(most, `is more than ${most}, which no decoder has`);
const size = sizeTo(2 ** 24);
const MOST_POSITIONS = 2 ** 27;
const positions = sizeTo(MOST_POSITIONS);
const typeSchema = z.looseObject({ model_type: z.string() });
const schema = z.looseObject({
  model_type: z.string(),
  vocab_size: size,
  hidden_size: size,
  num_hidden_layers: sizeTo(10_000),
  num_attention_heads: sizeTo(2 ** 16),
  num_key_value_heads: sizeTo(2 ** 16).nullish(),
  head_dim: sizeTo(2 ** 16).nullish(),
  intermediate_size: size,
  rms_norm_eps: z.number().positive().optional(),
  rope_theta: z.number().positive().optional(),
  rope_scaling: z.record(z.string(), z.unknown()).nullish(),
  rope_parameters: z.looseObject({ rope_theta: z.number().positive().optional() }).nullish(),
  partial_rotary_factor: z.number().nullish(),
  max_position_embeddings: positions.optional(),
  original_max_position_embeddings: positions.optional(),
  tie_word_embeddings: z.boolean().default(false),
  attention_bias: z.boolean().nullish(),
  is_causal: z.boolean().nullish(),
  transformers_weights: z.unknown().nullish(),
  mlp_bias: z.boolean().nullish(),
  sliding_window: positions.nullish(),
  use_sliding_window: z.boolean().nullish(),
  max_window_layers: z.int().nonnegative().nullish(),
  layer_types: z.array(z.string()).nullish(),
  quantization_config: z.unknown().nullish(),
  hidden_act: z.string().default('silu'),
});

/** Names of x σ(x). */
const SILU: ReadonlySet<string> = new Set(['silu', 'swish']);

/** Parse the text of a `config.json`. @throws UserError for what this decoder does not implement. */
export function parseConfig(text: string, file: string): DecoderConfig {
  const refuse = (why: string): never => {
    throw new UserError(`${file}: ${why}`);
  };
  const json = parseJsonText(text, file);
  // First, as another family may well have other keys.
  const type = typeSchema.safeParse(json).data?.model_type;
  if (type !== undefined && !Object.hasOwn(FAMILIES, type)) {
    return refuse(
      `model_type '${inOneLine(type)}' is not supported; supported are ${Object.keys(FAMILIES).join(', ')}`,
    );
  }
  const c = parseFields(schema, json, file);
  const name = c.model_type as FamilyName;
  const family: Family = FAMILIES[name];
  if (!SILU.has(c.hidden_act)) refuse(`hidden_act '${inOneLine(c.hidden_act)}' is not supported; only silu is`);
  if (c.is_causal === false) refuse('is_causal is false: a model that sees later tokens cannot write');
  if (c.transformers_weights) refuse('transformers_weights is not supported; name the file model.safetensors');
  if (c.mlp_bias && family.mlpBias) refuse('mlp_bias is not supported; use a checkpoint without it');
  if (c.quantization_config) refuse('quantization_config: quantised weights are not supported; use a plain checkpoint');
  const unsaidKvHeads = c.num_key_value_heads === undefined ? family.defaults.kvHeads : undefined;
  const kvHeads = c.num_key_value_heads ?? unsaidKvHeads ?? c.num_attention_heads;
  const headDim = c.head_dim ?? family.defaults.headDim ?? c.hidden_size / c.num_attention_heads;
  if (c.num_attention_heads % kvHeads) refuse('num_attention_heads must be a multiple of num_key_value_heads');
  if (!Number.isInteger(headDim) || headDim % 2) refuse('the head dimension must be an even integer');
  const scaling = filled(c.rope_scaling) ?? filled(c.rope_parameters);
  const theta = positiveSchema.safeParse(scaling?.['rope_theta'] ?? c.rope_theta ?? 10_000);
  if (!theta.success) return refuse('rope_theta is no positive number');
  if ((scaling?.['partial_rotary_factor'] ?? c.partial_rotary_factor ?? 1) !== 1)
    refuse('partial_rotary_factor is not supported; use a checkpoint that rotates whole heads');
  const declared = c.max_position_embeddings ?? family.defaults.positions;
  const originalPositions = c.original_max_position_embeddings ?? family.defaults.originalPositions;
  const ropeScaling = parseRopeScaling({ scaling, maxPositions: declared, originalPositions, headDim });
  if (typeof ropeScaling === 'string') return refuse(ropeScaling);
  const slidingWindow = windowOf(c, family);
  return {
    family: name,
    vocabulary: c.vocab_size,
    width: c.hidden_size,
    layers: c.num_hidden_layers,
    heads: c.num_attention_heads,
    kvHeads,
    headDim,
    feedForward: c.intermediate_size,
    epsilon: c.rms_norm_eps ?? family.defaults.epsilon,
    ropeTheta: theta.data,
    ropeScaling,
    maxPositions: Math.min(reached(declared, ropeScaling), slidingWindow ?? Infinity),
    slidingWindow,
    tiedHead: c.tie_word_embeddings,
    attentionBias:
      typeof family.attentionBias === 'string'
        ? family.attentionBias === 'always'
        : (c.attention_bias ?? family.attentionBias),
  };
}

const positiveSchema = z.number().positive();

/** An object that says something: transformers passes over an empty one. */
function filled(
  fields: Readonly<Record<string, unknown>> | null | undefined,
): Readonly<Record<string, unknown>> | null {
  return fields && Object.keys(fields).length > 0 ? fields : null;
}

/** The latest positions that some layer attends to; null where all attend to all. */
function windowOf(c: z.output<typeof schema>, { window, defaults }: Family): number | null {
  if (window === 'never' || (window === 'switched' && c.use_sliding_window !== true)) return null;
  const positionsBack = c.sliding_window === undefined ? defaults.slidingWindow : c.sliding_window;
  if (window === 'switched') {
    const types = c.layer_types ?? (c.num_hidden_layers > (c.max_window_layers ?? 28) ? ['sliding_attention'] : []);
    if (!types.includes('sliding_attention')) return null;
  }
  return positionsBack ?? null;
}

/** Positions up to which the rotations are the checkpoint's: longrope has others for longer sequences, yarn is made for more. */
function reached(declared: number, scaling: RopeScaling | null): number {
  if (scaling?.type === 'longrope') return Math.min(declared, scaling.originalPositions);
  if (scaling?.type === 'yarn') {
    const extended = Math.min(MOST_POSITIONS, Math.floor(scaling.originalPositions * scaling.factor));
    return Math.max(declared, extended);
  }
  return declared;
}

export function parameterCount(config: DecoderConfig): number {
  return [...weightShapes(config).values()].reduce((sum, shape) => sum + shape.reduce((a, b) => a * b, 1), 0);
}

/** Why sequences end at `maxPositions`, as the end of a sentence. */
export function positionLimit(c: DecoderConfig): string {
  if (c.maxPositions === c.slidingWindow)
    return `the model's sliding window of ${c.maxPositions} positions, beyond which attention is not supported`;
  if (c.ropeScaling?.type === 'longrope' && c.maxPositions === c.ropeScaling.originalPositions)
    return `the ${c.maxPositions} positions of the model's short RoPE factors; the long ones are not supported`;
  return `the model's ${c.maxPositions} positions`;
}

/** Read `config.json` of a checkpoint folder. @throws UserError when it is missing or unusable. */
export function readConfig(folder: string): DecoderConfig {
  const file = join(folder, 'config.json');
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new UserError(
      `${file} cannot be read (${(cause as NodeJS.ErrnoException).code}): is this a Hugging Face checkpoint folder?`,
      { cause },
    );
  }
  return parseConfig(text, file);
}

/** The `config.json` of a decoder, as transformers reads it. */
export function formatConfig(c: DecoderConfig, tokens: { bos: number; eos: number; pad: number }): string {
  const config = {
    architectures: [FAMILIES[c.family].architecture],
    model_type: c.family,
    vocab_size: c.vocabulary,
    hidden_size: c.width,
    num_hidden_layers: c.layers,
    num_attention_heads: c.heads,
    num_key_value_heads: c.kvHeads,
    head_dim: c.headDim,
    intermediate_size: c.feedForward,
    hidden_act: 'silu',
    rms_norm_eps: c.epsilon,
    rope_theta: c.ropeTheta,
    ...(c.ropeScaling ? { rope_scaling: formatRopeScaling(c.ropeScaling) } : {}),
    // Phi-3's place for it, which counts before the scaling's own.
    ...(c.ropeScaling && 'originalPositions' in c.ropeScaling
      ? { original_max_position_embeddings: c.ropeScaling.originalPositions }
      : {}),
    ...(c.slidingWindow ? { sliding_window: c.slidingWindow, use_sliding_window: true } : {}),
    max_position_embeddings: c.maxPositions,
    tie_word_embeddings: c.tiedHead,
    attention_bias: c.attentionBias,
    torch_dtype: 'float32',
    bos_token_id: tokens.bos,
    eos_token_id: tokens.eos,
    pad_token_id: tokens.pad,
  };
  return `${JSON.stringify(config, null, 2)}\n`;
}

/** Every weight of a decoder by its Hugging Face name, with its shape ([out, in] for matrices). */
export function weightShapes(c: DecoderConfig): Map<string, number[]> {
  const shapes = new Map<string, number[]>([['model.embed_tokens.weight', [c.vocabulary, c.width]]]);
  for (let layer = 0; layer < c.layers; layer++) {
    const prefix = `model.layers.${layer}.`;
    shapes.set(`${prefix}input_layernorm.weight`, [c.width]);
    shapes.set(`${prefix}post_attention_layernorm.weight`, [c.width]);
    if (FAMILIES[c.family].queryKeyNorm) {
      shapes.set(`${prefix}self_attn.q_norm.weight`, [c.headDim]);
      shapes.set(`${prefix}self_attn.k_norm.weight`, [c.headDim]);
    }
    for (const [module, [out, into]] of projectionShapes(c)) {
      shapes.set(`${prefix}${module}.weight`, [out, into]);
      if (hasBias(c, module)) shapes.set(`${prefix}${module}.bias`, [out]);
    }
  }
  shapes.set('model.norm.weight', [c.width]);
  if (!c.tiedHead) shapes.set('lm_head.weight', [c.vocabulary, c.width]);
  return shapes;
}

/** Whether a linear module has a bias: with `attentionBias`, q, k and v, and o too where the family has it. */
export function hasBias(c: DecoderConfig, module: string): boolean {
  const biased: readonly string[] = FAMILIES[c.family].biased;
  return c.attentionBias && biased.includes(module);
}

/** The linear modules of one layer with their [out, in] shapes; a fused one is the rows of its parts, one after the other. */
export function projectionShapes(c: DecoderConfig): Map<string, [out: number, into: number]> {
  const query = c.heads * c.headDim;
  const keyValue = c.kvHeads * c.headDim;
  if (FAMILIES[c.family].fused) {
    return new Map([
      ['self_attn.qkv_proj', [query + 2 * keyValue, c.width]],
      ['self_attn.o_proj', [c.width, query]],
      ['mlp.gate_up_proj', [2 * c.feedForward, c.width]],
      ['mlp.down_proj', [c.width, c.feedForward]],
    ]);
  }
  return new Map([
    ['self_attn.q_proj', [query, c.width]],
    ['self_attn.k_proj', [keyValue, c.width]],
    ['self_attn.v_proj', [keyValue, c.width]],
    ['self_attn.o_proj', [c.width, query]],
    ['mlp.gate_proj', [c.feedForward, c.width]],
    ['mlp.up_proj', [c.feedForward, c.width]],
    ['mlp.down_proj', [c.width, c.feedForward]],
  ]);
}
