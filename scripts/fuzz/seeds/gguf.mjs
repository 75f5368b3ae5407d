// Writes GGUF files, right ones and wrong ones: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

const TYPES = ['u8', 'i8', 'u16', 'i16', 'u32', 'i32', 'f32', 'bool', 'text', 'list', 'u64', 'i64', 'f64'];
const ALIGNMENT = 32;
const MAGIC = 'GGUF';

/** @param {number} size @param {(view: DataView) => void} write */
function number(size, write) {
  const bytes = new Uint8Array(size);
  write(new DataView(bytes.buffer));
  return bytes;
}
/** @param {number} x */
export const u32 = (x) => number(4, (view) => view.setUint32(0, x, true));
/** @param {number | bigint} x */
export const u64 = (x) => number(8, (view) => view.setBigUint64(0, BigInt(x), true));

/** A length, then UTF-8. @param {string} string */
export function text(string) {
  const bytes = new TextEncoder().encode(string);
  return Buffer.concat([u64(bytes.length), bytes]);
}

const WRITERS = {
  u32,
  u64,
  text,
  /** @param {number} x */
  i32: (x) => number(4, (view) => view.setInt32(0, x, true)),
  /** @param {number} x */
  f32: (x) => number(4, (view) => view.setFloat32(0, x, true)),
  /** @param {boolean} x */
  bool: (x) => Uint8Array.of(Number(x)),
};

/** A value behind the number of its type. A list is `[type]` and its items. */
function valued([type, value]) {
  if (!Array.isArray(type)) return Buffer.concat([u32(TYPES.indexOf(type)), WRITERS[type](value)]);
  const [item] = type;
  return Buffer.concat([
    u32(TYPES.indexOf('list')),
    u32(TYPES.indexOf(item)),
    u64(value.length),
    ...value.map(WRITERS[item]),
  ]);
}

const padded = (size) => Math.ceil(size / ALIGNMENT) * ALIGNMENT;

/** A tensor's place. @param {string} name @param {readonly number[]} shape @param {number} type @param {number | bigint} offset */
export function place(name, shape, type, offset) {
  return Buffer.concat([text(name), u32(shape.length), ...shape.toReversed().map(u64), u32(type), u64(offset)]);
}

/** Head and tensors. Counts are right unless they are given. */
export function ggufFile({
  metadata,
  tensors,
  version = 3,
  keys = Object.keys(metadata).length,
  count = tensors.length,
}) {
  let offset = 0;
  const places = tensors.map((tensor) => {
    const bytes = place(tensor.name, tensor.shape, tensor.type, tensor.offset ?? offset);
    offset += padded(tensor.data.length);
    return bytes;
  });
  const entries = Object.entries(metadata).flatMap(([key, value]) => [text(key), valued(value)]);
  const head = Buffer.concat([Buffer.from(MAGIC), u32(version), u64(count), u64(keys), ...entries, ...places]);
  const spaced = (bytes) => Buffer.concat([bytes, Buffer.alloc(padded(bytes.length) - bytes.length)]);
  return new Uint8Array(Buffer.concat([spaced(head), ...tensors.map(({ data }) => spaced(data))]));
}

/** float32 as a tensor's bytes. @param {Float32Array} values */
export const f32Bytes = (values) => new Uint8Array(values.buffer, values.byteOffset, values.byteLength);

const VOCABULARY = ['<unk>', '<s>', '</s>', ...'▁()=+abdefnrtux1\n', 'ab'];

/** A tokenizer of pieces: the control tokens 0, 1 and 2, then letters. */
export const PIECES = {
  'tokenizer.ggml.model': ['text', 'llama'],
  'tokenizer.ggml.tokens': [['text'], VOCABULARY],
  'tokenizer.ggml.scores': [['f32'], VOCABULARY.map((_, id) => -id)],
  'tokenizer.ggml.token_type': [['i32'], VOCABULARY.map((_, id) => (id === 0 ? 2 : id < 3 ? 3 : 1))],
  'tokenizer.ggml.bos_token_id': ['u32', 1],
  'tokenizer.ggml.eos_token_id': ['u32', 2],
  'tokenizer.ggml.unknown_token_id': ['u32', 0],
};
export const PIECE_COUNT = VOCABULARY.length;

/** Llama's settings for such a vocabulary. */
export const LLAMA = {
  'general.architecture': ['text', 'llama'],
  'llama.block_count': ['u32', 1],
  'llama.embedding_length': ['u32', 8],
  'llama.feed_forward_length': ['u32', 8],
  'llama.attention.head_count': ['u32', 2],
  'llama.context_length': ['u32', 64],
  'llama.attention.layer_norm_rms_epsilon': ['f32', 1e-5],
  ...PIECES,
};

const SQUARE = [8, 8];
const LLAMA_SHAPES = {
  'token_embd.weight': [PIECE_COUNT, 8],
  'output_norm.weight': [8],
  'blk.0.attn_norm.weight': [8],
  'blk.0.ffn_norm.weight': [8],
  ...Object.fromEntries(
    ['attn_q', 'attn_k', 'attn_v', 'attn_output', 'ffn_gate', 'ffn_up', 'ffn_down'].map((name) => [
      `blk.0.${name}.weight`,
      SQUARE,
    ]),
  ),
};

/** Its weights. */
export const LLAMA_TENSORS = Object.entries(LLAMA_SHAPES).map(([name, shape]) => ({
  name,
  shape,
  type: 0,
  data: f32Bytes(new Float32Array(shape.reduce((a, b) => a * b, 1)).fill(0.25)),
}));
