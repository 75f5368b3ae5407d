/** The safetensors file format: an 8-byte length, a JSON header, then raw little-endian tensors. https://github.com/huggingface/safetensors */
import { closeSync, fstatSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import { z } from 'zod';
import { inOneLine, UserError } from '../errors.js';
import type { Tensor } from '../onnx/session.js';
import { writeFileAtomic } from '../store/files.js';
import { withStoreErrors } from '../store/sqlite-errors.js';

/** The types that can be read. */
const READABLE = ['F32', 'F16', 'BF16'] as const;
export type TensorType = (typeof READABLE)[number];

/** Bits of an element, of every type that the format has; of a type that is not here the size is not checked. */
const BITS: ReadonlyMap<string, number> = new Map(
  Object.entries({
    64: ['F64', 'I64', 'U64', 'C64'],
    32: ['F32', 'I32', 'U32'],
    16: ['F16', 'BF16', 'I16', 'U16'],
    8: ['BOOL', 'I8', 'U8', 'F8_E4M3', 'F8_E5M2', 'F8_E8M0', 'F8_E4M3FNUZ', 'F8_E5M2FNUZ'],
    6: ['F6_E2M3', 'F6_E3M2'],
    4: ['F4'],
  }).flatMap(([bits, types]) => types.map((type) => [type, Number(bits)] as const)),
);

/** One tensor's place in a file; `offset` counts from the start of the file. */
export interface StoredTensor {
  /** As the file has it: of a tensor that nobody reads it may be any. */
  readonly type: string;
  readonly shape: readonly number[];
  readonly offset: number;
  readonly bytes: number;
}

/** A tensor that can be read. */
export interface TensorEntry extends StoredTensor {
  readonly type: TensorType;
}

/** As the format's own library has it. */
const MAX_HEADER = 100_000_000;

const count = z.int().nonnegative();
const entrySchema = z.object({ dtype: z.string(), shape: z.array(count), data_offsets: z.tuple([count, count]) });

/**
 * Read and check a header: sizes right, and the tensors lie one behind the other from the header to the end of the file.
 * @throws UserError naming the file
 */
export function readTensorEntries(file: string): Map<string, StoredTensor> {
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
    const entries = new Map<string, StoredTensor>();
    for (const [name, entry] of Object.entries(parseHeader(text, corrupt))) {
      if (name === '__metadata__') continue;
      const parsed = entrySchema.safeParse(entry);
      if (!parsed.success) throw corrupt(`its entry for tensor ${inOneLine(name)} is malformed`);
      const { dtype: type, shape, data_offsets } = parsed.data;
      const [from, to] = data_offsets;
      const bytes = to - from;
      const bits = BITS.get(type);
      if (bytes < 0 || (bits !== undefined && bytes * 8 !== shape.reduce((a, b) => a * b, bits)))
        throw corrupt(`tensor ${inOneLine(name)}: ${bytes} bytes do not fit its shape`);
      entries.set(name, { type, shape, offset: 8 + length + from, bytes });
    }
    const gap = findGap(entries, 8 + length, size);
    if (gap !== null) throw corrupt(gap);
    return entries;
  } finally {
    closeSync(descriptor);
  }
}

function parseHeader(text: Buffer, corrupt: (why: string) => UserError): object {
  let json: unknown;
  try {
    json = JSON.parse(text.toString('utf8'));
  } catch {
    throw corrupt('its header is not JSON');
  }
  if (json === null || typeof json !== 'object' || Array.isArray(json)) throw corrupt('its header is no JSON object');
  return json;
}

/** Why the tensors are not every byte from the header to the end of the file, each once; null when they are. */
function findGap(entries: ReadonlyMap<string, StoredTensor>, start: number, size: number): string | null {
  const inOrder = [...entries].toSorted(([, a], [, b]) => a.offset - b.offset || a.bytes - b.bytes);
  let at = start;
  for (const [name, { offset, bytes }] of inOrder) {
    const end = offset + bytes;
    if (end > size) return `tensor ${inOneLine(name)} ends at byte ${end} of ${size}: the file is cut off`;
    if (offset < at) return `tensor ${inOneLine(name)} begins at byte ${offset}, inside another that ends at ${at}`;
    if (offset > at) return `no tensor holds the bytes from ${at} to ${offset}`;
    at = end;
  }
  return at < size ? `no tensor holds the bytes from ${at} to ${size}` : null;
}

/** A tensor that is called for. @throws UserError when it is of a type that cannot be read. */
export function readable(file: string, name: string, entry: StoredTensor): TensorEntry {
  const type = READABLE.find((one) => one === entry.type);
  if (type !== undefined) return { ...entry, type };
  throw new UserError(
    `${file}: tensor ${inOneLine(name)} has type ${inOneLine(entry.type)}, which is not supported; give weights in ${READABLE.join(', ')}`,
  );
}

function openForReading(file: string): number {
  try {
    return openSync(file, 'r');
  } catch (cause) {
    throw new UserError(`${file} cannot be read (${(cause as NodeJS.ErrnoException).code})`, { cause });
  }
}

/**
 * Read whole tensors as float32.
 * @param isWanted which of them by name; all where it is not given
 * @throws UserError for a file that is missing or corrupt, and for a wanted tensor of a type that cannot be read
 */
export function readTensors(file: string, isWanted: (name: string) => boolean = () => true): Map<string, Tensor> {
  const wanted = [...readTensorEntries(file)].filter(([name]) => isWanted(name));
  const descriptor = openForReading(file);
  try {
    return new Map(
      wanted.map(([name, stored]) => {
        const entry = readable(file, name, stored);
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
  const shapes = new Map([...tensors].map(([name, { shape }]) => [name, shape]));
  const data = [...tensors.values()].map((t) => Buffer.from(t.data.buffer, t.data.byteOffset, t.data.byteLength));
  writeFileAtomic(file, Buffer.concat([headOf(shapes, 'F32', metadata).head, ...data]));
}

/** What stands before tensors of one type that follow each other in this order, and the bytes that they take. */
function headOf(
  shapes: ReadonlyMap<string, readonly number[]>,
  type: TensorType,
  metadata: Record<string, string>,
): { head: Buffer; bytes: number } {
  const header: Record<string, unknown> = { __metadata__: metadata };
  let at = 0;
  for (const [name, shape] of shapes) {
    const end = at + shape.reduce((a, b) => a * b, BITS.get(type)! / 8);
    header[name] = { dtype: type, shape, data_offsets: [at, end] };
    at = end;
  }
  const json = Buffer.from(JSON.stringify(header));
  const padded = Buffer.concat([json, Buffer.alloc((8 - (json.length % 8)) % 8, ' ')]);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.length));
  return { head: Buffer.concat([length, padded]), bytes: at };
}

/** Writes a file of tensors a part at a time, for what is too much to hold; the file is whole once `finish` has returned. */
export class TensorWriter {
  readonly #file: string;
  readonly #handle: number;
  /** Of all tensors, and of what is written of them. */
  readonly bytes: number;
  written = 0;

  private constructor(file: string, handle: number, bytes: number) {
    this.#file = file;
    this.#handle = handle;
    this.bytes = bytes;
  }

  static create(file: string, shapes: ReadonlyMap<string, readonly number[]>, type: TensorType): TensorWriter {
    const { head, bytes } = headOf(shapes, type, { format: 'pt' });
    return withStoreErrors(file, () => {
      const writer = new TensorWriter(file, openSync(file, 'w'), bytes);
      writer.#append(head);
      return writer;
    });
  }

  /** The next bytes of the tensors, in the order of their shapes. @throws RunError on a full disk */
  write(part: Uint8Array): void {
    withStoreErrors(this.#file, () => this.#append(part));
    this.written += part.byteLength;
  }

  #append(part: Uint8Array): void {
    for (let at = 0; at < part.byteLength;) at += writeSync(this.#handle, part, at);
  }

  finish(): void {
    if (this.written !== this.bytes) throw new Error(`${this.#file}: ${this.written} of ${this.bytes} bytes written`);
    withStoreErrors(this.#file, () => fsyncSync(this.#handle));
  }

  close(): void {
    closeSync(this.#handle);
  }
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
