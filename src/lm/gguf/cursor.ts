/** Reads a file's numbers and texts one after the other, never more of it at a time than a buffer holds or a value is long. */
import { readSync } from 'node:fs';

/** Bytes of one read. */
const BUFFER = 1 << 20;

/** The file ended before a value did. */
export class CutOff extends Error {}

export class Cursor {
  readonly #handle: number;
  /** The file's bytes in all. */
  readonly size: number;
  #buffer = new DataView(new ArrayBuffer(0));
  /** The buffer's place in the file, and how far into it all has been read. */
  #start = 0;
  #at = 0;
  // Some tokens begin with the byte order mark, which a decoder drops unless told not to.
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });

  constructor(handle: number, size: number) {
    this.#handle = handle;
    this.size = size;
  }

  /** Bytes of the file that have been read. */
  get position(): number {
    return this.#start + this.#at;
  }

  get left(): number {
    return this.size - this.position;
  }

  uint8 = (): number => this.#take(1).getUint8(this.#at - 1);
  int8 = (): number => this.#take(1).getInt8(this.#at - 1);
  uint16 = (): number => this.#take(2).getUint16(this.#at - 2, true);
  int16 = (): number => this.#take(2).getInt16(this.#at - 2, true);
  uint32 = (): number => this.#take(4).getUint32(this.#at - 4, true);
  int32 = (): number => this.#take(4).getInt32(this.#at - 4, true);
  float32 = (): number => this.#take(4).getFloat32(this.#at - 4, true);
  float64 = (): number => this.#take(8).getFloat64(this.#at - 8, true);
  /** Beyond 2⁵³ rounded: no such number is right where one is read. */
  uint64 = (): number => Number(this.#take(8).getBigUint64(this.#at - 8, true));
  int64 = (): number => Number(this.#take(8).getBigInt64(this.#at - 8, true));

  /** So many bytes as UTF-8. */
  text(bytes: number): string {
    const view = this.#take(bytes);
    return this.#decoder.decode(new Uint8Array(view.buffer, view.byteOffset + this.#at - bytes, bytes));
  }

  /** Go on by so many bytes, which the buffer then holds. @throws CutOff */
  #take(bytes: number): DataView {
    if (this.#at + bytes > this.#buffer.byteLength) this.#fill(bytes);
    this.#at += bytes;
    return this.#buffer;
  }

  #fill(bytes: number): void {
    if (!(bytes <= this.left)) throw new CutOff();
    const start = this.position;
    const buffer = new Uint8Array(Math.max(bytes, Math.min(BUFFER, this.left)));
    for (let have = 0; have < buffer.length;) {
      const read = readSync(this.#handle, buffer, have, buffer.length - have, start + have);
      if (read === 0) throw new CutOff();
      have += read;
    }
    this.#buffer = new DataView(buffer.buffer);
    this.#start = start;
    this.#at = 0;
  }
}
