/** Python values as data on the host: their types, Python's `==` between them, and CPython's `repr`. Nothing here runs a program. */

/** What a Python literal can stand for. A str is well-formed Unicode text; ints have any size. */
export type PythonValue =
  | { readonly type: 'none' }
  | { readonly type: 'ellipsis' }
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'int'; readonly value: bigint }
  | { readonly type: 'float'; readonly value: number }
  | { readonly type: 'complex'; readonly real: number; readonly imaginary: number }
  | { readonly type: 'str'; readonly value: string }
  | { readonly type: 'bytes'; readonly value: Uint8Array }
  | { readonly type: 'tuple' | 'list' | 'set'; readonly items: readonly PythonValue[] }
  | { readonly type: 'dict'; readonly entries: readonly (readonly [PythonValue, PythonValue])[] };

/** CPython refuses to read or write a decimal integer of more digits (`sys.get_int_max_str_digits()`). */
export const MAX_DECIMAL_DIGITS = 4300;

/**
 * `a == b` by Python's rules: numbers compare by value whatever their type (`True == 1 == 1.0 == 1+0j`, integers exactly),
 * a list never equals a tuple, dicts and sets have no order, nan equals nothing.
 */
export function valuesEqual(a: PythonValue, b: PythonValue): boolean {
  return !holdsNan(a) && !holdsNan(b) && equalityKey(a) === equalityKey(b);
}

/** A text that two values share exactly when Python holds them equal (values that hold nan apart: see `valuesEqual`). */
export function equalityKey(value: PythonValue): string {
  switch (value.type) {
    case 'none':
      return 'None';
    case 'ellipsis':
      return '...';
    case 'bool':
      return value.value ? '1' : '0';
    case 'int':
      return value.value.toString();
    case 'float':
      return numberKey(value.value);
    case 'complex':
      return value.imaginary === 0 ? numberKey(value.real) : `${numberKey(value.real)}+${numberKey(value.imaginary)}j`;
    case 'str':
      return JSON.stringify(value.value);
    case 'bytes':
      return `b${JSON.stringify(latin1(value.value))}`;
    case 'tuple':
      return `(${value.items.map(equalityKey).join(',')})`;
    case 'list':
      return `[${value.items.map(equalityKey).join(',')}]`;
    case 'set':
      return `set{${value.items.map(equalityKey).sort().join(',')}}`;
    case 'dict':
      return `{${value.entries
        .map(([key, item]) => `${equalityKey(key)}:${equalityKey(item)}`)
        .sort()
        .join(',')}}`;
  }
}

/** A whole float shares its key with the int of the same value, however large: 1e20 is 100000000000000000000. */
function numberKey(value: number): string {
  return Number.isInteger(value) ? BigInt(value).toString() : String(value);
}

function holdsNan(value: PythonValue): boolean {
  switch (value.type) {
    case 'float':
      return Number.isNaN(value.value);
    case 'complex':
      return Number.isNaN(value.real) || Number.isNaN(value.imaginary);
    case 'tuple':
    case 'list':
    case 'set':
      return value.items.some(holdsNan);
    case 'dict':
      return value.entries.some(([key, item]) => holdsNan(key) || holdsNan(item));
    default:
      return false;
  }
}

/** Python can hash everything but lists, sets and dicts, and tuples that hold one. */
export function isHashable(value: PythonValue): boolean {
  if (value.type === 'tuple') return value.items.every(isHashable);
  return value.type !== 'list' && value.type !== 'set' && value.type !== 'dict';
}

/** Of equal items, the first: what a set keeps. */
export function unique(items: readonly PythonValue[]): PythonValue[] {
  const first = new Map<string, PythonValue>();
  for (const item of items) {
    const key = equalityKey(item);
    if (!first.has(key)) first.set(key, item);
  }
  return [...first.values()];
}

/** Of equal keys the first, with the last value: what a dict keeps. */
export function lastOfEachKey(entries: readonly [PythonValue, PythonValue][]): [PythonValue, PythonValue][] {
  const kept = new Map<string, [PythonValue, PythonValue]>();
  for (const [key, item] of entries) {
    const text = equalityKey(key);
    kept.set(text, [kept.get(text)?.[0] ?? key, item]);
  }
  return [...kept.values()];
}

/**
 * What CPython's `repr` gives. A set is written in the order its items were given: CPython's own order follows hashes.
 * Whether a character is printable follows the Unicode version of this Node, which may be newer than CPython's.
 * @throws {RangeError} for an integer of more than 4300 digits, as CPython does.
 */
export function pythonRepr(value: PythonValue): string {
  return write(value, REPR);
}

/** Python source that evaluates to the value: `repr`, but for infinity, Ellipsis, and integers too long for one. */
export function pythonSource(value: PythonValue): string {
  return write(value, SOURCE);
}

/** How what `repr` writes as a name is written. */
interface Spelling {
  readonly infinity: string;
  readonly ellipsis: string;
  readonly integer: (value: bigint) => string;
}
const REPR: Spelling = { infinity: 'inf', ellipsis: 'Ellipsis', integer: intRepr };
const SOURCE: Spelling = { infinity: '1e309', ellipsis: '...', integer: intSource };

function write(value: PythonValue, spelling: Spelling): string {
  const list = (items: readonly PythonValue[]): string => items.map((item) => write(item, spelling)).join(', ');
  switch (value.type) {
    case 'none':
      return 'None';
    case 'ellipsis':
      return spelling.ellipsis;
    case 'bool':
      return value.value ? 'True' : 'False';
    case 'int':
      return spelling.integer(value.value);
    case 'float':
      return floatRepr(value.value, spelling.infinity, '.0');
    case 'complex':
      return complexRepr(value.real, value.imaginary, spelling.infinity);
    case 'str':
      return strRepr(value.value);
    case 'bytes':
      return bytesRepr(value.value);
    case 'tuple':
      return value.items.length === 1 ? `(${list(value.items)},)` : `(${list(value.items)})`;
    case 'list':
      return `[${list(value.items)}]`;
    case 'set':
      return value.items.length === 0 ? 'set()' : `{${list(value.items)}}`;
    case 'dict':
      return `{${value.entries.map(([key, item]) => `${write(key, spelling)}: ${write(item, spelling)}`).join(', ')}}`;
  }
}

/** Hexadecimal integers have no limit in CPython; this many digits are no more than 4300 decimal ones. */
const LONG_HEXADECIMAL = 3500;

function intSource(value: bigint): string {
  const magnitude = (value < 0n ? -value : value).toString(16);
  return magnitude.length <= LONG_HEXADECIMAL ? intRepr(value) : `${value < 0n ? '-' : ''}0x${magnitude}`;
}

function intRepr(value: bigint): string {
  const text = value.toString();
  const digits = text.length - (value < 0n ? 1 : 0);
  if (digits > MAX_DECIMAL_DIGITS) throw new RangeError(`an integer of ${digits} digits has no repr in Python`);
  return text;
}

/** The shortest digits that read back as the same float; an exponent below 1e-4 and from 1e16 on. */
function floatRepr(value: number, infinity: string, whole: '.0' | ''): string {
  if (Number.isNaN(value)) return 'nan';
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  if (!Number.isFinite(value)) return sign + infinity;
  const [mantissa = '0', exponentText = '0'] = Math.abs(value).toExponential().split('e');
  const digits = mantissa.replace('.', '');
  const exponent = Number(exponentText);
  if (exponent < -4 || exponent >= 16) {
    const power = String(Math.abs(exponent)).padStart(2, '0');
    return `${sign}${mantissa}e${exponent < 0 ? '-' : '+'}${power}`;
  }
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`;
  const integer = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0');
  const fraction = digits.slice(exponent + 1);
  return sign + integer + (fraction === '' ? whole : `.${fraction}`);
}

function complexRepr(real: number, imaginary: number, infinity: string): string {
  const imaginaryText = `${floatRepr(imaginary, infinity, '')}j`;
  if (Object.is(real, 0)) return imaginaryText;
  const plus = imaginaryText.startsWith('-') ? '' : '+';
  return `(${floatRepr(real, infinity, '')}${plus}${imaginaryText})`;
}

const NAMED_ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };
/** Other, separators but the space, unassigned: what `str.isprintable` denies. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}\p{Zs}]/u;

function strRepr(value: string): string {
  const quote = value.includes("'") && !value.includes('"') ? '"' : "'";
  let text = quote;
  for (const character of value) text += escapeCharacter(character, quote);
  return text + quote;
}

function escapeCharacter(character: string, quote: string): string {
  if (character === quote) return `\\${quote}`;
  const named = NAMED_ESCAPES[character];
  if (named !== undefined) return named;
  if (character === ' ' || !UNPRINTABLE.test(character)) return character;
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x100) return `\\x${hex(code, 2)}`;
  return code < 0x10000 ? `\\u${hex(code, 4)}` : `\\U${hex(code, 8)}`;
}

function bytesRepr(value: Uint8Array): string {
  const text = latin1(value);
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  let written = `b${quote}`;
  for (const character of text) {
    const code = character.charCodeAt(0);
    if (character === quote) written += `\\${quote}`;
    else written += NAMED_ESCAPES[character] ?? (code < 0x20 || code >= 0x7f ? `\\x${hex(code, 2)}` : character);
  }
  return written + quote;
}

/** One character a byte. */
function latin1(value: Uint8Array): string {
  return Buffer.from(value).toString('latin1');
}

function hex(code: number, width: number): string {
  return code.toString(16).padStart(width, '0');
}
