/** Methods of texts and dicts that templates call, as Python has them. A sandbox lets a template change nothing, so those that do are not here. */
import { Callable, items, PYTHON_SPACE, repr, Tuple, typeName, Unsupported } from './values.js';
import type { Arguments, Value } from './values.js';

const SPACE = new RegExp(`[${PYTHON_SPACE}]+`, 'u');

/** The method of a value; undefined where it has none of that name. */
export function method(value: Value, name: string): Callable | undefined {
  const table: Readonly<Record<string, unknown>> =
    typeof value === 'string' ? TEXT_METHODS : value instanceof Map ? DICT_METHODS : {};
  if (!Object.hasOwn(table, name)) {
    if (value instanceof Map && PYTHON_DICT.has(name)) throw new Unsupported(`the method ${name} of a dict`);
    return undefined;
  }
  const run = table[name] as (self: Value, args: readonly Value[]) => Value;
  return new Callable(({ positional, named }: Arguments) => {
    if (named.size > 0) throw new Unsupported(`named arguments of ${name}`);
    return run(value, positional);
  });
}

/** Attributes of a dict that stand before its keys. */
const PYTHON_DICT = new Set(['clear', 'copy', 'fromkeys', 'pop', 'popitem', 'setdefault', 'update']);

function textOf(value: Value, what: string): string {
  if (typeof value === 'string') return value;
  throw new Unsupported(`${what} with ${typeName(value)}`);
}

function count(value: Value, fallback: number): number {
  if (value === undefined) return fallback;
  if (typeof value === 'bigint') return Number(value);
  throw new Unsupported(`a count that is ${typeName(value)}`);
}

/** Take characters off the ends of a text: those of a set, or white space. */
export function strip(self: string, ends: 'left' | 'right' | 'both', chars: Value): string {
  const set = chars === undefined || chars === null ? null : new Set(textOf(chars, 'strip'));
  const isTaken = (character: string): boolean => (set ? set.has(character) : SPACE.test(character));
  const all = [...self];
  let [start, end] = [0, all.length];
  if (ends !== 'right') while (start < end && isTaken(all[start]!)) start++;
  if (ends !== 'left') while (end > start && isTaken(all[end - 1]!)) end--;
  return all.slice(start, end).join('');
}

function split(self: string, separator: Value, limit: number): string[] {
  if (separator === undefined || separator === null) {
    const rest = strip(self, limit < 0 ? 'both' : 'left', undefined);
    if (rest === '') return [];
    const found = SPACE.exec(rest);
    if (limit === 0 || found === null) return [rest];
    return [rest.slice(0, found.index), ...split(rest.slice(found.index + found[0].length), separator, limit - 1)];
  }
  const by = textOf(separator, 'split');
  if (by === '') throw new Unsupported('splitting by an empty text');
  const parts = self.split(by);
  if (limit < 0 || parts.length <= limit) return parts;
  return [...parts.slice(0, limit), parts.slice(limit).join(by)];
}

export function replace(self: string, from: string, to: string, limit: number): string {
  if (limit < 0) return from === '' ? [...self].reduce((all, one) => all + one + to, to) : self.split(from).join(to);
  if (from === '') throw new Unsupported('replacing an empty text some times');
  const parts = self.split(from);
  const done = parts.slice(0, limit + 1).join(to);
  return [done, ...parts.slice(limit + 1)].join(from);
}

export const capitalize = (self: string): string => {
  const [first = '', ...rest] = self;
  return first.toUpperCase() + rest.join('').toLowerCase();
};

function starts(self: string, prefixes: Value, has: (self: string, prefix: string) => boolean): boolean {
  const all = prefixes instanceof Tuple ? prefixes.items : [prefixes];
  return all.some((one) => has(self, textOf(one, 'startswith')));
}

type TextMethod = (self: string, args: readonly Value[]) => Value;
const TEXT_METHODS: Readonly<Record<string, TextMethod>> = {
  strip: (self, [chars]) => strip(self, 'both', chars),
  lstrip: (self, [chars]) => strip(self, 'left', chars),
  rstrip: (self, [chars]) => strip(self, 'right', chars),
  upper: (self) => self.toUpperCase(),
  lower: (self) => self.toLowerCase(),
  capitalize: (self) => capitalize(self),
  title: (self) =>
    self.replaceAll(/\p{Cased}+/gu, (word) => {
      const [first = '', ...rest] = word;
      return first.toUpperCase() + rest.join('').toLowerCase();
    }),
  startswith: (self, [prefix, ...more]) => {
    if (more.length > 0) throw new Unsupported('startswith from a place');
    return starts(self, prefix, (one, two) => one.startsWith(two));
  },
  endswith: (self, [suffix, ...more]) => {
    if (more.length > 0) throw new Unsupported('endswith to a place');
    return starts(self, suffix, (one, two) => one.endsWith(two));
  },
  split: (self, [separator, limit]) => split(self, separator, count(limit, -1)),
  replace: (self, [from, to, limit]) => replace(self, textOf(from, 'replace'), textOf(to, 'replace'), count(limit, -1)),
  join: (self, [list]) =>
    items(list)
      .map((one) => textOf(one, 'join'))
      .join(self),
  removeprefix: (self, [prefix]) => {
    const start = textOf(prefix, 'removeprefix');
    return self.startsWith(start) ? self.slice(start.length) : self;
  },
  removesuffix: (self, [suffix]) => {
    const end = textOf(suffix, 'removesuffix');
    return end !== '' && self.endsWith(end) ? self.slice(0, -end.length) : self;
  },
  find: (self, [part, ...more]) => {
    if (more.length > 0) throw new Unsupported('find from a place');
    const at = self.indexOf(textOf(part, 'find'));
    return BigInt(at < 0 ? -1 : Array.from(self.slice(0, at)).length);
  },
  count: (self, [part]) => {
    const what = textOf(part, 'count');
    if (what === '') throw new Unsupported('counting an empty text');
    return BigInt(self.split(what).length - 1);
  },
};

type DictMethod = (self: Map<string, Value>, args: readonly Value[]) => Value;
const DICT_METHODS: Readonly<Record<string, DictMethod>> = {
  items: (self) => [...self].map(([key, value]) => new Tuple([key, value])),
  keys: (self) => [...self.keys()],
  values: (self) => [...self.values()],
  get: (self, [key, fallback = null]) => {
    if (typeof key !== 'string') throw new Unsupported(`get with the key ${repr(key ?? null)}`);
    return self.has(key) ? self.get(key) : fallback;
  },
};
