// The files of a checkpoint: tokenizer, configurations, weights, adapters. Each input is a file in a folder whose other files are right.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { initialAdapter } from '../../dist/lm/adapter.js';
import { readAdapter, writeAdapter } from '../../dist/lm/adapter-folder.js';
import { openCheckpoint, readWeights, writeCheckpoint } from '../../dist/lm/checkpoint.js';
import { formatConfig, parameterCount, parseConfig, weightShapes } from '../../dist/lm/config.js';
import { importGguf } from '../../dist/lm/gguf/import.js';
import { ropeFrequencies } from '../../dist/lm/rope.js';
import { readTensors, writeTensors } from '../../dist/lm/safetensors.js';
import { Tokenizer } from '../../dist/lm/tokenizer.js';
import { openWeightFiles } from '../../dist/lm/weight-files.js';
import { ggufFile, LLAMA, LLAMA_TENSORS, u32, u64 } from './seeds/gguf.mjs';
import { deep, hostileTokenizers, tokenizerConfig, tokenizers } from './seeds/tokenizers.mjs';

const CONFIG = {
  family: 'llama',
  vocabulary: 64,
  width: 8,
  layers: 1,
  heads: 2,
  kvHeads: 2,
  headDim: 4,
  feedForward: 8,
  epsilon: 1e-5,
  ropeTheta: 1e4,
  ropeScaling: null,
  maxPositions: 64,
  slidingWindow: null,
  tiedHead: true,
  attentionBias: false,
};

/** A checkpoint to put inputs into, made once and removed with the process. */
const ground = mkdtempSync(join(tmpdir(), 'propel-fuzz-'));
process.on('exit', () => rmSync(ground, { recursive: true, force: true }));
const checkpoint = join(ground, 'checkpoint');
const zeros = new Map(
  [...weightShapes(CONFIG)].map(([name, shape]) => [
    name,
    { shape, data: new Float32Array(shape.reduce((a, b) => a * b, 1)) },
  ]),
);
writeCheckpoint(checkpoint, CONFIG, zeros, { bos: 1, eos: 2, pad: 0 });
const adapter = join(ground, 'adapter');
writeAdapter(adapter, initialAdapter(CONFIG, { rank: 2, alpha: 4, targets: ['q_proj', 'v_proj'] }, 1), 'base');

const text = JSON.stringify;

/** Bytes as one of the files of a folder that is made for it and removed. */
async function inFolder(from, name, content, use) {
  const folder = mkdtempSync(join(ground, 'input-'));
  try {
    cpSync(from, folder, { recursive: true });
    writeFileSync(join(folder, name), content);
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

writeFileSync(join(checkpoint, 'tokenizer.json'), tokenizers[0]);
writeFileSync(join(checkpoint, 'tokenizer_config.json'), text(tokenizerConfig));

const QUESTION = 'def f(x): return x.replace("<s>", "")</s>\n';

async function useTokenizer(folder) {
  const opened = await Tokenizer.open(folder);
  const ids = opened.prompt(QUESTION);
  opened.question(QUESTION, 'auto');
  return opened.decode(ids);
}

const config = formatConfig(CONFIG, { bos: 1, eos: 2, pad: 0 });
const llama3 = {
  rope_type: 'llama3',
  factor: 8,
  low_freq_factor: 1,
  high_freq_factor: 4,
  original_max_position_embeddings: 32,
};
const longrope = {
  type: 'longrope',
  short_factor: [1, 1.5],
  long_factor: [2, 3],
  original_max_position_embeddings: 32,
};
const withConfig = (change) => text({ ...JSON.parse(config), ...change });
const weights = readFileSync(join(checkpoint, 'model.safetensors'));

/** A safetensors file of a header and bytes behind it. */
function tensorFile(header, size = 0) {
  const json = Buffer.from(typeof header === 'string' ? header : text(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  return Buffer.concat([length, json, Buffer.alloc(size)]);
}
const small = join(ground, 'small.safetensors');
writeTensors(small, new Map([['x', { shape: [2, 2], data: Float32Array.of(1, 2, 3, 4) }]]));
const half = { dtype: 'F16', shape: [2], data_offsets: [0, 4] };
const index = text({
  metadata: { total_size: 4 },
  weight_map: Object.fromEntries([...zeros.keys()].map((name) => [name, 'part.safetensors'])),
});

const llama = ggufFile({ metadata: LLAMA, tensors: LLAMA_TENSORS });
const [tensor, ...otherTensors] = LLAMA_TENSORS;
const gguf = (change, tensors = LLAMA_TENSORS) => ggufFile({ metadata: { ...LLAMA, ...change }, tensors });
/** A head that ends after what it claims. */
const claims = (...parts) => new Uint8Array(Buffer.concat([Buffer.from('GGUF'), u32(3), ...parts]));

export const parsers = [
  {
    name: 'gguf',
    seeds: [
      llama,
      gguf({
        'tokenizer.ggml.model': ['text', 'gpt2'],
        'tokenizer.ggml.pre': ['text', 'gpt-2'],
        'tokenizer.ggml.merges': [['text'], ['a b']],
      }),
    ],
    hostile: [
      new Uint8Array(0),
      claims(),
      claims(u64(2n ** 64n - 1n), u64(2n ** 64n - 1n)),
      claims(u64(65_536), u64(0)),
      new Uint8Array(Buffer.concat([claims(u64(65_536), u64(0)), Buffer.alloc(4_000_000)])),
      claims(u64(0), u64(1), u64(2n ** 63n)),
      claims(u64(0), u64(1), u64(1), Uint8Array.of(97), u32(9), u32(4), u64(2n ** 40n)),
      claims(u64(0), u64(1), u64(1), Uint8Array.of(97), u32(9), u32(9), u64(4_000_000)),
      ...[0.1, 0.5, 0.9, 0.999].map((part) => llama.subarray(0, Math.floor(part * llama.length))),
      gguf({}, [{ ...tensor, offset: 64 }, ...otherTensors]),
      gguf({}, [{ ...tensor, offset: 2n ** 63n }, ...otherTensors]),
      gguf({}, [{ ...tensor, shape: [2 ** 40, 2 ** 40] }, ...otherTensors]),
      gguf({}, [{ ...tensor, shape: [2 ** 22, 2 ** 18] }, ...otherTensors]),
      gguf({}, [{ ...tensor, type: 31 }, ...otherTensors]),
      gguf({}, [tensor, tensor, ...otherTensors]),
      gguf({ 'llama.block_count': ['u32', 2 ** 31] }),
      gguf({ 'llama.attention.head_count': ['u32', 0] }),
      gguf({ 'llama.embedding_length': ['text', 'wide'] }),
      gguf({ 'general.alignment': ['u32', 0] }),
      gguf({
        'tokenizer.ggml.tokens': [['text'], Array.from({ length: 20_000 }, (_, i) => '▁'.repeat(i % 512) + i)],
        'tokenizer.ggml.scores': [['f32'], Array.from({ length: 20_000 }, () => 0)],
        'tokenizer.ggml.token_type': [['i32'], []],
      }),
      gguf({ 'tokenizer.ggml.scores': [['f32'], [1]] }),
      gguf({ 'tokenizer.ggml.eos_token_id': ['u32', 2 ** 31] }),
      gguf({ 'tokenizer.ggml.tokens': [['text'], ['__proto__', 'constructor', '']] }),
    ],
    parse: async (input) => {
      const folder = mkdtempSync(join(ground, 'gguf-'));
      try {
        writeFileSync(join(folder, 'x.gguf'), input);
        return await importGguf(join(folder, 'x.gguf'), { folder: join(folder, 'out'), dtype: 'f32' });
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  },
  {
    name: 'tokenizer.json',
    seeds: tokenizers,
    hostile: hostileTokenizers,
    parse: (input) => inFolder(checkpoint, 'tokenizer.json', input, useTokenizer),
  },
  {
    name: 'tokenizer_config.json',
    seeds: [text(tokenizerConfig), text({ ...tokenizerConfig, chat_template: [{ name: 'default', template: 'a' }] })],
    hostile: [
      text({ ...tokenizerConfig, chat_template: '{{ "a" * 1 }}'.repeat(2000) }),
      text({ ...tokenizerConfig, chat_template: `{{ ${'('.repeat(500)}1${')'.repeat(500)} }}` }),
      text({ ...tokenizerConfig, chat_template: '{% for m in messages %}' }),
      text({ ...tokenizerConfig, eos_token: { content: 5 } }),
      text({ ...tokenizerConfig, added_tokens_decoder: { 999999999999: { content: '<x>', special: true } } }),
      text({ ...tokenizerConfig, added_tokens_decoder: [] }),
      deep(100_000, '[', ']'),
      '[]',
      '',
    ],
    parse: (input) => inFolder(checkpoint, 'tokenizer_config.json', input, useTokenizer),
  },
  {
    name: 'special_tokens_map.json',
    seeds: [
      text({ bos_token: '<s>', eos_token: { content: '</s>', lstrip: false }, additional_special_tokens: ['<s>'] }),
    ],
    hostile: [text({ eos_token: [] }), text({ extra_special_tokens: 5 }), deep(100_000, '[', ']'), 'null', ''],
    parse: (input) => inFolder(checkpoint, 'special_tokens_map.json', input, useTokenizer),
  },
  {
    name: 'generation_config.json',
    seeds: [text({ bos_token_id: 1, eos_token_id: [2, 5], pad_token_id: 0, temperature: 0.6, top_p: 0.95 })],
    hostile: [
      text({ eos_token_id: 2 ** 53 }),
      text({ eos_token_id: [-1] }),
      text({ eos_token_id: [[2]] }),
      text({ eos_token_id: Array.from({ length: 200_000 }, (_, i) => i) }),
      deep(100_000, '[', ']'),
      '',
    ],
    parse: (input) => inFolder(checkpoint, 'generation_config.json', input, useTokenizer),
  },
  {
    name: 'config.json',
    seeds: [
      config,
      withConfig({ model_type: 'qwen2', use_sliding_window: true, sliding_window: 16 }),
      withConfig({ rope_scaling: llama3 }),
      withConfig({ model_type: 'phi3', rope_scaling: longrope }),
    ],
    hostile: [
      withConfig({ num_hidden_layers: 1e12 }),
      withConfig({ num_hidden_layers: 10_000 }),
      withConfig({ vocab_size: 1e300 }),
      withConfig({ head_dim: 2 ** 24 }),
      withConfig({ max_position_embeddings: 1e15 }),
      withConfig({ rope_scaling: { ...longrope, short_factor: Array.from({ length: 100_000 }, () => 1) } }),
      withConfig({ hidden_size: -8 }),
      deep(100_000, '{"rope_scaling":', '}'),
      '',
      '5',
    ],
    parse: (input) => {
      const parsed = parseConfig(new TextDecoder().decode(input), 'config.json');
      ropeFrequencies(parsed.headDim, parsed.ropeTheta, parsed.ropeScaling);
      return parameterCount(parsed);
    },
  },
  {
    name: 'safetensors',
    seeds: [
      new Uint8Array(readFileSync(small)),
      tensorFile(
        { __metadata__: { format: 'pt' }, a: half, b: { ...half, dtype: 'I8', shape: [4], data_offsets: [4, 8] } },
        8,
      ),
    ],
    hostile: [
      new Uint8Array(0),
      new Uint8Array(8).fill(255),
      tensorFile(deep(100_000, '[', ']')),
      tensorFile(deep(100_000, '{"a":', '}')),
      tensorFile({ a: { ...half, shape: [2 ** 52, 2 ** 52, 2 ** 52] } }, 4),
      tensorFile({ a: half, b: half }, 4),
      tensorFile({ a: half }, 5000),
      tensorFile({ a: { ...half, shape: [2, ...Array.from({ length: 50_000 }, () => 1)] } }, 4),
      tensorFile(
        Object.fromEntries(
          Array.from({ length: 50_000 }, (_, i) => [`t${i}`, { ...half, shape: [0], data_offsets: [0, 0] }]),
        ),
      ),
    ].map((one) => new Uint8Array(one)),
    parse: (input) =>
      inFolder(
        checkpoint,
        'x.safetensors',
        input,
        (folder) => readTensors(join(folder, 'x.safetensors'), (name) => name !== 'b').size,
      ),
  },
  {
    name: 'model.safetensors',
    seeds: [new Uint8Array(weights)],
    hostile: [],
    parse: (input) =>
      inFolder(checkpoint, 'model.safetensors', input, (folder) => readWeights(openCheckpoint(folder)).size),
  },
  {
    name: 'model.safetensors.index.json',
    seeds: [index],
    hostile: [
      text({ weight_map: { a: '../../etc/passwd.safetensors' } }),
      text({ weight_map: [] }),
      text({
        weight_map: Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`t${i}`, `s${i}.safetensors`])),
      }),
      deep(100_000, '[', ']'),
      '',
    ],
    parse: (input) =>
      inFolder(checkpoint, 'model.safetensors.index.json', input, (folder) => {
        cpSync(join(folder, 'model.safetensors'), join(folder, 'part.safetensors'));
        rmSync(join(folder, 'model.safetensors'));
        return openWeightFiles(folder).tensors.size;
      }),
  },
  {
    name: 'adapter_config.json',
    seeds: [readFileSync(join(adapter, 'adapter_config.json'), 'utf8')],
    hostile: [
      text({ peft_type: 'LORA', r: 1e12, lora_alpha: 1, target_modules: ['q_proj'] }),
      text({
        peft_type: 'LORA',
        r: 2,
        lora_alpha: 1e308,
        target_modules: Array.from({ length: 50_000 }, () => 'q_proj'),
      }),
      deep(100_000, '[', ']'),
      '',
    ],
    parse: (input) =>
      inFolder(adapter, 'adapter_config.json', input, (folder) => readAdapter(folder, CONFIG).factors.size),
  },
];
