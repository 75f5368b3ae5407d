/** GGUF files into checkpoints: small models written as llama.cpp's converter writes them, and files that are wrong. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { f32Bytes, ggufFile, LLAMA, LLAMA_TENSORS, PIECE_COUNT, PIECES } from '../../../scripts/fuzz/seeds/gguf.mjs';
import type { GgufTensorData, GgufValue } from '../../../scripts/fuzz/seeds/gguf.mjs';
import { randomWeights, temporaryFolder, TINY_GEMMA3, TINY_LLAMA, TINY_QWEN2 } from '../../../tests/tiny-checkpoint.js';
import type { Tensor } from '../../onnx/session.js';
import { openCheckpoint, readWeights } from '../checkpoint.js';
import type { DecoderConfig } from '../config.js';
import { narrow } from '../narrow.js';
import { toFloat32 } from '../safetensors.js';
import { ropeFrequencies } from '../rope.js';
import { importGguf } from './import.js';

type Metadata = Readonly<Record<string, GgufValue>>;

const LLAMA_MODEL: DecoderConfig = { ...TINY_LLAMA, vocabulary: PIECE_COUNT, tiedHead: false };

/** An architecture's settings as the converter writes them. */
function settings(name: string, c: DecoderConfig): Metadata {
  return {
    'general.architecture': ['text', name],
    [`${name}.block_count`]: ['u32', c.layers],
    [`${name}.embedding_length`]: ['u32', c.width],
    [`${name}.feed_forward_length`]: ['u32', c.feedForward],
    [`${name}.attention.head_count`]: ['u32', c.heads],
    [`${name}.attention.head_count_kv`]: ['u32', c.kvHeads],
    [`${name}.attention.key_length`]: ['u32', c.headDim],
    [`${name}.attention.value_length`]: ['u32', c.headDim],
    [`${name}.context_length`]: ['u32', c.maxPositions],
    [`${name}.rope.freq_base`]: ['f32', c.ropeTheta],
    [`${name}.attention.layer_norm_rms_epsilon`]: ['f32', c.epsilon],
    ...(c.slidingWindow ? { [`${name}.attention.sliding_window`]: ['u32', c.slidingWindow.positions] as const } : {}),
    ...(c.rotatedDim ? { [`${name}.rope.dimension_count`]: ['u32', c.rotatedDim] as const } : {}),
    ...PIECES,
  };
}

const NAMES: Readonly<Record<string, string>> = {
  'model.embed_tokens': 'token_embd',
  'model.norm': 'output_norm',
  lm_head: 'output',
  input_layernorm: 'attn_norm',
  'self_attn.q_proj': 'attn_q',
  'self_attn.k_proj': 'attn_k',
  'self_attn.v_proj': 'attn_v',
  'self_attn.qkv_proj': 'attn_qkv',
  'self_attn.o_proj': 'attn_output',
  'self_attn.q_norm': 'attn_q_norm',
  'self_attn.k_norm': 'attn_k_norm',
  post_attention_layernorm: 'ffn_norm',
  'mlp.gate_proj': 'ffn_gate',
  'mlp.up_proj': 'ffn_up',
  'mlp.gate_up_proj': 'ffn_up',
  'mlp.down_proj': 'ffn_down',
};

const GEMMA_NAMES: Readonly<Record<string, string>> = {
  ...NAMES,
  post_attention_layernorm: 'post_attention_norm',
  pre_feedforward_layernorm: 'ffn_norm',
  post_feedforward_layernorm: 'post_ffw_norm',
};

/** The converter's own words: reshape(heads, 2, rows / heads / 2, …).swapaxes(1, 2). */
function permuted({ shape, data }: Tensor, heads: number): Float32Array {
  const columns = shape.length === 1 ? 1 : shape[1]!;
  const half = shape[0]! / heads / 2;
  const out: number[] = [];
  for (let head = 0; head < heads; head++) {
    for (let pair = 0; pair < half; pair++) {
      for (const which of [0, 1]) {
        const row = (head * 2 + which) * half + pair;
        out.push(...data.subarray(row * columns, (row + 1) * columns));
      }
    }
  }
  return Float32Array.from(out);
}

/** Weights as tensors of a file of that architecture, backwards, as no order is prescribed. */
function tensorsOf(name: string, c: DecoderConfig, weights: ReadonlyMap<string, Tensor>): GgufTensorData[] {
  return [...weights].toReversed().map(([weight, tensor]) => {
    const [, layer, module, kind] = /^(?:model\.layers\.(\d+)\.)?(.*)\.(weight|bias)$/.exec(weight)!;
    const heads = module === 'self_attn.q_proj' ? c.heads : module === 'self_attn.k_proj' ? c.kvHeads : null;
    const values = name === 'llama' && heads !== null ? permuted(tensor, heads) : Float32Array.from(tensor.data);
    const isGemma = name === 'gemma3';
    if (isGemma && weight.endsWith('norm.weight')) values.forEach((x, i) => (values[i] = x + 1));
    const own = `${(isGemma ? GEMMA_NAMES : NAMES)[module!]}.${kind}`;
    return {
      name: layer === undefined ? own : `blk.${layer}.${own}`,
      shape: tensor.shape,
      type: 0,
      data: f32Bytes(values),
    };
  });
}

function writeFile(metadata: Metadata, tensors: readonly GgufTensorData[]): string {
  const file = join(temporaryFolder(), 'model.gguf');
  writeFileSync(file, ggufFile({ metadata, tensors }));
  return file;
}

const imported = (file: string, dtype: 'f32' | 'bf16' = 'f32') =>
  importGguf(file, { folder: join(file, '../out'), dtype });

const QWEN2: DecoderConfig = { ...TINY_QWEN2, vocabulary: PIECE_COUNT };
const QWEN3: DecoderConfig = { ...TINY_LLAMA, family: 'qwen3', vocabulary: PIECE_COUNT, headDim: 6 };
const PHI3: DecoderConfig = { ...LLAMA_MODEL, family: 'phi3' };
const TIED: DecoderConfig = { ...LLAMA_MODEL, tiedHead: true, epsilon: 1e-6, ropeTheta: 1e6 };
const PARTIAL: DecoderConfig = { ...PHI3, headDim: 8, rotatedDim: 6 };
/** Mistral's files call themselves Llama's. */
const MISTRAL: DecoderConfig = {
  ...LLAMA_MODEL,
  family: 'mistral',
  slidingWindow: { positions: 8, layers: [true, true], ropeTheta: null },
};
const { queryScale: _queryScale, ...plainGemma } = TINY_GEMMA3;
const GEMMA3: DecoderConfig = {
  ...plainGemma,
  vocabulary: PIECE_COUNT,
  layers: 7,
  ropeTheta: 1e6,
  slidingWindow: { positions: 8, layers: [true, true, true, true, true, false, true], ropeTheta: 10_000 },
};
const BIASED: DecoderConfig = { ...LLAMA_MODEL, attentionBias: true };

describe('a file’s weights', () => {
  it.each([
    ['llama', LLAMA_MODEL],
    ['llama', TIED],
    ['llama', BIASED],
    ['qwen2', QWEN2],
    ['qwen3', QWEN3],
    ['phi3', PHI3],
    ['phi3', PARTIAL],
    ['llama', MISTRAL],
    ['gemma3', GEMMA3],
  ] as const)('of the architecture %s come back as they were', async (name, config) => {
    // Numbers to which 1 is added exactly.
    const weights = new Map(
      [...randomWeights(config, 1)].map(([key, { shape, data }]) => [
        key,
        { shape, data: data.map((x) => (Math.round(x * 1024) + 0) / 1024) },
      ]),
    );
    const file = writeFile(settings(name, config), tensorsOf(name, config, weights));
    const { folder, family } = await imported(file);
    const checkpoint = openCheckpoint(folder);
    expect(checkpoint.config).toEqual(config);
    expect(family).toBe(config.family);
    expect(readWeights(checkpoint)).toEqual(weights);
  });

  it('are rounded once to bfloat16 where that is asked for', async () => {
    const weights = randomWeights(LLAMA_MODEL, 2);
    const file = writeFile(settings('llama', LLAMA_MODEL), tensorsOf('llama', LLAMA_MODEL, weights));
    const { folder, bytes } = await imported(file, 'bf16');
    const rounded = [...weights].map(([key, { shape, data }]) => {
      const words = narrow(Float32Array.from(data), 'BF16');
      return [key, { shape, data: toFloat32(words, 'BF16') }] as const;
    });
    expect(readWeights(openCheckpoint(folder))).toEqual(new Map(rounded));
    expect(bytes).toBe(2 * rounded.reduce((sum, [, { data }]) => sum + data.length, 0));
    expect(JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'))).toMatchObject({ torch_dtype: 'bfloat16' });
  });

  it('of quantised blocks are read across the parts that a large tensor is read in', async () => {
    // 1,500 rows of 1,024: more than one part; every row its own scale.
    const [rows, columns] = [1500, 1024];
    const config = { ...LLAMA_MODEL, width: columns, heads: 2, kvHeads: 2, headDim: 4, feedForward: rows, layers: 1 };
    const weights = randomWeights({ ...config, vocabulary: PIECE_COUNT }, 3);
    const gate = Buffer.alloc(rows * (columns / 32) * 34);
    const scales = toFloat32(
      new Uint8Array(Uint16Array.from({ length: rows }, (_, row) => 0x3000 + row).buffer),
      'F16',
    );
    for (let block = 0; block < gate.length / 34; block++) {
      gate.writeUInt16LE(0x3000 + Math.floor(block / (columns / 32)), block * 34);
      for (let j = 0; j < 32; j++) gate.writeInt8(((block + j) % 255) - 127, block * 34 + 2 + j);
    }
    const tensors = tensorsOf('llama', config, weights).map((tensor) =>
      tensor.name === 'blk.0.ffn_gate.weight' ? { ...tensor, type: 8, data: gate } : tensor,
    );
    const { folder, quantised } = await imported(writeFile(settings('llama', config), tensors));
    expect(quantised).toEqual({ F32: 11, Q8_0: 1 });
    const { data } = readWeights(openCheckpoint(folder)).get('model.layers.0.mlp.gate_proj.weight')!;
    const expected = Float32Array.from({ length: rows * columns }, (_, i) => {
      const block = Math.floor(i / 32);
      return scales[Math.floor(i / columns)]! * (((block + (i % 32)) % 255) - 127);
    });
    expect(Buffer.from(f32Bytes(Float32Array.from(data))).equals(Buffer.from(f32Bytes(expected)))).toBe(true);
  });
});

describe('rotations', () => {
  const llama = { ...LLAMA_MODEL, headDim: 8, ropeTheta: 500_000, maxPositions: 131_072 };
  const LLAMA3 = {
    type: 'llama3',
    factor: 8,
    lowFrequencyFactor: 1,
    highFrequencyFactor: 4,
    originalPositions: 8192,
  } as const;
  const open = async (name: string, config: DecoderConfig, more: Metadata, tensors: readonly GgufTensorData[] = []) => {
    const all = [...tensorsOf(name, config, randomWeights(config, 1)), ...tensors];
    const { folder } = await imported(writeFile({ ...settings(name, config), ...more }, all));
    return openCheckpoint(folder).config;
  };
  const vector = (name: string, values: readonly number[]): GgufTensorData => ({
    name,
    shape: [values.length],
    type: 0,
    data: f32Bytes(Float32Array.from(values)),
  });

  it('of Llama 3 are known by their divisors', async () => {
    const [plain, scaled] = [null, LLAMA3].map((scaling) => ropeFrequencies(8, 500_000, scaling)) as [
      number[],
      number[],
    ];
    const divisors = plain.map((frequency, i) => frequency / scaled[i]!);
    const config = await open('llama', llama, {}, [vector('rope_freqs.weight', divisors)]);
    expect(config.ropeScaling).toEqual(LLAMA3);
    await expect(open('llama', llama, {}, [vector('rope_freqs.weight', [1, 2, 3, 8])])).rejects.toThrow(
      'its rope_freqs.weight is not Llama 3',
    );
    await expect(open('llama', llama, {}, [vector('rope_freqs.weight', [1, 1])])).rejects.toThrow(
      'rope_freqs.weight has the shape [2], not 4 numbers',
    );
  });

  it('are scaled as the settings say', async () => {
    const linear = await open('llama', llama, {
      'llama.rope.scaling.type': ['text', 'linear'],
      'llama.rope.scaling.factor': ['f32', 4],
    });
    expect(linear.ropeScaling).toEqual({ type: 'linear', factor: 4 });
    const yarn = await open('llama', llama, {
      'llama.rope.scaling.type': ['text', 'yarn'],
      'llama.rope.scaling.factor': ['f32', 4],
      'llama.rope.scaling.original_context_length': ['u32', 32_768],
    });
    expect(yarn.ropeScaling).toMatchObject({ type: 'yarn', factor: 4, originalPositions: 32_768, betaFast: 32 });
    const phi3 = { ...PHI3, headDim: 8, maxPositions: 64 };
    const long = await open(
      'phi3',
      phi3,
      {
        'phi3.rope.scaling.original_context_length': ['u32', 16],
        'phi3.rope.scaling.attn_factor': ['f32', 1.25],
        'phi3.rope.dimension_count': ['u32', 8],
      },
      [vector('rope_factors_short.weight', [1, 1.1, 1.2, 1.3]), vector('rope_factors_long.weight', [1, 2, 3, 4])],
    );
    expect(long.ropeScaling).toEqual({
      type: 'longrope',
      shortFactors: [1, 1.1, 1.2, 1.3],
      longFactors: [1, 2, 3, 4],
      attentionFactor: 1.25,
      originalPositions: 16,
    });
  });

  it('are refused where their scaling is not known', async () => {
    const strange = { 'llama.rope.scaling.type': ['text', 'spiral'] } as const;
    await expect(open('llama', llama, strange)).rejects.toThrow(
      "its llama.rope.scaling.type 'spiral' is not supported",
    );
  });
});

describe('what is not known', () => {
  const first = LLAMA_TENSORS[0]!;
  it.each<[what: string, message: string, metadata: Metadata, tensors?: readonly GgufTensorData[]]>([
    [
      'an architecture',
      "its architecture 'mamba' is not read here; supported are llama,",
      { 'general.architecture': ['text', 'mamba'] },
    ],
    ['a setting', 'its setting llama.expert_count is not known here', { 'llama.expert_count': ['u32', 8] }],
    ['a tokenizer', "its tokenizer 'bert' is not read here", { 'tokenizer.ggml.model': ['text', 'bert'] }],
    [
      'a pre-tokenizer',
      "its pre-tokenizer 'chameleon' is not known here; known are gpt-2,",
      { 'tokenizer.ggml.model': ['text', 'gpt2'], 'tokenizer.ggml.pre': ['text', 'chameleon'] },
    ],
    [
      'a tensor',
      'tensor blk.0.ssm_a.weight is not known in the architecture llama',
      {},
      [...LLAMA_TENSORS, { ...first, name: 'blk.0.ssm_a.weight' }],
    ],
    [
      'a tensor of another layer',
      'tensor blk.7.attn_norm.weight is model.layers.7.input_layernorm.weight, which a llama model does not have',
      {},
      [...LLAMA_TENSORS, { ...first, name: 'blk.7.attn_norm.weight' }],
    ],
    ['embeddings that are not there', 'it has no tensor token_embd.weight', {}, LLAMA_TENSORS.slice(1)],
    ['another missing tensor', 'it has no tensor for model.norm.weight', {}, [first, ...LLAMA_TENSORS.slice(2)]],
    [
      'a tensor of another shape',
      'tensor token_embd.weight has the shape [21,16], its settings call for [21,8]',
      {},
      [{ ...first, shape: [PIECE_COUNT, 16], data: new Uint8Array(PIECE_COUNT * 64) }, ...LLAMA_TENSORS.slice(1)],
    ],
    [
      'more tokens than embeddings',
      'it has 21 tokens and embeddings of 20',
      {},
      [{ ...first, shape: [PIECE_COUNT - 1, 8] }, ...LLAMA_TENSORS.slice(1)],
    ],
    [
      'a quantisation',
      'tensor token_embd.weight is quantised as IQ4_XS, which is not read here; take a file of F32,',
      {},
      [{ ...first, type: 23 }, ...LLAMA_TENSORS.slice(1)],
    ],
    ['a part of a file', 'it is one of 3 parts; join them first', { 'split.count': ['u32', 3] }],
    ['an adapter', "it holds no model: its general.type is 'adapter'", { 'general.type': ['text', 'adapter'] }],
  ])('%s is refused by name, and nothing is written', async (_what, message, change, tensors = LLAMA_TENSORS) => {
    const file = writeFile({ ...LLAMA, ...change }, tensors);
    await expect(imported(file)).rejects.toThrow(`${file}: ${message}`);
    expect(readdirSync(join(file, '..'))).toEqual(['model.gguf']);
  });
});

describe('the folder', () => {
  const file = () => writeFile(LLAMA, LLAMA_TENSORS);

  it('has the files of a checkpoint, with the tokens that end a text', async () => {
    const { folder } = await imported(file());
    expect(readdirSync(folder).toSorted()).toEqual([
      'config.json',
      'generation_config.json',
      'model.safetensors',
      'tokenizer.json',
      'tokenizer_config.json',
    ]);
    expect(JSON.parse(readFileSync(join(folder, 'generation_config.json'), 'utf8'))).toEqual({
      bos_token_id: 1,
      eos_token_id: 2,
    });
  });

  it('is refused where it holds anything, and may be there empty', async () => {
    const path = file();
    const folder = join(path, '../out');
    mkdirSync(folder);
    await imported(path);
    await expect(imported(path)).rejects.toThrow(`${folder} is not empty; give another --out`);
  });

  it('is made anew beside what a killed import has left', async () => {
    const path = file();
    const left = join(path, '../.out.import');
    mkdirSync(left);
    writeFileSync(join(left, 'model.safetensors'), 'half');
    const { folder } = await imported(path);
    expect(existsSync(left)).toBe(false);
    expect(openCheckpoint(folder).config.family).toBe('llama');
  });
});

describe('a damaged file', () => {
  it.each([0, 3, 20, 200, 1500, -1])('cut at byte %i is refused in one line', async (bytes) => {
    const path = join(temporaryFolder(), 'model.gguf');
    writeFileSync(path, ggufFile({ metadata: LLAMA, tensors: LLAMA_TENSORS }).slice(0, bytes));
    // The last byte is padding behind the last tensor's 256: cut 32 more.
    if (bytes < 0) writeFileSync(path, ggufFile({ metadata: LLAMA, tensors: LLAMA_TENSORS }).slice(0, -33));
    await expect(imported(path)).rejects.toThrow(/cut off|does not begin with the letters GGUF/);
  });

  it('that claims more than it can hold is refused before it is read', async () => {
    const path = join(temporaryFolder(), 'model.gguf');
    writeFileSync(path, ggufFile({ metadata: LLAMA, tensors: LLAMA_TENSORS, count: 2n ** 60n }));
    await expect(imported(path)).rejects.toThrow('it claims 1152921504606847000 tensors, more than 65536');
  });

  it('whose tensors overlap is refused', async () => {
    const [one, ...others] = LLAMA_TENSORS;
    const file = writeFile(LLAMA, [{ ...one!, offset: 32 }, ...others]);
    await expect(imported(file)).rejects.toThrow(/tensor .* begins inside another/);
  });
});
