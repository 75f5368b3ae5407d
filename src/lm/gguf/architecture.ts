/** A GGUF file's model as a Hugging Face `config.json` and weights by Hugging Face's names. Architectures by llama.cpp's names (src/llama-arch.cpp). */
import { inOneLine } from '../../errors.js';
import type { Metadata } from './metadata.js';
import type { GgufFile, GgufTensor } from './reader.js';
import { present, readRopeScaling, ROPE_TENSORS } from './rope.js';
import type { RowOrder } from './weights.js';

/** What sets an architecture's files apart. */
interface Architecture {
  readonly family: string;
  readonly className: string;
  /** Modules of a layer by the file's names, where they are others than `MODULES`. */
  readonly modules: Readonly<Record<string, string>>;
  /** Keys after the architecture's name, beside `KEYS`. */
  readonly keys: readonly string[];
  /** Whether the rows of q and k are in llama.cpp's order, in which a rotation's pairs are neighbours. */
  readonly permuted: boolean;
  /** What the file has added to each weight of a norm. */
  readonly normShift: number;
  readonly theta: number;
}

const MODULES: Readonly<Record<string, string>> = {
  attn_norm: 'input_layernorm',
  attn_q: 'self_attn.q_proj',
  attn_k: 'self_attn.k_proj',
  attn_v: 'self_attn.v_proj',
  attn_output: 'self_attn.o_proj',
  attn_q_norm: 'self_attn.q_norm',
  attn_k_norm: 'self_attn.k_norm',
  ffn_norm: 'post_attention_layernorm',
  ffn_gate: 'mlp.gate_proj',
  ffn_up: 'mlp.up_proj',
  ffn_down: 'mlp.down_proj',
};
const OUTER: Readonly<Record<string, string>> = {
  token_embd: 'model.embed_tokens',
  output_norm: 'model.norm',
  output: 'lm_head',
};

/** Keys that every architecture has, or may have. A key that is not listed may change what the model computes, so it is refused. */
const KEYS = [
  'vocab_size',
  'context_length',
  'embedding_length',
  'block_count',
  'feed_forward_length',
  'attention.head_count',
  'attention.head_count_kv',
  'attention.key_length',
  'attention.value_length',
  'attention.layer_norm_rms_epsilon',
  'rope.dimension_count',
  'rope.freq_base',
  'rope.scaling.type',
  'rope.scaling.factor',
  'rope.scaling.original_context_length',
  'rope.scaling.finetuned',
  'rope.scaling.yarn_beta_fast',
  'rope.scaling.yarn_beta_slow',
];

const PLAIN: Architecture = {
  family: 'llama',
  className: 'LlamaForCausalLM',
  modules: {},
  keys: ['attention.sliding_window'],
  permuted: false,
  normShift: 0,
  theta: 10_000,
};

const ARCHITECTURES: Readonly<Record<string, Architecture>> = {
  // Mistral's files call themselves Llama's.
  llama: { ...PLAIN, permuted: true },
  qwen2: { ...PLAIN, family: 'qwen2', className: 'Qwen2ForCausalLM', keys: [] },
  qwen3: { ...PLAIN, family: 'qwen3', className: 'Qwen3ForCausalLM', keys: [] },
  phi3: {
    ...PLAIN,
    family: 'phi3',
    className: 'Phi3ForCausalLM',
    modules: { attn_qkv: 'self_attn.qkv_proj', ffn_up: 'mlp.gate_up_proj' },
    keys: ['attention.sliding_window', 'rope.scaling.attn_factor'],
  },
  gemma3: {
    ...PLAIN,
    family: 'gemma3_text',
    className: 'Gemma3ForCausalLM',
    modules: {
      post_attention_norm: 'post_attention_layernorm',
      ffn_norm: 'pre_feedforward_layernorm',
      post_ffw_norm: 'post_feedforward_layernorm',
    },
    keys: ['attention.sliding_window', 'rope.freq_base_swa', 'final_logit_softcapping', 'attn_logit_softcapping'],
    normShift: 1,
    theta: 1e6,
  },
};

/** A weight of the model and where it comes from. */
export interface ImportedWeight {
  readonly tensor: GgufTensor;
  readonly order: RowOrder;
}

export interface ImportedModel {
  /** `config.json` without its tokens. */
  readonly config: Readonly<Record<string, unknown>>;
  /** By Hugging Face's names, in the file's order. */
  readonly weights: ReadonlyMap<string, ImportedWeight>;
}

/** @throws UserError naming what of the model is not known */
export function readModel(file: GgufFile): ImportedModel {
  const { metadata } = file;
  const name = metadata.required(metadata.text('general.architecture'), 'general.architecture');
  if (!Object.hasOwn(ARCHITECTURES, name))
    metadata.refuse(
      `its architecture '${inOneLine(name)}' is not read here; supported are ${Object.keys(ARCHITECTURES).join(', ')}`,
    );
  checkKind(metadata);
  const architecture = ARCHITECTURES[name]!;
  const known = new Set([...KEYS, ...architecture.keys].map((key) => `${name}.${key}`));
  const unknown = metadata.keys().find((key) => key.startsWith(`${name}.`) && !known.has(key));
  if (unknown !== undefined) metadata.refuse(`its setting ${inOneLine(unknown)} is not known here`);
  const sizes = readSizes(metadata, name);
  const weights = new Map<string, ImportedWeight>();
  for (const tensor of file.tensors) {
    if (ROPE_TENSORS.has(tensor.name)) continue;
    const target = nameOf(tensor.name, architecture);
    if (target === null)
      return metadata.refuse(`tensor ${inOneLine(tensor.name)} is not known in the architecture ${name}`);
    const permuted = architecture.permuted ? (/\.attn_([qk])\./.exec(tensor.name)?.[1] ?? null) : null;
    const permutedHeads = permuted === null ? null : permuted === 'q' ? sizes.heads : sizes.kvHeads;
    const shift = tensor.name.endsWith('norm.weight') ? architecture.normShift : 0;
    weights.set(target, { tensor, order: { permutedHeads, shift } });
  }
  return { config: configOf(file, name, sizes, weights), weights };
}

/** A file may hold something else than a whole model. */
function checkKind(metadata: Metadata): void {
  const kind = metadata.text('general.type') ?? 'model';
  if (kind !== 'model') metadata.refuse(`it holds no model: its general.type is '${inOneLine(kind)}'`);
  const parts = metadata.whole('split.count') ?? 1;
  if (parts > 1)
    metadata.refuse(`it is one of ${parts} parts; join them first: llama-gguf-split --merge FIRST-PART OUT.gguf`);
}

interface Sizes {
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
}

function readSizes(metadata: Metadata, name: string): Sizes {
  const needed = (key: string): number => metadata.required(metadata.whole(`${name}.${key}`), `${name}.${key}`);
  const [layers, width, heads] = [needed('block_count'), needed('embedding_length'), needed('attention.head_count')];
  const kvHeads = metadata.whole(`${name}.attention.head_count_kv`) ?? heads;
  const headDim = metadata.whole(`${name}.attention.key_length`) ?? width / heads;
  const valueDim = metadata.whole(`${name}.attention.value_length`) ?? headDim;
  if (valueDim !== headDim)
    metadata.refuse(`its heads have keys of ${headDim} and values of ${valueDim} numbers; one size is supported`);
  return { layers, width, heads, kvHeads, headDim };
}

function nameOf(tensor: string, { modules }: Architecture): string | null {
  const [, layer, inner, kind] = /^blk\.(0|[1-9]\d{0,4})\.(\w+)\.(weight|bias)$/.exec(tensor) ?? [];
  if (layer === undefined) {
    const outer = /^(\w+)\.weight$/.exec(tensor)?.[1] ?? '';
    return Object.hasOwn(OUTER, outer) ? `${OUTER[outer]}.weight` : null;
  }
  const names = { ...MODULES, ...modules };
  return Object.hasOwn(names, inner!) ? `model.layers.${layer}.${names[inner!]}.${kind}` : null;
}

/** Layers of Gemma 3 27B, the one size whose queries are not scaled by the width of a head. */
const GEMMA_27B_LAYERS = 62;
/** Of Gemma 3's layers every sixth sees all; the others' rotations have a base of their own. */
const GEMMA_PATTERN = 6;
const GEMMA_LOCAL_THETA = 10_000;

function configOf(
  file: GgufFile,
  name: string,
  { layers, width, heads, kvHeads, headDim }: Sizes,
  weights: ReadonlyMap<string, ImportedWeight>,
): Record<string, unknown> {
  const { metadata } = file;
  const architecture = ARCHITECTURES[name]!;
  const key = (rest: string) => `${name}.${rest}`;
  const rotated = metadata.whole(key('rope.dimension_count')) ?? headDim;
  const window = metadata.whole(key('attention.sliding_window'));
  const theta = metadata.number(key('rope.freq_base')) ?? architecture.theta;
  const scaling = readRopeScaling(file, name, { theta, rotated });
  const embedding = metadata.required(weights.get('model.embed_tokens.weight'), 'tensor token_embd.weight');
  // Mistral is Llama with a window.
  const isMistral = name === 'llama' && Boolean(window);
  const [family, className] = isMistral
    ? ['mistral', 'MistralForCausalLM']
    : [architecture.family, architecture.className];
  const shared = {
    architectures: [className],
    model_type: family,
    vocab_size: embedding.tensor.shape[0]!,
    hidden_size: width,
    intermediate_size: metadata.required(metadata.whole(key('feed_forward_length')), key('feed_forward_length')),
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: kvHeads,
    head_dim: headDim,
    rms_norm_eps: metadata.required(
      metadata.number(key('attention.layer_norm_rms_epsilon')),
      key('attention.layer_norm_rms_epsilon'),
    ),
    max_position_embeddings: metadata.required(metadata.whole(key('context_length')), key('context_length')),
    tie_word_embeddings: !weights.has('lm_head.weight'),
    rope_theta: theta,
    ...(scaling ? { rope_scaling: scaling } : {}),
    // Phi-3's place for it, which counts before the scaling's own.
    ...present('original_max_position_embeddings', scaling?.['original_max_position_embeddings']),
    ...(rotated === headDim ? {} : { partial_rotary_factor: rotated / headDim }),
  };
  const hasBias = weights.has('model.layers.0.self_attn.q_proj.bias');
  if (name !== 'gemma3') {
    return {
      ...shared,
      hidden_act: 'silu',
      ...(name === 'qwen2' || name === 'phi3' || isMistral ? {} : { attention_bias: hasBias }),
      ...(name === 'phi3' || isMistral ? { sliding_window: window || null } : {}),
    };
  }
  for (const cap of ['final_logit_softcapping', 'attn_logit_softcapping'])
    if (metadata.number(key(cap))) metadata.refuse(`its ${key(cap)} is not supported`);
  return {
    ...shared,
    hidden_activation: 'gelu_pytorch_tanh',
    attention_bias: hasBias,
    query_pre_attn_scalar: layers === GEMMA_27B_LAYERS ? width / heads : headDim,
    sliding_window: metadata.required(window, key('attention.sliding_window')),
    layer_types: Array.from({ length: layers }, (_, i) =>
      (i + 1) % GEMMA_PATTERN ? 'sliding_attention' : 'full_attention',
    ),
    rope_local_base_freq: metadata.number(key('rope.freq_base_swa')) ?? GEMMA_LOCAL_THETA,
  };
}
