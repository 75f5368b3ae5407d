/** The bytes between the pool and a container's supervisor: Docker's stream headers outside, length-prefixed frames inside. */

/** Bytes before it are not ours: some engines leave the attach request's own body on the stream. */
export const PREAMBLE = Buffer.from('\n--propel-sandbox--\n');

const LENGTH_BYTES = 4;
const NEWLINE = 10;

/** A frame: what it is, details, and a body that only its receiver reads. */
export interface Frame {
  readonly kind: string;
  readonly header: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
}

/** Length (4 bytes, big-endian), header in JSON, newline, body. */
export function encodeFrame(kind: string, header: Readonly<Record<string, unknown>>, body?: Buffer): Buffer {
  const head = Buffer.from(`${JSON.stringify({ kind, ...header })}\n`);
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(head.length + (body?.length ?? 0));
  return Buffer.concat(body === undefined ? [length, head] : [length, head, body]);
}

/** Pieces of a known length out of chunks of any length, each byte copied once. */
class Assembler {
  readonly #chunks: Buffer[] = [];
  #held = 0;

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#held += chunk.length;
  }

  /** The next `length` bytes; null until they are there. */
  take(length: number): Buffer | null {
    if (this.#held < length) return null;
    this.#held -= length;
    const parts: Buffer[] = [];
    let missing = length;
    while (missing > 0) {
      const chunk = this.#chunks[0] as Buffer;
      if (chunk.length > missing) {
        parts.push(chunk.subarray(0, missing));
        this.#chunks[0] = chunk.subarray(missing);
        missing = 0;
      } else {
        parts.push(chunk);
        this.#chunks.shift();
        missing -= chunk.length;
      }
    }
    return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts, length);
  }
}

/** Frames out of a stream. Throws for one that is too long or malformed: the stream is then of no more use. */
export class FrameReader {
  readonly #bytes = new Assembler();
  readonly #maximum: number;
  #length: number | null = null;

  constructor(maximumBytes: number) {
    this.#maximum = maximumBytes;
  }

  push(chunk: Buffer): Frame[] {
    this.#bytes.push(chunk);
    const frames: Frame[] = [];
    for (;;) {
      if (this.#length === null) {
        const head = this.#bytes.take(LENGTH_BYTES);
        if (head === null) return frames;
        this.#length = head.readUInt32BE();
        if (this.#length > this.#maximum) throw new Error(`a frame of ${this.#length} bytes`);
      }
      const payload = this.#bytes.take(this.#length);
      if (payload === null) return frames;
      this.#length = null;
      frames.push(decode(payload));
    }
  }
}

function decode(payload: Buffer): Frame {
  const newline = payload.indexOf(NEWLINE);
  if (newline < 0) throw new Error('a frame without a header');
  const header: unknown = JSON.parse(payload.toString('utf8', 0, newline));
  if (typeof header !== 'object' || header === null || !('kind' in header) || typeof header.kind !== 'string') {
    throw new Error('a frame without a kind');
  }
  return { kind: header.kind, header: { ...header }, body: payload.subarray(newline + 1) };
}

const STREAM_HEAD_BYTES = 8;
export const STANDARD_OUTPUT = 1;

/** Docker's multiplexed stream taken apart: 1 byte of stream (1 output, 2 errors), 3 of padding, 4 of length, then the data. */
export class StreamSplitter {
  readonly #bytes = new Assembler();
  #head: { readonly stream: number; readonly length: number } | null = null;

  push(chunk: Buffer): { readonly stream: number; readonly data: Buffer }[] {
    this.#bytes.push(chunk);
    const pieces: { stream: number; data: Buffer }[] = [];
    for (;;) {
      if (this.#head === null) {
        const head = this.#bytes.take(STREAM_HEAD_BYTES);
        if (head === null) return pieces;
        this.#head = { stream: head[0] as number, length: head.readUInt32BE(4) };
      }
      const data = this.#bytes.take(this.#head.length);
      if (data === null) return pieces;
      pieces.push({ stream: this.#head.stream, data });
      this.#head = null;
    }
  }
}
