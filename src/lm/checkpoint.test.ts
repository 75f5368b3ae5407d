/** Checkpoints: Hugging Face folders there and back, narrower element types, and every way a folder can be wrong. */
import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  narrowWeights,
  randomWeights,
  temporaryFolder,
  TINY_LLAMA,
  TINY_QWEN2,
  tinyCheckpoint,
} from '../../tests/tiny-checkpoint.js';
import { seededRandom } from '../metrics/random.js';
import { checkpointHash, openCheckpoint, readWeights, writeCheckpoint } from './checkpoint.js';
import { Engine } from './engine.js';
import { readTensorEntries, readTensors, writeTensors } from './safetensors.js';
import { refusal } from '../../tests/refusal.js';

const TOKENS = { bos: 1, eos: 2, pad: 0 };

describe('a checkpoint folder', () => {
  it.each([
    ['llama', TINY_LLAMA],
    ['qwen2', TINY_QWEN2],
  ])('of a %s comes back as it was written', (_, config) => {
    const folder = temporaryFolder();
    const weights = randomWeights(config, 3);
    writeCheckpoint(folder, config, weights, TOKENS);
    const checkpoint = openCheckpoint(folder);
    expect(checkpoint.config).toEqual(config);
    expect(readWeights(checkpoint)).toEqual(weights);
  });

  it('may be a bare decoder’s, without the prefix of a whole model', () => {
    const folder = tinyCheckpoint(TINY_LLAMA, 3);
    const weights = readWeights(openCheckpoint(folder));
    const bare = new Map([...weights].map(([name, tensor]) => [name.replace(/^model\./, ''), tensor]));
    writeTensors(join(folder, 'model.safetensors'), bare);
    expect([...bare.keys()]).toContain('embed_tokens.weight');
    expect(readWeights(openCheckpoint(folder))).toEqual(weights);
  });

  it('of a tied head may hold it under either name, or both; a head of its own is used, whatever config.json says', () => {
    const tied = { ...TINY_LLAMA, tiedHead: true };
    const folder = tinyCheckpoint(tied, 3);
    const file = join(folder, 'model.safetensors');
    const weights = readWeights(openCheckpoint(folder));
    const [embedding, head] = ['model.embed_tokens.weight', 'lm_head.weight'];
    const others = [...weights].filter(([name]) => name !== embedding);
    const matrix = weights.get(embedding)!;
    writeTensors(file, new Map([[head, matrix], ...others]));
    expect(readWeights(openCheckpoint(folder))).toEqual(weights);
    writeTensors(file, new Map([[embedding, matrix], [head, matrix], ...others]));
    expect(openCheckpoint(folder).config.tiedHead).toBe(true);
    // The last number of all is another.
    const changed = { ...matrix, data: matrix.data.map((x, i) => (i === matrix.data.length - 1 ? x + 1 : x)) };
    writeTensors(file, new Map([[embedding, matrix], [head, changed], ...others]));
    const opened = openCheckpoint(folder);
    expect(opened.config.tiedHead).toBe(false);
    expect(readWeights(opened).get(head)).toEqual(changed);
  });

  it('has Hugging Face’s names', () => {
    const names = [...openCheckpoint(tinyCheckpoint({ ...TINY_QWEN2, layers: 1 })).entries.keys()];
    expect(names.toSorted()).toEqual([
      'lm_head.weight',
      'model.embed_tokens.weight',
      'model.layers.0.input_layernorm.weight',
      'model.layers.0.mlp.down_proj.weight',
      'model.layers.0.mlp.gate_proj.weight',
      'model.layers.0.mlp.up_proj.weight',
      'model.layers.0.post_attention_layernorm.weight',
      'model.layers.0.self_attn.k_proj.bias',
      'model.layers.0.self_attn.k_proj.weight',
      'model.layers.0.self_attn.o_proj.weight',
      'model.layers.0.self_attn.q_proj.bias',
      'model.layers.0.self_attn.q_proj.weight',
      'model.layers.0.self_attn.v_proj.bias',
      'model.layers.0.self_attn.v_proj.weight',
      'model.norm.weight',
    ]);
  });

  it('has a hash that follows configuration and weights', () => {
    const folder = tinyCheckpoint(TINY_LLAMA, 1);
    const hash = checkpointHash(folder);
    expect(hash).toMatch(/^[0-9a-f]{64}$/);
    expect(checkpointHash(tinyCheckpoint(TINY_LLAMA, 1))).toBe(hash);
    expect(checkpointHash(tinyCheckpoint(TINY_LLAMA, 2))).not.toBe(hash);
    expect(checkpointHash(tinyCheckpoint({ ...TINY_LLAMA, epsilon: 1e-4 }, 1))).not.toBe(hash);
    rmSync(join(folder, 'model.safetensors'));
    expect(refusal(() => checkpointHash(folder))).toBe(
      `UserError: ${join(folder, 'model.safetensors')} cannot be read (ENOENT)`,
    );
  });

  it('lacking a file, a tensor or a shape is refused, file and tensor named', () => {
    const folder = tinyCheckpoint();
    const weights = readWeights(openCheckpoint(folder));
    const file = join(folder, 'model.safetensors');

    const name = 'model.layers.1.mlp.up_proj.weight';
    const narrow = { shape: [24, 8], data: new Float32Array(24 * 8) };
    writeTensors(file, new Map([...weights, [name, narrow]]));
    expect(refusal(() => openCheckpoint(folder))).toBe(
      `UserError: ${file}: '${name}' has shape [24,8], config.json calls for [24,16]`,
    );
    writeTensors(file, new Map([...weights].filter(([n]) => n !== name)));
    expect(refusal(() => openCheckpoint(folder))).toBe(
      `UserError: ${file} has no tensor '${name}', which config.json calls for`,
    );
    rmSync(file);
    expect(refusal(() => openCheckpoint(folder))).toBe(`UserError: ${file} cannot be read (ENOENT)`);
    rmSync(join(folder, 'config.json'));
    expect(refusal(() => openCheckpoint(folder))).toContain(
      'config.json cannot be read (ENOENT): is this a Hugging Face',
    );
  });
});

describe.each(['BF16', 'F16'] as const)('%s weights', (type) => {
  it('are read as the numbers they stand for, and run as those', async () => {
    const folder = tinyCheckpoint(TINY_QWEN2);
    const narrowed = narrowWeights(folder, randomWeights(TINY_QWEN2, 1), type);
    expect(readTensorEntries(join(folder, 'model.safetensors')).get('model.norm.weight')).toMatchObject({ type });
    expect(readWeights(openCheckpoint(folder))).toEqual(narrowed);

    const widened = temporaryFolder();
    writeCheckpoint(widened, TINY_QWEN2, narrowed, TOKENS);
    const engine = await Engine.create({ provider: 'cpu', threads: 1 });
    const request = { sequences: [[1, 5, 9, 4]], layers: [2], poolings: ['mean'] } as const;
    expect(await engine.hiddenStates(folder, request)).toEqual(await engine.hiddenStates(widened, request));
    const rollout = {
      prompts: [[1]],
      perPrompt: 4,
      maxNewTokens: 6,
      temperature: 1,
      stops: [2],
      seed: 1,
      adapter: null,
    };
    expect(await engine.rollout(folder, rollout)).toEqual(await engine.rollout(widened, rollout));
    await engine.close();
  });
});

describe('half-precision numbers', () => {
  const read = (dtype: string, halves: number[]): number[] => {
    const file = join(temporaryFolder(), 'halves.safetensors');
    writeFileSync(file, encode({ x: { dtype, shape: [halves.length], data_offsets: [0, 2 * halves.length] } }, halves));
    return [...readTensors(file).get('x')!.data];
  };
  it('of binary16 are IEEE 754’s: normal, subnormal, zeros, infinities, NaN', () => {
    const values = read(
      'F16',
      [0x3c00, 0xc000, 0x3555, 0x7bff, 0x0400, 0x0001, 0x0000, 0x8000, 0x7c00, 0xfc00, 0x7e00],
    );
    expect(values).toEqual([1, -2, 0.333251953125, 65504, 2 ** -14, 2 ** -24, 0, -0, Infinity, -Infinity, Number.NaN]);
  });
  it('of bfloat16 are the upper half of float32', () => {
    expect(read('BF16', [0x3f80, 0xc000, 0x3eab, 0x0080, 0x8000, 0x7f80, 0x7fc0])).toEqual([
      1,
      -2,
      0.333984375,
      2 ** -126,
      -0,
      Infinity,
      Number.NaN,
    ]);
  });
});

/** A safetensors file of a header and 16-bit words. */
function encode(header: unknown, words: readonly number[] = []): Buffer {
  const json = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  return Buffer.concat([length, json, Buffer.from(Uint16Array.from(words).buffer)]);
}

/** A header's entry for 16-bit numbers. */
const half = (from: number, bytes: number): object => ({
  dtype: 'F16',
  shape: [bytes / 2],
  data_offsets: [from, from + bytes],
});

describe('a safetensors file', () => {
  it('keeps names, order, shapes and numbers, a scalar’s and an empty tensor’s too', () => {
    const file = join(temporaryFolder(), 'x.safetensors');
    const tensors = new Map([
      ['b', { shape: [2, 1, 3], data: Float32Array.of(1, -0, 1e-40, Infinity, 3.4e38, 0.1) }],
      ['a.ü', { shape: [], data: Float32Array.of(7) }],
      ['none', { shape: [0, 4], data: new Float32Array(0) }],
    ]);
    writeTensors(file, tensors);
    expect(readTensors(file)).toEqual(tensors);
    expect([...readTensors(file).keys()]).toEqual(['b', 'a.ü', 'none']);
  });

  it('starts its tensors at a multiple of eight bytes and says that it is in PyTorch’s layout', () => {
    const file = join(temporaryFolder(), 'x.safetensors');
    writeTensors(file, new Map([['x', { shape: [1], data: Float32Array.of(1) }]]));
    const bytes = readFileSync(file);
    const length = Number(bytes.readBigUInt64LE());
    expect(length % 8).toBe(0);
    expect(JSON.parse(bytes.subarray(8, 8 + length).toString())).toEqual({
      __metadata__: { format: 'pt' },
      x: { dtype: 'F32', shape: [1], data_offsets: [0, 4] },
    });
    expect(bytes.readFloatLE(8 + length)).toBe(1);
  });

  it.each([
    ['nothing', Buffer.alloc(0), 'shorter than its 8-byte length field'],
    [
      'a length beyond the file',
      Buffer.from([255, 0, 0, 0, 0, 0, 0, 0, 1]),
      'its header claims 255 bytes, the file has 9',
    ],
    ['an absurd length', Buffer.alloc(9, 255), 'its header claims'],
    ['a header that is not JSON', encode('{"x":'), 'its header is not JSON'],
    ['an entry that is none', encode({ x: 5 }), 'its entry for tensor x is malformed'],
    ['an entry without offsets', encode({ x: { dtype: 'F16', shape: [1] } }), 'its entry for tensor x is malformed'],
    ['a negative offset', encode({ x: { dtype: 'F16', shape: [1], data_offsets: [-2, 0] } }), 'tensor x is malformed'],
    [
      'too few bytes',
      encode({ x: { dtype: 'F16', shape: [2], data_offsets: [0, 2] } }, [1]),
      '2 bytes do not fit its shape',
    ],
    ['a header of a list', encode([]), 'its header is no JSON object'],
    [
      'integers of too few bytes',
      encode({ x: { dtype: 'I64', shape: [1], data_offsets: [0, 4] } }, [1, 2]),
      '4 bytes do not fit its shape',
    ],
    [
      'offsets the wrong way round',
      encode({ x: { dtype: 'F16', shape: [0], data_offsets: [2, 0] } }, [1]),
      '-2 bytes do not fit its shape',
    ],
    [
      'tensors that overlap',
      encode({ x: half(0, 4), y: half(2, 4) }, [1, 2, 3]),
      /tensor y begins at byte \d+, inside another that ends at \d+;/,
    ],
    ['tensors in one place', encode({ x: half(0, 4), y: half(0, 4) }, [1, 2]), /tensor y begins at byte \d+, inside/],
    ['a hole', encode({ x: half(0, 2), y: half(4, 2) }, [1, 2, 3]), /: no tensor holds the bytes from \d+ to \d+;/],
    ['a hole in front', encode({ x: half(2, 2) }, [1, 2]), /: no tensor holds the bytes from \d+ to \d+;/],
    ['bytes behind', encode({ x: half(0, 2) }, [1, 2]), /: no tensor holds the bytes from \d+ to \d+;/],
    ['bytes and no tensors', encode({}, [1]), /: no tensor holds the bytes from \d+ to \d+;/],
    ['a cut', encode({ x: { dtype: 'F16', shape: [2], data_offsets: [0, 4] } }, [1]), 'the file is cut off'],
  ])('with %s is refused, the file named', (_, bytes, message) => {
    const file = join(temporaryFolder(), 'x.safetensors');
    writeFileSync(file, bytes);
    const said = refusal(() => readTensors(file));
    expect(said).toMatch(/^UserError: .*x\.safetensors is not a usable safetensors file: /);
    if (message instanceof RegExp) expect(said).toMatch(message);
    else expect(said).toContain(message);
  });

  it.each(['I64', 'F8_E4M3', 'BOOL', 'a type of tomorrow', 'toString'])(
    'may hold a tensor of type %s, as long as nobody reads it',
    (dtype) => {
      const bytes = dtype === 'I64' ? 8 : 1;
      const file = join(temporaryFolder(), 'x.safetensors');
      const entry = { dtype, shape: [2], data_offsets: [2, 2 + 2 * bytes] };
      writeFileSync(file, encode({ x: half(0, 2), ids: entry }, [0x3c00, ...Array<number>(bytes).fill(0)]));
      expect([...readTensors(file, (name) => name === 'x')]).toEqual([['x', { shape: [1], data: Float32Array.of(1) }]]);
      expect(refusal(() => readTensors(file))).toBe(
        `UserError: ${file}: tensor ids has type ${dtype}, which is not supported; give weights in F32, F16, BF16`,
      );
    },
  );

  it('of a checkpoint may hold more than the model, which is neither counted nor read', () => {
    const folder = tinyCheckpoint(TINY_LLAMA);
    const whole = openCheckpoint(folder);
    const weights = readWeights(whole);
    addTensor(folder, 'model.layers.0.self_attn.position_ids', { dtype: 'I64', shape: [16] }, 128);
    const opened = openCheckpoint(folder);
    expect([...opened.entries.keys()]).toEqual([...whole.entries.keys()]);
    expect(readWeights(opened)).toEqual(weights);
    retype(folder, 'model.norm.weight', 'I32');
    expect(refusal(() => openCheckpoint(folder))).toBe(
      `UserError: ${join(folder, 'model.safetensors')}: tensor model.norm.weight has type I32, which is not supported; give weights in F32, F16, BF16`,
    );
  });

  it('cut anywhere, or with any byte of its header changed, is refused or read, but never breaks', () => {
    const folder = tinyCheckpoint({ ...TINY_LLAMA, layers: 1 });
    const file = join(folder, 'model.safetensors');
    const whole = readFileSync(file);
    const random = seededRandom(1);
    for (let trial = 0; trial < 60; trial++) {
      truncateSync(file, Math.floor(random() * whole.length));
      expect(refusal(() => openCheckpoint(folder))).toMatch(/^UserError: .*model\.safetensors/);
      writeFileSync(file, whole);
    }
    const header = 8 + Number(whole.readBigUInt64LE());
    for (let trial = 0; trial < 300; trial++) {
      const changed = Buffer.from(whole);
      changed[Math.floor(random() * header)] = Math.floor(random() * 256);
      writeFileSync(file, changed);
      expect(refusal(() => openCheckpoint(folder))).toMatch(/^(nothing thrown|UserError: .*model\.safetensors)/);
    }
  });
});

type Header = Record<string, { dtype: string; shape: number[]; data_offsets: [number, number] }>;

/** Rewrite a checkpoint's header, and put bytes behind its tensors. */
function rewrite(folder: string, change: (header: Header, end: number) => void, more = 0): void {
  const file = join(folder, 'model.safetensors');
  const bytes = readFileSync(file);
  const start = 8 + Number(bytes.readBigUInt64LE());
  const header = JSON.parse(bytes.subarray(8, start).toString()) as Header;
  change(header, bytes.length - start);
  writeFileSync(file, Buffer.concat([encode(header), bytes.subarray(start), Buffer.alloc(more)]));
}

function addTensor(folder: string, name: string, entry: { dtype: string; shape: number[] }, bytes: number): void {
  rewrite(folder, (header, end) => (header[name] = { ...entry, data_offsets: [end, end + bytes] }), bytes);
}

function retype(folder: string, name: string, dtype: string): void {
  rewrite(folder, (header) => (header[name]!.dtype = dtype));
}
