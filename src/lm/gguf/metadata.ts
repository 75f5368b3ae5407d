/** What a GGUF file says of its model, by key; a value of another type than is asked for is refused by the key's name. */
import { inOneLine, UserError } from '../../errors.js';

export type MetadataValue = number | boolean | string | readonly (number | boolean | string)[];

export class Metadata {
  readonly path: string;
  readonly #values: ReadonlyMap<string, MetadataValue>;

  constructor(path: string, values: ReadonlyMap<string, MetadataValue>) {
    this.path = path;
    this.#values = values;
  }

  /** @throws UserError that names the file */
  refuse(why: string): never {
    throw new UserError(`${this.path}: ${inOneLine(why)}`);
  }

  keys(): string[] {
    return [...this.#values.keys()];
  }

  text(key: string): string | undefined {
    return this.#get(key, 'a text', (value) => typeof value === 'string') as string | undefined;
  }
  flag(key: string): boolean | undefined {
    return this.#get(key, 'true or false', (value) => typeof value === 'boolean') as boolean | undefined;
  }
  whole(key: string): number | undefined {
    return this.#get(key, 'a whole number', (value) => Number.isSafeInteger(value) && (value as number) >= 0) as
      | number
      | undefined;
  }
  /** A number that the file has in float32: the shortest decimal of it, as 0.00001 of 0.00000999999974738. */
  number(key: string): number | undefined {
    const value = this.#get(key, 'a number', Number.isFinite) as number | undefined;
    return value === undefined ? undefined : shortestFloat32(value);
  }
  texts(key: string): readonly string[] | undefined {
    return this.#list(key, 'texts', (item) => typeof item === 'string') as readonly string[] | undefined;
  }
  numbers(key: string): readonly number[] | undefined {
    return this.#list(key, 'numbers', (item) => typeof item === 'number') as readonly number[] | undefined;
  }

  /** What a getter finds. @throws UserError where there is nothing */
  required<T>(value: T | undefined, key: string): T {
    return value ?? this.refuse(`it has no ${key}`);
  }

  #get(key: string, what: string, isRight: (value: unknown) => boolean): MetadataValue | undefined {
    const value = this.#values.get(key);
    if (value === undefined || isRight(value)) return value;
    return this.refuse(`${key} is ${Array.isArray(value) ? 'a list' : JSON.stringify(value)}, not ${what}`);
  }

  #list(key: string, what: string, isRight: (item: unknown) => boolean): MetadataValue | undefined {
    return this.#get(key, `a list of ${what}`, (value) => Array.isArray(value) && value.every(isRight));
  }
}

/** Digits with which every float32 is told from its neighbours. */
const FLOAT32_DIGITS = 9;

export function shortestFloat32(value: number): number {
  for (let digits = 1; digits < FLOAT32_DIGITS; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === Math.fround(value)) return short;
  }
  return value;
}
