/**
 * The GGUF container: a head of typed metadata and of the tensors' places, then the tensors. https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
 * All of the head is checked before anything is done with it, in time and memory that a file's own size bounds.
 */
import { closeSync, fstatSync, openSync } from 'node:fs';
import { inOneLine, readingFault, UserError } from '../../errors.js';
import { BLOCKS, TYPE_NAMES } from './blocks.js';
import type { QuantType } from './blocks.js';
import { Cursor, CutOff } from './cursor.js';
import { Metadata } from './metadata.js';
import type { MetadataValue } from './metadata.js';

export interface GgufTensor {
  readonly name: string;
  readonly type: QuantType;
  /** Rows first, as Hugging Face has it: the file's own order is the other way round. */
  readonly shape: readonly number[];
  /** From the file's beginning. */
  readonly offset: number;
  readonly bytes: number;
}

export interface GgufFile {
  readonly path: string;
  readonly metadata: Metadata;
  readonly tensors: readonly GgufTensor[];
}

const MAGIC = 0x46554747; // "GGUF", little-endian
const VERSIONS = [2, 3];
const DEFAULT_ALIGNMENT = 32;
/** Larger than in any model: Gemma's 262,144 tokens take 8 MB. What is read of a head is kept until the import ends. */
const LARGEST_HEAD = 64 * 2 ** 20;
const MOST_KEYS = 4096;
const MOST_TENSORS = 2 ** 16;
const MOST_ITEMS = 2 ** 22;
const MOST_DIMENSIONS = 4;
/** As long as a chat template may be; of a name, the format's own bound. */
const LONGEST_TEXT = 2 ** 22;
const LONGEST_NAME = 2 ** 16 - 1;
/** A tensor of more elements is damage, whatever its file's size claims. */
const MOST_ELEMENTS = 2 ** 40;

/** Read and check a file's head. @throws UserError naming the file, for what is damaged or is no GGUF file */
export function readGguf(path: string): GgufFile {
  let handle: number;
  try {
    handle = openSync(path, 'r');
  } catch (cause) {
    throw new UserError(`${path} ${readingFault(cause)}`, { cause });
  }
  try {
    const stat = fstatSync(handle);
    if (!stat.isFile()) throw new UserError(`${path} is no file: give a GGUF file`);
    return new Head(path, new Cursor(handle, stat.size)).read();
  } catch (error) {
    if (error instanceof CutOff)
      throw new UserError(`${path} is not a usable GGUF file: it is cut off; fetch it again`, { cause: error });
    throw error;
  } finally {
    closeSync(handle);
  }
}

class Head {
  readonly #path: string;
  readonly #cursor: Cursor;
  /** Element types by their number: the fewest bytes one takes, and how it is read. */
  readonly #kinds: readonly (readonly [bytes: number, read: () => number | boolean | string])[];

  constructor(path: string, cursor: Cursor) {
    this.#path = path;
    this.#cursor = cursor;
    const c = cursor;
    this.#kinds = [
      [1, c.uint8],
      [1, c.int8],
      [2, c.uint16],
      [2, c.int16],
      [4, c.uint32],
      [4, c.int32],
      [4, c.float32],
      [1, () => c.uint8() !== 0],
      [8, () => this.#text(LONGEST_TEXT)],
      [0, () => this.#refuse('a list in a list')],
      [8, c.uint64],
      [8, c.int64],
      [8, c.float64],
    ];
  }

  read(): GgufFile {
    const cursor = this.#cursor;
    if (cursor.size < 4 || cursor.uint32() !== MAGIC)
      throw new UserError(`${this.#path} is no GGUF file: it does not begin with the letters GGUF`);
    const version = cursor.uint32();
    if (version >= 2 ** 16) this.#refuse('it is written big-endian, which is not read here');
    if (!VERSIONS.includes(version))
      this.#refuse(`its format has the version ${version}; ${VERSIONS.join(' and ')} are read`);
    const tensors = this.#count('tensors', MOST_TENSORS);
    const keys = this.#count('metadata keys', MOST_KEYS);
    const metadata = new Metadata(this.#path, this.#metadata(keys));
    const places = Array.from({ length: tensors }, () => this.#place());
    const alignment = metadata.whole('general.alignment') ?? DEFAULT_ALIGNMENT;
    if (alignment === 0 || alignment % 8 !== 0 || alignment > LARGEST_HEAD)
      this.#refuse(`its general.alignment is ${alignment}`);
    const start = Math.ceil(cursor.position / alignment) * alignment;
    const placed = places.map((place) => ({ ...place, offset: start + place.offset }));
    this.#checkPlaces(placed);
    return { path: this.#path, metadata, tensors: placed };
  }

  #refuse(why: string): never {
    throw new UserError(`${this.#path} is not a usable GGUF file: ${inOneLine(why)}; fetch it again`);
  }

  #count(what: string, most: number): number {
    const count = this.#cursor.uint64();
    if (count > most) this.#refuse(`it claims ${count} ${what}, more than ${most}`);
    return count;
  }

  #text(longest: number): string {
    const bytes = this.#cursor.uint64();
    if (bytes > longest) this.#refuse(`it claims a text of ${bytes} bytes, more than ${longest}`);
    return this.#cursor.text(bytes);
  }

  #metadata(keys: number): Map<string, MetadataValue> {
    const values = new Map<string, MetadataValue>();
    for (let i = 0; i < keys; i++) {
      const key = this.#text(LONGEST_NAME);
      if (values.has(key)) this.#refuse(`it has the key ${key} twice`);
      values.set(key, this.#value(key));
      if (this.#cursor.position > LARGEST_HEAD) this.#refuse(`its metadata takes more than ${LARGEST_HEAD} bytes`);
    }
    return values;
  }

  #value(key: string): MetadataValue {
    const cursor = this.#cursor;
    const type = cursor.uint32();
    if (type !== 9) return this.#kind(key, type)[1]();
    const [bytes, read] = this.#kind(key, cursor.uint32());
    const count = this.#count(`items of ${key}`, MOST_ITEMS);
    if (count * bytes > cursor.left) throw new CutOff();
    const list: (number | boolean | string)[] = [];
    for (let i = 0; i < count; i++) {
      list.push(read());
      if (cursor.position > LARGEST_HEAD) this.#refuse(`its metadata takes more than ${LARGEST_HEAD} bytes`);
    }
    return list;
  }

  #kind(key: string, type: number) {
    return this.#kinds[type] ?? this.#refuse(`${key} has the type ${type}, which the format has not`);
  }

  /** A tensor, its offset as the file has it: from where the tensors begin. */
  #place(): GgufTensor {
    const cursor = this.#cursor;
    const name = this.#text(LONGEST_NAME);
    const dimensions = cursor.uint32();
    if (dimensions < 1 || dimensions > MOST_DIMENSIONS) this.#refuse(`tensor ${name} has ${dimensions} dimensions`);
    const shape = Array.from({ length: dimensions }, cursor.uint64).toReversed();
    const number = cursor.uint32();
    const offset = cursor.uint64();
    const elements = shape.reduce((a, b) => a * b, 1);
    if (!(elements >= 1 && elements <= MOST_ELEMENTS)) this.#refuse(`tensor ${name} has the shape [${shape.join()}]`);
    const type = TYPE_NAMES.get(number);
    if (type === undefined) this.#refuse(`tensor ${name} has the type ${number}, which the format has not`);
    if (!isRead(type)) {
      throw new UserError(
        `${this.#path}: tensor ${inOneLine(name)} is quantised as ${type}, which is not read here; take a file of ${Object.keys(BLOCKS).join(', ')}`,
      );
    }
    const { weights, bytes } = BLOCKS[type];
    if (shape.at(-1)! % weights !== 0)
      this.#refuse(`tensor ${name} has rows of ${shape.at(-1)} weights, in ${type} they come in blocks of ${weights}`);
    return { name, type, shape, offset, bytes: (elements / weights) * bytes };
  }

  /** Every tensor lies in the file, and none in another. */
  #checkPlaces(tensors: readonly GgufTensor[]): void {
    if (new Set(tensors.map(({ name }) => name)).size < tensors.length) this.#refuse('it has two tensors of one name');
    let end = 0;
    for (const tensor of tensors.toSorted((a, b) => a.offset - b.offset)) {
      if (tensor.offset < end) this.#refuse(`tensor ${tensor.name} begins inside another`);
      end = tensor.offset + tensor.bytes;
      if (!(end <= this.#cursor.size))
        this.#refuse(`tensor ${tensor.name} ends at byte ${end} of ${this.#cursor.size}: the file is cut off`);
    }
  }
}

function isRead(type: string): type is QuantType {
  return Object.hasOwn(BLOCKS, type);
}
