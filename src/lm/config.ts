/** A decoder's architecture, read from and written as a Hugging Face `config.json`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { inOneLine, UserError } from '../errors.js';
import { FAMILIES, familyOf } from './families.js';
import type { Family, FamilyName } from './families.js';
import { parseFields, parseJsonText, quoted } from './json-file.js';
import { formatRopeScaling, parseRopeScaling } from './rope.js';
import type { RopeScaling } from './rope.js';
import { formatWindow, readWindow } from './sliding-window.js';
import type { SlidingWindow } from './sliding-window.js';

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
  /** Numbers of a head that are rotated, its first; all of them where it is not given. */
  readonly rotatedDim?: number;
  /** Positions up to which the decoder is exact: the checkpoint's own, or fewer where longrope's short factors end. */
  readonly maxPositions: number;
  /** Null where every token attends to all before it. */
  readonly slidingWindow: SlidingWindow | null;
  /** Its square root divides attention's scores; `headDim` where it is not given. */
  readonly queryScale?: number;
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
  tie_word_embeddings: z.boolean().optional(),
  attention_bias: z.boolean().nullish(),
  is_causal: z.boolean().nullish(),
  transformers_weights: z.unknown().nullish(),
  mlp_bias: z.boolean().nullish(),
  sliding_window: positions.nullish(),
  use_sliding_window: z.boolean().nullish(),
  max_window_layers: z.int().nonnegative().nullish(),
  sliding_window_pattern: z.int().positive().nullish(),
  layer_types: z.array(z.enum(['full_attention', 'sliding_attention'])).nullish(),
  quantization_config: z.unknown().nullish(),
  hidden_act: z.string().default('silu'),
  hidden_activation: z.string().default('gelu_pytorch_tanh'),
  query_pre_attn_scalar: z.number().positive().optional(),
  rope_local_base_freq: z.number().positive().optional(),
  attn_logit_softcapping: z.number().nullish(),
  final_logit_softcapping: z.number().nullish(),
  use_bidirectional_attention: z.boolean().nullish(),
});
type Fields = z.output<typeof schema>;

/** The names that each activation goes by: x σ(x), and x Φ(x) with the hyperbolic tangent in the place of Φ. */
const ACTIVATIONS: Readonly<Record<Family['activation'], readonly string[]>> = {
  silu: ['silu', 'swish'],
  gelu: ['gelu_pytorch_tanh', 'gelu_new'],
};

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
  const [key, activation] =
    family.activation === 'silu' ? ['hidden_act', c.hidden_act] : ['hidden_activation', c.hidden_activation];
  const known = ACTIVATIONS[family.activation];
  if (!known.includes(activation)) refuse(`${key} '${inOneLine(activation)}' is not supported; only ${known[0]} is`);
  if (c.is_causal === false) refuse('is_causal is false: a model that sees later tokens cannot write');
  if (c.transformers_weights) refuse('transformers_weights is not supported; name the file model.safetensors');
  if (c.mlp_bias && family.mlpBias) refuse('mlp_bias is not supported; use a checkpoint without it');
  if (c.quantization_config) refuse('quantization_config: quantised weights are not supported; use a plain checkpoint');
  const unsaidKvHeads = c.num_key_value_heads === undefined ? family.defaults.kvHeads : undefined;
  const kvHeads = c.num_key_value_heads ?? unsaidKvHeads ?? c.num_attention_heads;
  const headDim = c.head_dim ?? family.defaults.headDim ?? c.hidden_size / c.num_attention_heads;
  if (c.num_attention_heads % kvHeads) refuse('num_attention_heads must be a multiple of num_key_value_heads');
  if (!Number.isInteger(headDim) || headDim % 2) refuse('the head dimension must be an even integer');
  const isGemma = name === 'gemma3_text';
  if (isGemma) {
    if (c.attn_logit_softcapping || c.final_logit_softcapping)
      refuse('attn_logit_softcapping and final_logit_softcapping are not supported; use a checkpoint without them');
    if (c.use_bidirectional_attention) refuse('use_bidirectional_attention is true: such a model cannot write');
  }
  const { scaling, local } = isGemma ? ropeByLayers(c) : { scaling: ropeOf(c), local: null };
  const theta = positiveSchema.safeParse(scaling?.['rope_theta'] ?? c.rope_theta ?? family.defaults.theta ?? 10_000);
  if (!theta.success) return refuse('rope_theta is no positive number');
  const share = scaling?.['partial_rotary_factor'] ?? c.partial_rotary_factor ?? 1;
  if (share !== 1 && !family.partialRotary)
    refuse('partial_rotary_factor is not supported in this family; use a checkpoint that rotates whole heads');
  const rotatedDim = Math.floor(headDim * Number(share));
  if (!(rotatedDim >= 2 && rotatedDim <= headDim && rotatedDim % 2 === 0))
    refuse(`partial_rotary_factor ${quoted(share)} does not give an even part of a head of ${headDim}`);
  const declared = c.max_position_embeddings ?? family.defaults.positions;
  const originalPositions = isGemma
    ? undefined
    : (c.original_max_position_embeddings ?? family.defaults.originalPositions);
  const ropeScaling = parseRopeScaling({ scaling, maxPositions: declared, originalPositions, headDim: rotatedDim });
  if (typeof ropeScaling === 'string') return refuse(ropeScaling);
  const slidingWindow = readWindow(c, family, local);
  if (typeof slidingWindow === 'string') return refuse(slidingWindow);
  const queryScale = c.query_pre_attn_scalar ?? GEMMA_QUERY_SCALE;
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
    ...(rotatedDim === headDim ? {} : { rotatedDim }),
    maxPositions: reached(declared, ropeScaling),
    slidingWindow,
    ...(isGemma && queryScale !== headDim ? { queryScale } : {}),
    tiedHead: c.tie_word_embeddings ?? family.defaults.tied ?? false,
    attentionBias:
      typeof family.attentionBias === 'string'
        ? family.attentionBias === 'always'
        : (c.attention_bias ?? family.attentionBias),
  };
}

const positiveSchema = z.number().positive();
const GEMMA_QUERY_SCALE = 256;
const GEMMA_LOCAL_THETA = 10_000;

/** An object that says something: transformers passes over an empty one. */
function filled(
  fields: Readonly<Record<string, unknown>> | null | undefined,
): Readonly<Record<string, unknown>> | null {
  return fields && Object.keys(fields).length > 0 ? fields : null;
}

/** What `config.json` says of rotations; the older key counts where both say something. */
function ropeOf(c: Fields): Readonly<Record<string, unknown>> | null {
  return filled(c.rope_scaling) ?? filled(c.rope_parameters);
}

type RopeFields = Readonly<Record<string, unknown>>;
const byLayers = z.looseObject({
  full_attention: z.record(z.string(), z.unknown()).nullish(),
  sliding_attention: z.record(z.string(), z.unknown()).nullish(),
});

/**
 * The same of layers without a window and of those with one; what `rope_scaling` says is of the first, and it must say `rope_type`. yarn's
 * `truncate` is not read there.
 */
function ropeByLayers(c: Fields): { scaling: RopeFields; local: RopeFields } {
  const { full_attention: full, sliding_attention: sliding } = byLayers.safeParse(c.rope_parameters ?? {}).data ?? {};
  return {
    scaling: { ...(full ?? { rope_type: 'default' }), ...c.rope_scaling, truncate: true },
    local: { rope_theta: c.rope_local_base_freq ?? GEMMA_LOCAL_THETA, ...sliding },
  };
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
    ...(familyOf(c).activation === 'silu' ? { hidden_act: 'silu' } : { hidden_activation: 'gelu_pytorch_tanh' }),
    rms_norm_eps: c.epsilon,
    rope_theta: c.ropeTheta,
    ...(c.ropeScaling ? { rope_scaling: formatRopeScaling(c.ropeScaling) } : {}),
    // Phi-3's place for it, which counts before the scaling's own.
    ...(c.ropeScaling && 'originalPositions' in c.ropeScaling
      ? { original_max_position_embeddings: c.ropeScaling.originalPositions }
      : {}),
    ...(c.rotatedDim === undefined ? {} : { partial_rotary_factor: c.rotatedDim / c.headDim }),
    ...formatWindow(c),
    ...(c.family === 'gemma3_text' ? { query_pre_attn_scalar: c.queryScale ?? c.headDim } : {}),
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
    if (familyOf(c).normsAround) {
      shapes.set(`${prefix}pre_feedforward_layernorm.weight`, [c.width]);
      shapes.set(`${prefix}post_feedforward_layernorm.weight`, [c.width]);
    }
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
