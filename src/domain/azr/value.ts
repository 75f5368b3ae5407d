/** Python values as data on the host: their types, and Python's `==` between them. Nothing here runs a program. */

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

/**
 * A text that two values share exactly when Python holds them equal (values that hold nan apart: see `valuesEqual`). Built from its
 * parts at once, so that nesting costs no copies of what is nested; integers are hexadecimal, which takes time linear in their size.
 */
export function equalityKey(value: PythonValue): string {
  const parts: string[] = [];
  writeKey(value, parts);
  return parts.join('');
}

function writeKey(value: PythonValue, parts: string[]): void {
  switch (value.type) {
    case 'none':
      parts.push('None');
      break;
    case 'ellipsis':
      parts.push('...');
      break;
    case 'bool':
      parts.push(value.value ? '1' : '0');
      break;
    case 'int':
      parts.push(value.value.toString(16));
      break;
    case 'float':
      parts.push(numberKey(value.value));
      break;
    case 'complex':
      parts.push(numberKey(value.real));
      if (value.imaginary !== 0) parts.push('+', numberKey(value.imaginary), 'j');
      break;
    case 'str':
      parts.push(JSON.stringify(value.value));
      break;
    case 'bytes':
      parts.push('b', JSON.stringify(latin1(value.value)));
      break;
    case 'tuple':
    case 'list':
      parts.push(value.type === 'tuple' ? '(' : '[');
      for (const item of value.items) {
        writeKey(item, parts);
        parts.push(',');
      }
      parts.push(value.type === 'tuple' ? ')' : ']');
      break;
    case 'set':
      parts.push('set{', value.items.map(equalityKey).sort().join(','), '}');
      break;
    case 'dict':
      parts.push('{');
      for (const [key, item] of value.entries
        .map(([own, held]) => [equalityKey(own), held] as const)
        .sort(([a], [b]) => (a < b ? -1 : 1))) {
        parts.push(key, ':');
        writeKey(item, parts);
        parts.push(',');
      }
      parts.push('}');
  }
}

/** A whole float shares its key with the int of the same value, however large: 1e20 is 100000000000000000000. */
function numberKey(value: number): string {
  return Number.isInteger(value) ? BigInt(value).toString(16) : String(value);
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

/** One character a byte. */
export function latin1(value: Uint8Array): string {
  return Buffer.from(value).toString('latin1');
}
