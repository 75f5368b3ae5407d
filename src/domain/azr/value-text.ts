/** Python values as text: CPython's `repr`, and source that evaluates to them. */
import { latin1, MAX_DECIMAL_DIGITS, type PythonValue } from './value.js';

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
  const parts: string[] = [];
  writeParts(value, spelling, parts);
  return parts.join('');
}

function writeParts(value: PythonValue, spelling: Spelling, parts: string[]): void {
  const list = (items: readonly PythonValue[]): void => {
    items.forEach((item, index) => {
      if (index > 0) parts.push(', ');
      writeParts(item, spelling, parts);
    });
  };
  switch (value.type) {
    case 'none':
      parts.push('None');
      break;
    case 'ellipsis':
      parts.push(spelling.ellipsis);
      break;
    case 'bool':
      parts.push(value.value ? 'True' : 'False');
      break;
    case 'int':
      parts.push(spelling.integer(value.value));
      break;
    case 'float':
      parts.push(floatRepr(value.value, spelling.infinity, '.0'));
      break;
    case 'complex':
      parts.push(complexRepr(value.real, value.imaginary, spelling.infinity));
      break;
    case 'str':
      parts.push(strRepr(value.value));
      break;
    case 'bytes':
      parts.push(bytesRepr(value.value));
      break;
    case 'tuple':
      parts.push('(');
      list(value.items);
      parts.push(value.items.length === 1 ? ',)' : ')');
      break;
    case 'list':
      parts.push('[');
      list(value.items);
      parts.push(']');
      break;
    case 'set':
      if (value.items.length === 0) {
        parts.push('set()');
        break;
      }
      parts.push('{');
      list(value.items);
      parts.push('}');
      break;
    case 'dict':
      parts.push('{');
      value.entries.forEach(([key, item], index) => {
        if (index > 0) parts.push(', ');
        writeParts(key, spelling, parts);
        parts.push(': ');
        writeParts(item, spelling, parts);
      });
      parts.push('}');
  }
}

/** Hexadecimal integers have no limit in CPython; this many digits are no more than 4300 decimal ones. */
const LONG_HEXADECIMAL = 3500;
const LONGEST_REPR = 10n ** BigInt(MAX_DECIMAL_DIGITS);

function intSource(value: bigint): string {
  const magnitude = (value < 0n ? -value : value).toString(16);
  return magnitude.length <= LONG_HEXADECIMAL ? intRepr(value) : `${value < 0n ? '-' : ''}0x${magnitude}`;
}

function intRepr(value: bigint): string {
  if (value >= LONGEST_REPR || value <= -LONGEST_REPR)
    throw new RangeError(`an integer of more than ${MAX_DECIMAL_DIGITS} digits has no repr in Python`);
  return value.toString();
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
  const body = value.replaceAll(/['"\\]|[^ -~]/gu, (character) => escapeCharacter(character, quote));
  return quote + body + quote;
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
  const body = text.replaceAll(/['"\\]|[^ -~]/g, (character) => {
    if (character === quote) return `\\${quote}`;
    const code = character.charCodeAt(0);
    return NAMED_ESCAPES[character] ?? (code < 0x20 || code >= 0x7f ? `\\x${hex(code, 2)}` : character);
  });
  return `b${quote}${body}${quote}`;
}

function hex(code: number, width: number): string {
  return code.toString(16).padStart(width, '0');
}
