/** The families of decoders that are supported, and what sets each apart; defaults are transformers'. */

/** What a family's name alone decides. */
export interface Family {
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
  /** Which layers have the `sliding_window`: all, with `use_sliding_window` those after a number of others, all but every sixth, or none. */
  readonly window: 'always' | 'switched' | 'pattern' | 'never';
  /** Whether heads may be rotated in part. */
  readonly partialRotary: boolean;
  /** What multiplies the half of the feed-forward layer that is a gate. */
  readonly activation: 'silu' | 'gelu';
  /** What is added to a norm's weight before it scales. */
  readonly normShift: 0 | 1;
  /** Whether attention and feed-forward layer are normalised on their way out too. */
  readonly normsAround: boolean;
  /** Whether embeddings are multiplied by the square root of their width. */
  readonly scaledEmbeddings: boolean;
  /** What transformers takes where `config.json` is silent. */
  readonly defaults: {
    readonly epsilon: number;
    readonly positions: number;
    readonly headDim?: number;
    /** Else as many as heads, as where it is null. */
    readonly kvHeads?: number;
    readonly slidingWindow?: number;
    readonly originalPositions?: number;
    readonly theta?: number;
    /** Whether the head is the embedding. */
    readonly tied?: boolean;
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
  partialRotary: false,
  activation: 'silu',
  normShift: 0,
  normsAround: false,
  scaledEmbeddings: false,
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
    partialRotary: true,
    defaults: { epsilon: 1e-5, positions: 4096, originalPositions: 4096 },
  },
  gemma3_text: {
    ...PLAIN,
    architecture: 'Gemma3ForCausalLM',
    queryKeyNorm: true,
    window: 'pattern',
    activation: 'gelu',
    normShift: 1,
    normsAround: true,
    scaledEmbeddings: true,
    defaults: {
      epsilon: 1e-6,
      positions: 131_072,
      headDim: 256,
      kvHeads: 4,
      slidingWindow: 4096,
      theta: 1e6,
      tied: true,
    },
  },
} as const satisfies Record<string, Family>;

export type FamilyName = keyof typeof FAMILIES;

export function familyOf({ family }: { readonly family: FamilyName }): Family {
  return FAMILIES[family];
}
