/**
 * Weights as GGUF files store them, whole or in blocks that share a scale, as float32. The layouts and formulas are ggml's (ggml-quants.c).
 * Products are exact in the numbers of JavaScript, so that each weight is rounded to float32 once, as ggml's arithmetic in float32 does.
 */
import { toFloat32 } from '../safetensors.js';

/** One way of storing weights. */
interface Blocks {
  /** Weights of a block. */
  readonly weights: number;
  /** Bytes of a block. */
  readonly bytes: number;
  /** Write the weights of the block at `b[at]` to `out[to]` and after. */
  readonly read: (b: Uint8Array, at: number, out: Float32Array, to: number) => void;
}

/** binary16 → number, by its bits. */
const HALF = toFloat32(new Uint8Array(Uint16Array.from({ length: 2 ** 16 }, (_, bits) => bits).buffer), 'F16');

const half = (b: Uint8Array, at: number): number => HALF[b[at]! | (b[at + 1]! << 8)]!;
const word = (b: Uint8Array, at: number): number =>
  b[at]! | (b[at + 1]! << 8) | (b[at + 2]! << 16) | (b[at + 3]! << 24);
const signed = (byte: number): number => (byte << 24) >> 24;

/** A number's own bits. */
function plain(bytes: number, bits: (b: Uint8Array, at: number) => number): Blocks {
  const cell = new Uint32Array(1);
  const value = new Float32Array(cell.buffer);
  const read: Blocks['read'] = (b, at, out, to) => {
    cell[0] = bits(b, at);
    out[to] = value[0]!;
  };
  return { weights: 1, bytes, read };
}

/**
 * 32 weights of 4 bits, or 5: d · (q − centre), or with a minimum m d · q + m. First the numbers d and m, then of 5 bits the fifth of each,
 * then the first 16 weights' bits in the low halves of 16 bytes and the others' in the high ones.
 */
function nibbles({ five, minimum }: { readonly five: boolean; readonly minimum: boolean }): Blocks {
  const fifth = minimum ? 4 : 2;
  const low = fifth + (five ? 4 : 0);
  const centre = minimum ? 0 : five ? 16 : 8;
  const read: Blocks['read'] = (b, at, out, to) => {
    const d = half(b, at);
    // Nothing is −0: added to a weight it leaves the sign of a zero as it is.
    const m = minimum ? half(b, at + 2) : -0;
    const top = five ? word(b, at + fifth) : 0;
    for (let j = 0; j < 16; j++) {
      const byte = b[at + low + j]!;
      out[to + j] = d * (((byte & 15) | (((top >>> j) & 1) << 4)) - centre) + m;
      out[to + 16 + j] = d * (((byte >> 4) | (((top >>> (j + 16)) & 1) << 4)) - centre) + m;
    }
  };
  return { weights: 32, bytes: low + 16, read };
}

/** Of 8 scales and 8 minima of 6 bits in 12 bytes, the `part`th of each. */
function scaleAndMinimum(b: Uint8Array, at: number, part: number): [scale: number, minimum: number] {
  if (part < 4) return [b[at + part]! & 63, b[at + part + 4]! & 63];
  const both = b[at + part + 4]!;
  return [(both & 15) | ((b[at + part - 4]! >> 6) << 4), (both >> 4) | ((b[at + part]! >> 6) << 4)];
}

/** 8 parts of 32 weights of 4 bits, or 5: d · scale · q − dmin · minimum. Two parts share bytes, the first the low halves. */
function superBlock(five: boolean): Blocks {
  const quants = five ? 48 : 16;
  const read: Blocks['read'] = (b, at, out, to) => {
    const d = half(b, at);
    const dmin = half(b, at + 2);
    for (let part = 0; part < 8; part++) {
      const [scale, minimum] = scaleAndMinimum(b, at + 4, part);
      const [s, m] = [d * scale, dmin * minimum];
      const from = at + quants + (part >> 1) * 32;
      const shift = 4 * (part & 1);
      for (let l = 0; l < 32; l++) {
        const fifth = five ? ((b[at + 16 + l]! >> part) & 1) << 4 : 0;
        out[to + part * 32 + l] = s * (((b[from + l]! >> shift) & 15) | fifth) - m;
      }
    }
  };
  return { weights: 256, bytes: quants + 128, read };
}

/** 256 weights of 6 bits in two halves: 4 bits of each, then 2 bits, then 16 signed scales, then d. */
const sixBits: Blocks = {
  weights: 256,
  bytes: 210,
  read: (b, at, out, to) => {
    const d = half(b, at + 208);
    for (let i = 0; i < 256; i++) {
      const [part, l] = [i >> 5, i & 31];
      const low = (b[at + (part >> 2) * 64 + (part & 1) * 32 + l]! >> (part & 2 ? 4 : 0)) & 15;
      const high = (b[at + 128 + (part >> 2) * 32 + l]! >> (2 * (part & 3))) & 3;
      out[to + i] = d * signed(b[at + 192 + (i >> 4)]!) * ((low | (high << 4)) - 32);
    }
  },
};

const eightBits: Blocks = {
  weights: 32,
  bytes: 34,
  read: (b, at, out, to) => {
    const d = half(b, at);
    for (let j = 0; j < 32; j++) out[to + j] = d * signed(b[at + 2 + j]!);
  },
};

const binary16: Blocks = {
  weights: 1,
  bytes: 2,
  read: (b, at, out, to) => void (out[to] = half(b, at)),
};

/** The types that are read. */
export const BLOCKS = {
  F32: plain(4, word),
  F16: binary16,
  BF16: plain(2, (b, at) => (b[at]! << 16) | (b[at + 1]! << 24)),
  Q4_0: nibbles({ five: false, minimum: false }),
  Q4_1: nibbles({ five: false, minimum: true }),
  Q5_0: nibbles({ five: true, minimum: false }),
  Q5_1: nibbles({ five: true, minimum: true }),
  Q8_0: eightBits,
  Q4_K: superBlock(false),
  Q5_K: superBlock(true),
  Q6_K: sixBits,
} as const satisfies Record<string, Blocks>;

export type QuantType = keyof typeof BLOCKS;

/** The format's numbers of types, also of those that are not read. */
export const TYPE_NAMES: ReadonlyMap<number, string> = new Map([
  ...['F32', 'F16', 'Q4_0', 'Q4_1'].map((name, i) => [i, name] as const),
  ...['Q5_0', 'Q5_1', 'Q8_0', 'Q8_1', 'Q2_K', 'Q3_K', 'Q4_K', 'Q5_K', 'Q6_K', 'Q8_K'].map(
    (name, i) => [6 + i, name] as const,
  ),
  ...['IQ2_XXS', 'IQ2_XS', 'IQ3_XXS', 'IQ1_S', 'IQ4_NL', 'IQ3_S', 'IQ2_S', 'IQ4_XS'].map(
    (name, i) => [16 + i, name] as const,
  ),
  ...['I8', 'I16', 'I32', 'I64', 'F64', 'IQ1_M', 'BF16'].map((name, i) => [24 + i, name] as const),
  [34, 'TQ1_0'],
  [35, 'TQ2_0'],
  [39, 'MXFP4'],
  [40, 'NVFP4'],
]);

/** The weights of whole blocks. */
export function dequantise(bytes: Uint8Array, type: QuantType): Float32Array<ArrayBuffer> {
  const { weights, bytes: size, read } = BLOCKS[type];
  const count = bytes.length / size;
  const out = new Float32Array(count * weights);
  for (let block = 0; block < count; block++) read(bytes, block * size, out, block * weights);
  return out;
}
