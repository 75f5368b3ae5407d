/** Operators between two values, as Python has them. */
import { contains } from './filters.js';
import { compare, isEqual, Markup, text, typeName, Unsupported } from './values.js';
import type { Value } from './values.js';

/** No text of a template is longer: each joining may double it. */
const LONGEST = 1 << 24;

/** @throws Unsupported for values that the operator does not take, or not alike */
export function operate(operator: string, left: Value, right: Value): Value {
  switch (operator) {
    case '==':
      return isEqual(left, right);
    case '!=':
      return !isEqual(left, right);
    case 'in':
      return contains(right, left);
    case 'not in':
      return !contains(right, left);
    case '<':
      return compare(left, right) < 0;
    case '>':
      return compare(left, right) > 0;
    case '<=':
      return compare(left, right) <= 0;
    case '>=':
      return compare(left, right) >= 0;
    case '~':
      if (left instanceof Markup || right instanceof Markup) throw new Unsupported('joining an escaped text');
      return joined(text(left), text(right));
    default:
      return arithmetic(operator, left, right);
  }
}

function joined(a: string, b: string): string {
  if (a.length + b.length > LONGEST) throw new Unsupported('a text of such a length');
  return a + b;
}

function arithmetic(operator: string, a: Value, b: Value): Value {
  if (operator === '+') {
    if (typeof a === 'string' && typeof b === 'string') return joined(a, b);
    if (Array.isArray(a) && Array.isArray(b) && a.length + b.length < LONGEST) return [...a, ...b];
  }
  if (typeof a === 'bigint' && typeof b === 'bigint') return wholeArithmetic(operator, a, b);
  const [x, y] = [a, b].map((one) => (typeof one === 'bigint' ? Number(one) : one));
  if (typeof x === 'number' && typeof y === 'number') {
    if (operator === '+') return x + y;
    if (operator === '-') return x - y;
    if (operator === '*') return x * y;
    if (operator === '/' && y !== 0) return x / y;
  }
  throw new Unsupported(`${operator} of ${typeName(a)} and ${typeName(b)}`);
}

function wholeArithmetic(operator: string, a: bigint, b: bigint): Value {
  if (operator === '+') return a + b;
  if (operator === '-') return a - b;
  if (operator === '*') return a * b;
  if (b !== 0n) {
    const rest = a % b;
    // Towards minus infinity, where JavaScript goes towards zero.
    const isBelow = rest !== 0n && rest < 0n !== b < 0n;
    if (operator === '//') return a / b - (isBelow ? 1n : 0n);
    if (operator === '%') return isBelow ? rest + b : rest;
    if (operator === '/') return Number(a) / Number(b);
  }
  throw new Unsupported(`${operator} of whole numbers`);
}
