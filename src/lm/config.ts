/** A decoder's architecture, read from and written as a Hugging Face `config.json`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { UserError } from '../errors.js';

/** The numbers that the decoder definition needs; symbols after Vaswani et al. 2017 and Touvron et al. 2023. */
export interface DecoderConfig {
  readonly family: 'llama' | 'qwen2';
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
  readonly maxPositions: number;
  /** Whether the language-model head is the embedding matrix. */
  readonly tiedHead: boolean;
  /** Whether attention's projections have biases; `hasBias` says which. */
  readonly attentionBias: boolean;
}

const schema = z.looseObject({
  model_type: z.string(),
  vocab_size: z.int().positive(),
  hidden_size: z.int().positive(),
  num_hidden_layers: z.int().positive(),
  num_attention_heads: z.int().positive(),
  num_key_value_heads: z.int().positive().optional(),
  head_dim: z.int().positive().nullish(),
  intermediate_size: z.int().positive(),
  rms_norm_eps: z.number().positive().default(1e-6),
  rope_theta: z.number().positive().optional(),
  rope_scaling: z.unknown().nullish(),
  rope_parameters: z
    .looseObject({ rope_theta: z.number().positive().optional(), rope_type: z.string().optional() })
    .nullish(),
  max_position_embeddings: z.int().positive().default(2048),
  tie_word_embeddings: z.boolean().default(false),
  attention_bias: z.boolean().optional(),
  mlp_bias: z.boolean().nullish(),
  use_sliding_window: z.boolean().nullish(),
  hidden_act: z.string().default('silu'),
});

/** Parse the text of a `config.json`. @throws UserError for what this decoder does not implement. */
export function parseConfig(text: string, file: string): DecoderConfig {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new UserError(`${file} is not valid JSON: ${(cause as Error).message}`, { cause });
  }
  const parsed = schema.safeParse(json);
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    throw new UserError(`${file}: ${issue.path.join('.') || 'document'}: ${issue.message}`);
  }
  const c = parsed.data;
  if (c.model_type !== 'llama' && c.model_type !== 'qwen2') {
    throw new UserError(`${file}: model_type '${c.model_type}' is not supported; supported are llama and qwen2`);
  }
  if (c.hidden_act !== 'silu')
    throw new UserError(`${file}: hidden_act '${c.hidden_act}' is not supported; only silu is`);
  const ropeType = c.rope_parameters?.rope_type ?? 'default';
  if (c.rope_scaling || ropeType !== 'default')
    throw new UserError(`${file}: rope_scaling is not supported; use a checkpoint without it`);
  if (c.mlp_bias) throw new UserError(`${file}: mlp_bias is not supported; use a checkpoint without it`);
  if (c.use_sliding_window)
    throw new UserError(`${file}: use_sliding_window is not supported; use a checkpoint without it`);
  const kvHeads = c.num_key_value_heads ?? c.num_attention_heads;
  const headDim = c.head_dim ?? c.hidden_size / c.num_attention_heads;
  if (c.num_attention_heads % kvHeads)
    throw new UserError(`${file}: num_attention_heads must be a multiple of num_key_value_heads`);
  if (!Number.isInteger(headDim) || headDim % 2)
    throw new UserError(`${file}: the head dimension must be an even integer`);
  return {
    family: c.model_type,
    vocabulary: c.vocab_size,
    width: c.hidden_size,
    layers: c.num_hidden_layers,
    heads: c.num_attention_heads,
    kvHeads,
    headDim,
    feedForward: c.intermediate_size,
    epsilon: c.rms_norm_eps,
    ropeTheta: c.rope_parameters?.rope_theta ?? c.rope_theta ?? 10000,
    maxPositions: c.max_position_embeddings,
    tiedHead: c.tie_word_embeddings,
    attentionBias: c.attention_bias ?? c.model_type === 'qwen2',
  };
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
    architectures: [c.family === 'llama' ? 'LlamaForCausalLM' : 'Qwen2ForCausalLM'],
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
    for (const [module, [out, into]] of projectionShapes(c)) {
      shapes.set(`${prefix}${module}.weight`, [out, into]);
      if (hasBias(c, module)) shapes.set(`${prefix}${module}.bias`, [out]);
    }
  }
  shapes.set('model.norm.weight', [c.width]);
  if (!c.tiedHead) shapes.set('lm_head.weight', [c.vocabulary, c.width]);
  return shapes;
}

const QUERY_KEY_VALUE: ReadonlySet<string> = new Set(['self_attn.q_proj', 'self_attn.k_proj', 'self_attn.v_proj']);

/** Whether a linear module has a bias: with `attentionBias`, q, k and v, and in the llama family o too. */
export function hasBias(c: DecoderConfig, module: string): boolean {
  return c.attentionBias && (QUERY_KEY_VALUE.has(module) || (c.family === 'llama' && module === 'self_attn.o_proj'));
}

/** The linear modules of one layer with their [out, in] shapes. */
export function projectionShapes(c: DecoderConfig): Map<string, [out: number, into: number]> {
  const query = c.heads * c.headDim;
  const keyValue = c.kvHeads * c.headDim;
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
