/** Sizes of models that people name before they have them: a plan takes them where no config.json is here. */
import { parseConfig } from '../lm/config.js';
import type { DecoderConfig } from '../lm/config.js';
import type { FamilyName } from '../lm/families.js';
import { parseHubModel } from '../lm/hub/cache.js';

type Sizes = readonly [
  layers: number,
  width: number,
  feedForward: number,
  heads: number,
  kvHeads: number,
  tiedHead: boolean,
  /** Where it is not the family's own. */
  other?: Readonly<Record<string, unknown>>,
];

interface Known {
  /** Owner and name on the hub, with the size as a group; whatever follows it was trained further and keeps its sizes. */
  readonly names: RegExp;
  /** What a plan calls them: `Qwen2.5 3B`. */
  readonly title: string;
  readonly family: FamilyName;
  readonly shared: Readonly<Record<string, unknown>>;
  readonly sizes: Readonly<Record<string, Sizes>>;
}

const LLAMA_3_SCALING = {
  rope_type: 'llama3',
  low_freq_factor: 1,
  high_freq_factor: 4,
  original_max_position_embeddings: 8192,
};

/**
 * From the config.json of each model at https://huggingface.co under its name; all are stored in bfloat16. Of versions with several
 * numbers of positions the fewest.
 */
const KNOWN: readonly Known[] = [
  {
    names: /^Qwen\/Qwen2\.5-(?:Coder-)?([\d.]+B)(?:-Instruct)?$/,
    title: 'Qwen2.5',
    family: 'qwen2',
    shared: { vocab_size: 151_936, max_position_embeddings: 32_768, rms_norm_eps: 1e-6, rope_theta: 1e6 },
    sizes: {
      '0.5B': [24, 896, 4864, 14, 2, true],
      '1.5B': [28, 1536, 8960, 12, 2, true],
      '3B': [36, 2048, 11_008, 16, 2, true],
      '7B': [28, 3584, 18_944, 28, 4, false, { vocab_size: 152_064 }],
      '14B': [48, 5120, 13_824, 40, 8, false, { vocab_size: 152_064 }],
      '32B': [64, 5120, 27_648, 40, 8, false, { vocab_size: 152_064 }],
      '72B': [80, 8192, 29_568, 64, 8, false, { vocab_size: 152_064 }],
    },
  },
  {
    names: /^Qwen\/Qwen3-([\d.]+B)(?:-Base|-(?:Instruct|Thinking)-2507)?$/,
    title: 'Qwen3',
    family: 'qwen3',
    shared: {
      vocab_size: 151_936,
      max_position_embeddings: 32_768,
      rms_norm_eps: 1e-6,
      rope_theta: 1e6,
      head_dim: 128,
    },
    sizes: {
      '0.6B': [28, 1024, 3072, 16, 8, true],
      '1.7B': [28, 2048, 6144, 16, 8, true],
      '4B': [36, 2560, 9728, 32, 8, true],
      '8B': [36, 4096, 12_288, 32, 8, false],
      '14B': [40, 5120, 17_408, 40, 8, false],
      '32B': [64, 5120, 25_600, 64, 8, false],
    },
  },
  {
    names: /^meta-llama\/(?:Meta-)?Llama-3\.[123]-(\d+B)(?:-Instruct)?$/,
    title: 'Llama 3.1 to 3.3',
    family: 'llama',
    shared: { vocab_size: 128_256, max_position_embeddings: 131_072, rms_norm_eps: 1e-5, rope_theta: 5e5 },
    sizes: {
      '1B': [16, 2048, 8192, 32, 8, true, { rope_scaling: { ...LLAMA_3_SCALING, factor: 32 } }],
      '3B': [28, 3072, 8192, 24, 8, true, { rope_scaling: { ...LLAMA_3_SCALING, factor: 32 } }],
      '8B': [32, 4096, 14_336, 32, 8, false, { rope_scaling: { ...LLAMA_3_SCALING, factor: 8 } }],
      '70B': [80, 8192, 28_672, 64, 8, false, { rope_scaling: { ...LLAMA_3_SCALING, factor: 8 } }],
    },
  },
  {
    names: /^mistralai\/Mistral-(7B)-(?:Instruct-)?v0\.3$/,
    title: 'Mistral v0.3',
    family: 'mistral',
    shared: { vocab_size: 32_768, max_position_embeddings: 32_768, rms_norm_eps: 1e-5, rope_theta: 1e6 },
    sizes: { '7B': [32, 4096, 14_336, 32, 8, false] },
  },
  {
    names: /^HuggingFaceTB\/SmolLM2-([\d.]+[MB])(?:-Instruct)?$/,
    title: 'SmolLM2',
    family: 'llama',
    shared: { vocab_size: 49_152, max_position_embeddings: 8192, rms_norm_eps: 1e-5, rope_theta: 1e5 },
    sizes: {
      '135M': [30, 576, 1536, 9, 3, true],
      '360M': [32, 960, 2560, 15, 5, true],
      '1.7B': [24, 2048, 8192, 32, 32, true],
    },
  },
];

export interface KnownModel {
  /** `Qwen2.5 3B`. */
  readonly title: string;
  readonly config: DecoderConfig;
}

/** What is published of a model of the hub, at whatever revision; null for one that is not known. */
export function knownModel(name: string): KnownModel | null {
  const id = parseHubModel(name)?.id ?? '';
  for (const { names, title, family, shared, sizes } of KNOWN) {
    const size = names.exec(id)?.[1];
    if (size === undefined || !Object.hasOwn(sizes, size)) continue;
    const [layers, width, feedForward, heads, kvHeads, tiedHead, other] = sizes[size]!;
    const json = {
      model_type: family,
      ...shared,
      num_hidden_layers: layers,
      hidden_size: width,
      intermediate_size: feedForward,
      num_attention_heads: heads,
      num_key_value_heads: kvHeads,
      tie_word_embeddings: tiedHead,
      ...other,
    };
    return { title: `${title} ${size}`, config: parseConfig(JSON.stringify(json), `known sizes of ${name}`) };
  }
  return null;
}
