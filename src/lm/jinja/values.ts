/** Values of a chat template, and how Python prints, compares and takes them for true. Whole numbers are bigints, as Python's have no end. */

/** What cannot be filled in as transformers does, by name. */
export class Unsupported extends Error {
  override name = 'Unsupported';
}

/** A tuple, which prints and compares unlike a list. */
export class Tuple {
  readonly items: readonly Value[];
  constructor(items: readonly Value[]) {
    this.items = items;
  }
}
/** What `namespace()` makes: the one thing whose attributes a template may set. */
export class Namespace {
  readonly fields = new Map<string, Value>();
}
/** A text that is escaped already; to join it with another would escape that too. */
export class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}
export interface Arguments {
  readonly positional: readonly Value[];
  readonly named: ReadonlyMap<string, Value>;
}
/** A macro, or a function that templates are given. */
export class Callable {
  readonly call: (args: Arguments) => Value;
  constructor(call: (args: Arguments) => Value) {
    this.call = call;
  }
}
export type Value =
  | string
  | bigint
  | number
  | boolean
  | null
  | undefined
  | Value[]
  | Map<string, Value>
  | Tuple
  | Namespace
  | Markup
  | Callable;

/** What Python's `str.strip()` takes off. */
export const PYTHON_SPACE = String.raw`\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000`;

export function typeName(value: Value): string {
  if (value === undefined) return 'an undefined value';
  if (value === null) return 'None';
  if (Array.isArray(value)) return 'a list';
  if (value instanceof Map) return 'a dict';
  if (value instanceof Tuple) return 'a tuple';
  if (value instanceof Namespace) return 'a namespace';
  if (value instanceof Markup) return 'an escaped text';
  if (value instanceof Callable) return 'a function';
  return { string: 'a text', bigint: 'an int', number: 'a float', boolean: 'a bool' }[
    typeof value as 'string' | 'bigint' | 'number' | 'boolean'
  ];
}

export function isTrue(value: Value): boolean {
  if (Array.isArray(value)) return value.length > 0;
  if (value instanceof Map) return value.size > 0;
  if (value instanceof Tuple) return value.items.length > 0;
  if (value instanceof Markup) return value.text !== '';
  return Boolean(value);
}

/** Python's `str()`. */
export function text(value: Value): string {
  if (value === undefined) return '';
  if (typeof value === 'string') return value;
  if (value instanceof Markup) return value.text;
  return repr(value);
}

/** Python's `repr()`. */
export function repr(value: Value): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'number') return floatText(value);
  if (typeof value === 'string') return quotedText(value);
  if (Array.isArray(value)) return `[${value.map(repr).join(', ')}]`;
  if (value instanceof Tuple) {
    const items = value.items.map(repr);
    return items.length === 1 ? `(${items[0]},)` : `(${items.join(', ')})`;
  }
  if (value instanceof Map) return `{${[...value].map(([key, one]) => `${quotedText(key)}: ${repr(one)}`).join(', ')}}`;
  throw new Unsupported(`printing ${typeName(value)}`);
}

/** The shortest text that is the number; with an exponent from 1e16 on, and below 1e-4. */
export function floatText(x: number): string {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? 'nan' : x > 0 ? 'inf' : '-inf';
  if (x === 0) return Object.is(x, -0) ? '-0.0' : '0.0';
  const [digits, exponent] = x.toExponential().split('e') as [string, string];
  const power = Number(exponent);
  if (power < -4 || power >= 16) return `${digits}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`;
  const plain = power < 0 ? x.toFixed(Math.max(0, digits.replace(/[-.]/g, '').length - 1 - power)) : String(x);
  return plain.includes('.') ? plain : `${plain}.0`;
}

const NAMED_ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\\': '\\\\' };

function quotedText(value: string): string {
  const quote = value.includes("'") && !value.includes('"') ? '"' : "'";
  const escaped = [...value].map((character) => {
    if (character === quote) return `\\${quote}`;
    const named = NAMED_ESCAPES[character];
    if (named !== undefined) return named;
    if (character === ' ' || !/[\p{C}\p{Z}]/u.test(character)) return character;
    const code = character.codePointAt(0)!;
    if (code < 0x100) return `\\x${code.toString(16).padStart(2, '0')}`;
    return code < 0x1_0000 ? `\\u${code.toString(16).padStart(4, '0')}` : `\\U${code.toString(16).padStart(8, '0')}`;
  });
  return quote + escaped.join('') + quote;
}

const isNumber = (value: Value): value is bigint | number | boolean =>
  typeof value === 'bigint' || typeof value === 'number' || typeof value === 'boolean';

/** Python's `==`. */
export function isEqual(a: Value, b: Value): boolean {
  // Between a bigint and a number JavaScript compares exactly, as Python does.
  // oxlint-disable-next-line eqeqeq
  if (isNumber(a) && isNumber(b)) return asNumeric(a) == asNumeric(b);
  if (Array.isArray(a) && Array.isArray(b)) return allEqual(a, b);
  if (a instanceof Tuple && b instanceof Tuple) return allEqual(a.items, b.items);
  if (a instanceof Map && b instanceof Map)
    return a.size === b.size && [...a].every(([key, value]) => b.has(key) && isEqual(value, b.get(key)));
  if (a instanceof Markup || b instanceof Markup) throw new Unsupported('comparing an escaped text');
  return a === b;
}

function allEqual(a: readonly Value[], b: readonly Value[]): boolean {
  return a.length === b.length && a.every((value, i) => isEqual(value, b[i]));
}

const asNumeric = (value: bigint | number | boolean): bigint | number =>
  typeof value === 'boolean' ? BigInt(value) : value;

/** Negative, zero or positive, of two numbers or two texts. */
export function compare(a: Value, b: Value): number {
  if (isNumber(a) && isNumber(b)) {
    const [x, y] = [asNumeric(a), asNumeric(b)];
    return x < y ? -1 : x > y ? 1 : 0;
  }
  if (typeof a === 'string' && typeof b === 'string') {
    // By code points, where JavaScript goes by code units.
    const [x, y] = [[...a], [...b]];
    const at = x.findIndex((character, i) => character !== y[i]);
    if (at < 0) return x.length - y.length;
    return at >= y.length ? 1 : x[at]!.codePointAt(0)! - y[at]!.codePointAt(0)!;
  }
  throw new Unsupported(`comparing ${typeName(a)} with ${typeName(b)}`);
}

/** What a loop goes over. */
export function items(value: Value): readonly Value[] {
  if (value === undefined) return [];
  if (typeof value === 'string') return [...value];
  if (Array.isArray(value)) return value;
  if (value instanceof Tuple) return value.items;
  if (value instanceof Map) return [...value.keys()];
  throw new Unsupported(`a loop over ${typeName(value)}`);
}

export interface JsonStyle {
  readonly indent: number | null;
  readonly separators: readonly [item: string, key: string];
  readonly ascii: boolean;
  readonly sorted: boolean;
}

/** Python's `json.dumps`. */
export function json(value: Value, style: JsonStyle, depth = 0): string {
  if (value === null) return 'null';
  if (typeof value === 'boolean' || typeof value === 'bigint') return String(value);
  if (typeof value === 'number' && Number.isFinite(value)) return floatText(value);
  if (typeof value === 'string') return jsonText(value, style.ascii);
  const { indent, separators } = style;
  const wrap = (open: string, parts: readonly string[], close: string): string => {
    if (parts.length === 0) return open + close;
    if (indent === null) return open + parts.join(separators[0]) + close;
    const line = (level: number): string => `\n${' '.repeat(indent * level)}`;
    return open + line(depth + 1) + parts.join(separators[0] + line(depth + 1)) + line(depth) + close;
  };
  if (Array.isArray(value) || value instanceof Tuple)
    return wrap(
      '[',
      items(value).map((one) => json(one, style, depth + 1)),
      ']',
    );
  if (value instanceof Map) {
    const entries = style.sorted ? [...value].toSorted(([a], [b]) => compare(a, b)) : [...value];
    const parts = entries.map(([key, one]) => jsonText(key, style.ascii) + separators[1] + json(one, style, depth + 1));
    return wrap('{', parts, '}');
  }
  throw new Unsupported(`tojson of ${typeName(value)}`);
}

/** JSON.stringify escapes what Python does. */
function jsonText(value: string, ascii: boolean): string {
  const plain = JSON.stringify(value);
  if (!ascii) return plain;
  return plain.replaceAll(/[\u0080-\uFFFF]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
