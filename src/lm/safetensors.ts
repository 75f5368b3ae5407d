/** The safetensors file format: an 8-byte length, a JSON header, then raw little-endian tensors. https://github.com/huggingface/safetensors */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { z } from 'zod';
import { UserError } from '../errors.js';
import type { Tensor } from '../onnx/session.js';
import { writeFileAtomic } from '../store/files.js';

const BYTES = { F32: 4, F16: 2, BF16: 2 } as const;
export type TensorType = keyof typeof BYTES;

/** One tensor's place in a file; `offset` counts from the start of the file. */
export interface TensorEntry {
  readonly type: TensorType;
  readonly shape: readonly number[];
  readonly offset: number;
  readonly bytes: number;
}

const MAX_HEADER = 100 << 20;

const count = z.int().nonnegative();
const entrySchema = z.object({ dtype: z.string(), shape: z.array(count), data_offsets: z.tuple([count, count]) });

/** Read and check a header: types known, sizes right, every tensor inside the file. @throws UserError naming the file. */
export function readTensorEntries(file: string): Map<string, TensorEntry> {
  const corrupt = (why: string) =>
    new UserError(`${file} is not a usable safetensors file: ${why}; fetch or write it again`);
  const descriptor = openForReading(file);
  try {
    const size = fstatSync(descriptor).size;
    const head = Buffer.alloc(8);
    if (readSync(descriptor, head, 0, 8, 0) < 8) throw corrupt('shorter than its 8-byte length field');
    const length = Number(head.readBigUInt64LE());
    if (length > MAX_HEADER || 8 + length > size)
      throw corrupt(`its header claims ${length} bytes, the file has ${size}`);
    const text = Buffer.alloc(length);
    readSync(descriptor, text, 0, length, 8);
    let json: unknown;
    try {
      json = JSON.parse(text.toString('utf8'));
    } catch {
      throw corrupt('its header is not JSON');
    }
    const entries = new Map<string, TensorEntry>();
    for (const [name, entry] of Object.entries(json ?? {})) {
      if (name === '__metadata__') continue;
      const parsed = entrySchema.safeParse(entry);
      if (!parsed.success) throw corrupt(`its entry for tensor ${name} is malformed`);
      const t = parsed.data;
      if (!Object.hasOwn(BYTES, t.dtype))
        throw corrupt(`tensor ${name} has type ${t.dtype}; supported are ${Object.keys(BYTES).join(', ')}`);
      const type = t.dtype as TensorType;
      const [from, to] = t.data_offsets;
      const bytes = to - from;
      if (bytes !== t.shape.reduce((a, b) => a * b, BYTES[type]))
        throw corrupt(`tensor ${name}: ${bytes} bytes do not fit its shape`);
      const offset = 8 + length + from;
      if (offset + bytes > size)
        throw corrupt(`tensor ${name} ends at byte ${offset + bytes} of ${size}: the file is cut off`);
      entries.set(name, { type, shape: t.shape, offset, bytes });
    }
    return entries;
  } finally {
    closeSync(descriptor);
  }
}

function openForReading(file: string): number {
  try {
    return openSync(file, 'r');
  } catch (cause) {
    throw new UserError(`${file} cannot be read (${(cause as NodeJS.ErrnoException).code})`, { cause });
  }
}

/** Read whole tensors as float32. @throws UserError for a file that is missing or corrupt. */
export function readTensors(file: string): Map<string, Tensor> {
  const entries = readTensorEntries(file);
  const descriptor = openForReading(file);
  try {
    return new Map(
      [...entries].map(([name, entry]) => {
        const raw = new Uint8Array(entry.bytes);
        readSync(descriptor, raw, 0, entry.bytes, entry.offset);
        return [name, { shape: entry.shape, data: toFloat32(raw, entry.type) }];
      }),
    );
  } finally {
    closeSync(descriptor);
  }
}

/** Write float32 tensors; the file appears whole or not at all. */
export function writeTensors(
  file: string,
  tensors: ReadonlyMap<string, Tensor>,
  metadata: Record<string, string> = { format: 'pt' },
): void {
  const header: Record<string, unknown> = { __metadata__: metadata };
  let at = 0;
  for (const [name, t] of tensors) {
    header[name] = { dtype: 'F32', shape: t.shape, data_offsets: [at, at + t.data.byteLength] };
    at += t.data.byteLength;
  }
  const json = Buffer.from(JSON.stringify(header));
  const padded = Buffer.concat([json, Buffer.alloc((8 - (json.length % 8)) % 8, ' ')]);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.length));
  const data = [...tensors.values()].map((t) => Buffer.from(t.data.buffer, t.data.byteOffset, t.data.byteLength));
  writeFileAtomic(file, Buffer.concat([length, padded, ...data]));
}

/** A tensor's bytes as float32; those of float32 itself are not copied. */
export function toFloat32(raw: Uint8Array, type: TensorType): Float32Array {
  if (type === 'F32') return new Float32Array(raw.buffer, raw.byteOffset, raw.byteLength / 4);
  const half = new Uint16Array(raw.buffer, raw.byteOffset, raw.byteLength / 2);
  if (type === 'BF16') return new Float32Array(Uint32Array.from(half, (h) => h << 16).buffer);
  return Float32Array.from(half, fromHalf);
}

/** IEEE 754 binary16 → number. */
function fromHalf(h: number): number {
  const sign = h & 0x8000 ? -1 : 1;
  const exponent = (h >> 10) & 0x1f;
  const fraction = h & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}
