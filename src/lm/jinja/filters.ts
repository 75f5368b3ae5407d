/** Filters and tests of templates, as Jinja has them. */
import { capitalize, replace, strip } from './methods.js';
import { Callable, compare, isEqual, isTrue, items, json, Markup, Namespace, PYTHON_SPACE } from './values.js';
import { repr, text, Tuple, typeName, Unsupported } from './values.js';
import type { Arguments, Value } from './values.js';

type Filter = (value: Value, args: Bound) => Value;

/** Arguments by place or name. */
class Bound {
  readonly #args: Arguments;
  readonly #what: string;
  constructor(what: string, args: Arguments) {
    this.#what = what;
    this.#args = args;
  }
  /** @throws Unsupported for arguments other than these */
  take(...names: readonly string[]): Value[] {
    const { positional, named } = this.#args;
    const unknown = [...named.keys()].find((name) => !names.includes(name));
    if (unknown !== undefined || positional.length > names.length)
      throw new Unsupported(
        `${this.#what} with ${unknown === undefined ? 'so many arguments' : `the argument ${unknown}`}`,
      );
    return names.map((name, i) => (i < positional.length ? positional[i] : named.get(name)));
  }
  get all(): Arguments {
    return this.#args;
  }
}

const asText = (value: Value, what: string): string => {
  if (value instanceof Markup) throw new Unsupported(`${what} of an escaped text`);
  return text(value);
};
const length = (value: Value): bigint => {
  if (
    value instanceof Map ||
    value === undefined ||
    typeof value === 'string' ||
    Array.isArray(value) ||
    value instanceof Tuple
  )
    return BigInt(value instanceof Map ? value.size : items(value).length);
  throw new Unsupported(`the length of ${typeName(value)}`);
};
const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  "'": '&#39;',
  '"': '&#34;',
};
const escape: Filter = (value, args) => {
  args.take();
  if (value instanceof Markup) return value;
  return new Markup(text(value).replaceAll(/[&<>'"]/g, (character) => ESCAPES[character]!));
};

const fallback: Filter = (value, args) => {
  const [other = '', always = false] = args.take('default_value', 'boolean');
  return value === undefined || (isTrue(always) && !isTrue(value)) ? other : value;
};

/** The attribute of an element that `map`, `join` and others go by. */
function attribute(value: Value, path: Value): Value {
  if (typeof path !== 'string') throw new Unsupported(`the attribute ${repr(path ?? null)}`);
  return path.split('.').reduce<Value>((at, name) => {
    if (at instanceof Map) return at.get(name);
    throw new Unsupported(`the attribute ${name} of ${typeName(at)}`);
  }, value);
}

function mapped(value: Value, { all: { positional, named } }: Bound): Value {
  const path = named.get('attribute');
  if (path !== undefined && positional.length === 0) {
    const other = named.get('default');
    return items(value).map((one) => attribute(one, path) ?? other);
  }
  const [name, ...rest] = positional;
  if (typeof name !== 'string') throw new Unsupported('map without a filter');
  return items(value).map((one) => applyFilter(name, one, { positional: rest, named }));
}

function chosen(value: Value, { all: { positional } }: Bound, by: 'element' | 'attribute', wanted: boolean): Value {
  const [path, ...forAttribute] = positional;
  const [name, ...args] = by === 'attribute' ? forAttribute : positional;
  return items(value).filter((one) => {
    const tested = by === 'attribute' ? attribute(one, path) : one;
    const holds = name === undefined ? isTrue(tested) : applyTest(text(name), tested, args);
    return holds === wanted;
  });
}

function sorted(value: Value, args: Bound): Value {
  const [reverse = false, caseSensitive = false, path] = args.take('reverse', 'case_sensitive', 'attribute');
  const key = (one: Value): Value => {
    const at = path === undefined || path === null ? one : attribute(one, path);
    return typeof at === 'string' && !isTrue(caseSensitive) ? at.toLowerCase() : at;
  };
  const order = isTrue(reverse) ? -1 : 1;
  return items(value).toSorted((a, b) => order * compare(key(a), key(b)));
}

function toJson(value: Value, args: Bound): Value {
  const [ascii = false, indent = null, separators = null, sort = false] = args.take(
    'ensure_ascii',
    'indent',
    'separators',
    'sort_keys',
  );
  const given = separators === null ? null : items(separators).map((one) => asText(one, 'separators'));
  const spaces = indent === null ? null : typeof indent === 'bigint' ? Number(indent) : undefined;
  if (spaces === undefined) throw new Unsupported(`tojson with an indent that is ${typeName(indent)}`);
  const [item = spaces === null ? ', ' : ',', key = ': '] = given ?? [];
  return json(value, { ascii: isTrue(ascii), indent: spaces, separators: [item, key], sorted: isTrue(sort) });
}

function whole(value: Value, args: Bound): Value {
  const [other = 0n] = args.take('default');
  if (typeof value === 'bigint') return value;
  if (typeof value === 'boolean') return BigInt(value);
  if (typeof value === 'number') return BigInt(Math.trunc(value));
  if (typeof value !== 'string') return other;
  const digits = strip(value, 'both', undefined);
  if (/^[+-]?[0-9]+$/.test(digits)) return BigInt(digits);
  if (/^[+-]?[0-9]*\.[0-9]+$/.test(digits)) return BigInt(Math.trunc(Number(digits)));
  if (/^[\p{L}\p{P}\s]*$/u.test(digits) && !/inf|nan/i.test(digits)) return other;
  throw new Unsupported(`int of ${repr(value)}`);
}

/** Where Python ends a line besides \n. */
const OTHER_BREAKS = new RegExp(String.raw`[\r\v\f\x1c-\x1e\x85\u2028\u2029]`);

function indented(value: Value, args: Bound): Value {
  const [width = 4n, first = false, blank = false] = args.take('width', 'first', 'blank');
  const space = typeof width === 'bigint' ? ' '.repeat(Number(width)) : asText(width, 'indent');
  const lines = asText(value, 'indent').split('\n');
  if (OTHER_BREAKS.test(asText(value, 'indent')))
    throw new Unsupported('indent of lines that end otherwise than in \\n');
  return lines
    .map((line, i) => ((i === 0 ? isTrue(first) : isTrue(blank) || line !== '') ? space + line : line))
    .join('\n');
}

/** Jinja's own, whose words end at fewer characters than Python's. */
function title(value: Value, args: Bound): Value {
  args.take();
  return asText(value, 'title')
    .split(new RegExp(`([-${PYTHON_SPACE}({\\[<]+)`, 'u'))
    .map(capitalize)
    .join('');
}

function joined(value: Value, args: Bound): Value {
  const [by = '', path] = args.take('d', 'attribute');
  const parts = items(value).map((one) => (path === undefined || path === null ? one : attribute(one, path)));
  return parts.map((one) => asText(one, 'join')).join(asText(by, 'join'));
}

const plain =
  (filter: (value: Value) => Value): Filter =>
  (value, args) => {
    args.take();
    return filter(value);
  };

const FILTERS: Readonly<Record<string, Filter>> = {
  trim: (value, args) => strip(asText(value, 'trim'), 'both', args.take('chars')[0]),
  upper: plain((value) => asText(value, 'upper').toUpperCase()),
  lower: plain((value) => asText(value, 'lower').toLowerCase()),
  capitalize: plain((value) => capitalize(asText(value, 'capitalize'))),
  title,
  length: plain(length),
  count: plain(length),
  default: fallback,
  d: fallback,
  tojson: toJson,
  join: joined,
  first: plain((value) => items(value)[0]),
  last: plain((value) => items(value).at(-1)),
  list: plain((value) => [...items(value)]),
  string: plain((value) => asText(value, 'string')),
  int: whole,
  float: plain((value) => {
    if (typeof value === 'number') return value;
    if (typeof value === 'bigint') return Number(value);
    throw new Unsupported(`float of ${typeName(value)}`);
  }),
  abs: plain((value) => {
    if (typeof value === 'bigint') return value < 0n ? -value : value;
    if (typeof value === 'number') return Math.abs(value);
    throw new Unsupported(`abs of ${typeName(value)}`);
  }),
  replace: (value, args) => {
    const [from, to, limit = null] = args.take('old', 'new', 'count');
    const most = limit === null ? -1 : Number(limit);
    return replace(asText(value, 'replace'), asText(from, 'replace'), asText(to, 'replace'), most);
  },
  e: escape,
  escape,
  safe: plain((value) => value),
  items: plain((value) => {
    if (value === undefined) return [];
    if (value instanceof Map) return [...value].map(([key, one]) => new Tuple([key, one]));
    throw new Unsupported(`items of ${typeName(value)}`);
  }),
  reverse: plain((value) =>
    typeof value === 'string' ? [...value].toReversed().join('') : [...items(value)].toReversed(),
  ),
  sort: sorted,
  unique: plain((value) =>
    items(value).filter((one, i, all) => all.findIndex((other) => isEqual(lowered(one), lowered(other))) === i),
  ),
  map: mapped,
  select: (value, args) => chosen(value, args, 'element', true),
  reject: (value, args) => chosen(value, args, 'element', false),
  selectattr: (value, args) => chosen(value, args, 'attribute', true),
  rejectattr: (value, args) => chosen(value, args, 'attribute', false),
  indent: indented,
};

const lowered = (value: Value): Value => (typeof value === 'string' ? value.toLowerCase() : value);

/** @throws Unsupported for a filter that is not here */
export function applyFilter(name: string, value: Value, args: Arguments): Value {
  if (!hasFilter(name)) throw new Unsupported(`the filter ${name}`);
  return FILTERS[name]!(value, new Bound(`the filter ${name}`, args));
}
export const hasFilter = (name: string): boolean => Object.hasOwn(FILTERS, name);

type Test = (value: Value, args: readonly Value[]) => boolean;
const whole2 = (value: Value): bigint => {
  if (typeof value === 'bigint') return value;
  throw new Unsupported(`a test for odd and even of ${typeName(value)}`);
};
const isSequence = (value: Value): boolean =>
  value === undefined ||
  typeof value === 'string' ||
  Array.isArray(value) ||
  value instanceof Tuple ||
  value instanceof Map;
const equals: Test = (value, [other]) => isEqual(value, other);
const TESTS: Readonly<Record<string, Test>> = {
  defined: (value) => value !== undefined,
  undefined: (value) => value === undefined,
  none: (value) => value === null,
  true: (value) => value === true,
  false: (value) => value === false,
  boolean: (value) => typeof value === 'boolean',
  string: (value) => typeof value === 'string' || value instanceof Markup,
  number: (value) => typeof value === 'bigint' || typeof value === 'number' || typeof value === 'boolean',
  integer: (value) => typeof value === 'bigint',
  float: (value) => typeof value === 'number',
  mapping: (value) => value instanceof Map,
  iterable: isSequence,
  sequence: isSequence,
  callable: (value) => value instanceof Callable,
  odd: (value) => whole2(value) % 2n !== 0n,
  even: (value) => whole2(value) % 2n === 0n,
  eq: equals,
  equalto: equals,
  ne: (value, args) => !equals(value, args),
  in: (value, [list]) => contains(list, value),
};

/** @throws Unsupported for a test that is not here */
export function applyTest(name: string, value: Value, args: readonly Value[]): boolean {
  if (!hasTest(name)) throw new Unsupported(`the test ${name}`);
  return TESTS[name]!(value, args);
}
export const hasTest = (name: string): boolean => Object.hasOwn(TESTS, name);

/** Python's `in`. */
export function contains(container: Value, value: Value): boolean {
  if (typeof container === 'string') {
    if (typeof value === 'string') return container.includes(value);
    throw new Unsupported(`looking for ${typeName(value)} in a text`);
  }
  if (container instanceof Map) return typeof value === 'string' && container.has(value);
  if (container === null || container instanceof Namespace) throw new Unsupported(`in with ${typeName(container)}`);
  return items(container).some((one) => isEqual(one, value));
}
