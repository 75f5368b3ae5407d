/** Number tokens of Python. */
import { MAX_DECIMAL_DIGITS, type PythonValue } from './value.js';

const DIGITS = '[0-9](?:_?[0-9])*';
/** The longest number token, leading zeros included; sticky. */
export const NUMBER = new RegExp(
  `0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+|(?:(?:${DIGITS})?\\.${DIGITS}|${DIGITS}\\.?)(?:[eE][+-]?${DIGITS})?[jJ]?`,
  'y',
);

/** Shared, as texts may hold hundreds of thousands of them. */
const DIGIT_VALUES = Array.from({ length: 10 }, (_, digit): PythonValue => ({ type: 'int', value: BigInt(digit) }));

/**
 * The value of a token that `NUMBER` matched.
 * @throws {SyntaxError} for leading zeros or too many digits
 */
export function decodeNumber(token: string): PythonValue {
  const digit = token.length === 1 ? DIGIT_VALUES[Number(token)] : undefined;
  if (digit !== undefined) return digit;
  const text = token.replaceAll('_', '');
  if (/^0[xob]/i.test(text)) return { type: 'int', value: BigInt(text.toLowerCase()) };
  if (/j$/i.test(text)) return { type: 'complex', real: 0, imaginary: Number(text.slice(0, -1)) };
  if (/[.e]/i.test(text)) return { type: 'float', value: Number(text) };
  if (/^0+$/.test(text)) return { type: 'int', value: 0n };
  if (text.startsWith('0')) throw new SyntaxError('an integer with leading zeros');
  if (text.length > MAX_DECIMAL_DIGITS) throw new SyntaxError('an integer of too many digits');
  return { type: 'int', value: BigInt(text) };
}

/** A number with its sign turned. */
export function negate(value: PythonValue): PythonValue {
  if (value.type === 'int') return { type: 'int', value: -value.value };
  if (value.type === 'float') return { type: 'float', value: -value.value };
  if (value.type === 'complex') return { type: 'complex', real: -value.real, imaginary: -value.imaginary };
  return value;
}

/** An int or float as a float; null for other values. */
export function toReal(value: PythonValue): number | null {
  if (value.type === 'int') return Number(value.value);
  return value.type === 'float' ? value.value : null;
}
