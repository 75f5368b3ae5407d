/** The tensors of a GGUF file as float32, a part at a time. */
import { closeSync, openSync, readSync } from 'node:fs';
import { UserError } from '../../errors.js';
import { BLOCKS, dequantise } from './blocks.js';
import type { GgufFile, GgufTensor } from './reader.js';

/** Weights that are in memory at once, where a row, or a head's rows, are not more. */
const PART = 2 ** 20;

/** How a tensor's rows are to be read. */
export interface RowOrder {
  /** Heads whose rows are in llama.cpp's order, which is undone; null: rows stay as they are. */
  readonly permutedHeads: number | null;
  /** What is taken from each weight. */
  readonly shift: number;
}

/** All of a tensor, which is small. */
export function readWeights(file: GgufFile, tensor: GgufTensor): Float32Array {
  const parts = [...weightParts(file, tensor, { permutedHeads: null, shift: 0 })];
  const all = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** A tensor's weights in the order of its shape, in parts of whole rows. */
export function* weightParts(
  { path }: Pick<GgufFile, 'path'>,
  { name, type, shape, offset }: GgufTensor,
  { permutedHeads, shift }: RowOrder,
): Generator<Float32Array<ArrayBuffer>> {
  const columns = shape.at(-1)!;
  const rows = shape.slice(0, -1).reduce((a, b) => a * b, 1);
  // A bias has one row, whose numbers are what in a matrix are rows.
  const [count, width] = rows === 1 ? [columns, 1] : [rows, columns];
  const unit = permutedHeads === null ? 1 : count / permutedHeads;
  const { weights, bytes } = BLOCKS[type];
  // Of whole blocks where a row is one number.
  const least = unit * Math.ceil(weights / (unit * width));
  const step = Math.max(least, least * Math.floor(PART / (least * width)));
  const handle = openSync(path, 'r');
  try {
    for (let from = 0; from < count; from += step) {
      const taken = Math.min(step, count - from) * width;
      const raw = new Uint8Array((taken / weights) * bytes);
      const at = offset + ((from * width) / weights) * bytes;
      if (readSync(handle, raw, 0, raw.length, at) < raw.length)
        throw new UserError(`${path} is cut off in tensor ${name}; fetch it again`);
      const part = dequantise(raw, type);
      if (shift !== 0) for (let i = 0; i < part.length; i++) part[i]! -= shift;
      yield permutedHeads === null ? part : halves(part, unit, width);
    }
  } finally {
    closeSync(handle);
  }
}

/** llama.cpp rotates neighbours, Hugging Face the two halves of a head: of each head row 2i + j was row i + j · half. */
function halves(part: Float32Array, headRows: number, width: number): Float32Array<ArrayBuffer> {
  const out = new Float32Array(part.length);
  for (let row = 0; row < part.length / width; row++) {
    const [head, within] = [Math.floor(row / headRows), row % headRows];
    const from = head * headRows + (within % (headRows / 2)) * 2 + Math.floor(within / (headRows / 2));
    out.set(part.subarray(from * width, (from + 1) * width), row * width);
  }
  return out;
}
