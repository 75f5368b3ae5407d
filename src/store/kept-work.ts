/**
 * Parts of a long computation, kept as files while it is not finished, so that one that is broken off goes on. A part that is missing,
 * damaged, or of another computation is done again.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomic } from './files.js';

/** Bytes of the digest that a file begins with. */
const DIGEST = 32;

export class KeptWork {
  readonly #folder: string;
  readonly #of: string;

  /** @param of names all that the parts follow from */
  constructor(folder: string, of: string) {
    this.#folder = folder;
    this.#of = of;
  }

  /** What a part came to: as it was kept, or by doing it now. Names are file names. */
  async part(name: string, work: () => Promise<Uint8Array>): Promise<Uint8Array> {
    const path = join(this.#folder, name);
    const kept = this.#read(path, name);
    if (kept) return kept;
    const bytes = await work();
    writeFileAtomic(path, Buffer.concat([this.#digest(name, bytes), bytes]));
    return bytes;
  }

  #digest(name: string, bytes: Uint8Array): Buffer {
    return createHash('sha256')
      .update(JSON.stringify([this.#of, name]))
      .update(bytes)
      .digest();
  }

  #read(path: string, name: string): Uint8Array | null {
    let file: Buffer;
    try {
      file = readFileSync(path);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
      throw error;
    }
    // A buffer of its own, which arrays of numbers can be laid over.
    const bytes = Uint8Array.from(file.subarray(DIGEST));
    return file.subarray(0, DIGEST).equals(this.#digest(name, bytes)) ? bytes : null;
  }
}
