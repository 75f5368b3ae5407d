/** The recursive-descent reader of Python literals behind `literal.ts`. */
import { LiteralCursor, LiteralError } from './literal-cursor.js';
import { decodeNumber, negate, NUMBER, toReal } from './literal-number.js';
import { decodeBytes, decodeText, rawBytes } from './literal-text.js';
import { isHashable, lastOfEachKey, unique, type PythonValue } from './value.js';

/** The arguments of a call, `f(1, 'a', k=[2])`, all of them literals. */
export interface Arguments {
  readonly positional: readonly PythonValue[];
  readonly keywords: readonly (readonly [string, PythonValue])[];
}

/**
 * A value and how it was written: a sign may stand before a plain number only, and a sum is a signed real number and a plain
 * imaginary one.
 */
interface Operand {
  readonly value: PythonValue;
  readonly form: 'number' | 'signed' | 'other';
}

/** Deepest nesting of brackets: CPython's own bound. */
const MAX_LITERAL_DEPTH = 200;
const STRING_START = /(?:[rR][bB]?|[bB][rR]?|[uU])?(?:'''|"""|'|")/y;
const NAME = /[\p{XID_Start}_]\p{XID_Continue}*/uy;
const KEYWORDS = new Set(
  (
    'False None True and as assert async await break class continue def del elif else except finally for from global if ' +
    'import in is lambda nonlocal not or pass raise return try while with yield'
  ).split(' '),
);

/** Reads one text, once. */
export class LiteralReader extends LiteralCursor {
  readExpression(): PythonValue {
    this.match(/[ \t]*/y);
    this.beginLine();
    const first = this.#operand().value;
    const value = this.peek(',') ? this.#tuple(first, () => this.atEnd() || this.peek('\n')) : first;
    this.skipBlanks();
    if (this.text[this.position] === '\n') {
      this.position += 1;
      this.beginLine();
    }
    if (!this.atEnd()) this.fail('unexpected text');
    return value;
  }

  readArguments(): Arguments {
    const positional: PythonValue[] = [];
    const keywords = new Map<string, PythonValue>();
    this.depth = 1;
    while ((this.skipBlanks(), !this.atEnd())) {
      const keyword = this.#keyword();
      if (keyword !== null) {
        if (KEYWORDS.has(keyword) || keywords.has(keyword)) this.fail(`bad keyword ${keyword}`);
        keywords.set(keyword, this.#operand().value);
      } else {
        if (keywords.size > 0) this.fail('positional argument after a keyword');
        positional.push(this.#operand().value);
      }
      if ((this.skipBlanks(), this.atEnd())) break;
      this.expect(',');
    }
    return { positional, keywords: [...keywords] };
  }

  /** The name before `=`, which is consumed with it; null when none stands here. */
  #keyword(): string | null {
    const start = this.position;
    const name = this.match(NAME);
    if (name !== undefined && this.take('=') && this.text[this.position] !== '=') return name.normalize('NFKC');
    this.position = start;
    return null;
  }

  /** signed number | signed real ± imaginary | any other value */
  #operand(): Operand {
    const left = this.#signed();
    const sign = this.#takeSign();
    if (sign === null) return left;
    const right = this.#atom();
    const real = left.form === 'other' ? null : toReal(left.value);
    if (real === null || right.form !== 'number' || right.value.type !== 'complex')
      return this.fail('not a complex number');
    if (!Number.isFinite(real) && left.value.type === 'int') this.fail('integer too large for a complex number');
    const imaginary = right.value.imaginary;
    // Python converts the real part to a complex number first, hence the sums with zero: -0.0 + 1j is 0+1j.
    const value: PythonValue =
      sign === '+'
        ? { type: 'complex', real: real + 0, imaginary: 0 + imaginary }
        : { type: 'complex', real: real - 0, imaginary: 0 - imaginary };
    return { value, form: 'other' };
  }

  #signed(): Operand {
    const sign = this.#takeSign();
    const operand = this.#atom();
    if (sign === null) return operand;
    if (operand.form !== 'number') this.fail('a sign before something that is not a number');
    return { value: sign === '-' ? negate(operand.value) : operand.value, form: 'signed' };
  }

  #takeSign(): '+' | '-' | null {
    if (this.take('+')) return '+';
    return this.take('-') ? '-' : null;
  }

  #atom(): Operand {
    this.skipBlanks();
    const start = this.position;
    const number = this.match(NUMBER);
    if (number !== undefined) {
      if (this.looksLike(/[\p{XID_Continue}.]/uy)) this.fail('a malformed number');
      return { value: this.#located(start, () => decodeNumber(number)), form: 'number' };
    }
    if (this.looksLike(STRING_START)) return other(this.#strings());
    if (this.text.startsWith('...', start)) {
      this.position += 3;
      return other({ type: 'ellipsis' });
    }
    const name = this.match(NAME);
    if (name !== undefined) return other(this.#named(name, start));
    for (const bracket of ['(', '[', '{'] as const) if (this.peek(bracket)) return this.#bracketed(bracket);
    return this.fail(this.atEnd() ? 'unexpected end' : 'not a literal');
  }

  #named(name: string, start: number): PythonValue {
    switch (name) {
      case 'None':
        return { type: 'none' };
      case 'True':
      case 'False':
        return { type: 'bool', value: name === 'True' };
      case 'set':
        if (this.take('(')) {
          this.depth += 1;
          this.expect(')');
          this.depth -= 1;
          return { type: 'set', items: [] };
        }
    }
    throw new LiteralError(`the name ${name} is not a literal`, start);
  }

  #bracketed(open: '(' | '[' | '{'): Operand {
    this.expect(open);
    this.depth += 1;
    if (this.depth > MAX_LITERAL_DEPTH) this.fail('nested too deeply');
    let operand: Operand;
    if (open === '[') operand = other({ type: 'list', items: this.#items(']') });
    else if (open === '{') operand = other(this.#braces());
    else operand = this.#parentheses();
    // The blanks after the last bracket are those outside it.
    this.depth -= 1;
    this.position += 1;
    return operand;
  }

  /** Up to the closing bracket, which is left for `#bracketed`. */
  #parentheses(): Operand {
    if (this.peek(')')) return other({ type: 'tuple', items: [] });
    const first = this.#operand();
    if (this.peek(',')) return other(this.#tuple(first.value, () => this.peek(')')));
    if (!this.peek(')')) this.fail("')' or ',' expected");
    return first;
  }

  #braces(): PythonValue {
    if (this.peek('}')) return { type: 'dict', entries: [] };
    const first = this.#hashable();
    if (!this.peek(':')) {
      return { type: 'set', items: unique(this.#rest([first], '}', () => this.#hashable())) };
    }
    const entry = (key: PythonValue): [PythonValue, PythonValue] => {
      this.expect(':');
      return [key, this.#operand().value];
    };
    const entries = this.#rest([entry(first)], '}', () => entry(this.#hashable()));
    return { type: 'dict', entries: lastOfEachKey(entries) };
  }

  #items(close: string): PythonValue[] {
    if (this.peek(close)) return [];
    return this.#rest([this.#operand().value], close, () => this.#operand().value);
  }

  /** Adds to `items` what follows the first: `, item` any number of times, and perhaps a last comma; up to `close`. */
  #rest<Item>(items: Item[], close: string, read: () => Item): Item[] {
    while (this.take(',')) {
      if (this.peek(close)) break;
      items.push(read());
    }
    if (!this.peek(close)) this.fail(`'${close}' or ',' expected`);
    return items;
  }

  #tuple(first: PythonValue, ended: () => boolean): PythonValue {
    const items = [first];
    while (this.take(',')) {
      this.skipBlanks();
      if (ended()) break;
      items.push(this.#operand().value);
    }
    this.skipBlanks();
    if (!ended()) this.fail("',' expected");
    return { type: 'tuple', items };
  }

  #hashable(): PythonValue {
    const { value } = this.#operand();
    if (!isHashable(value)) this.fail(`a ${value.type} cannot be a key`);
    return value;
  }

  /** One string or bytes literal, or several one after the other, which are joined. */
  #strings(): PythonValue {
    const first = this.#string();
    const parts = [first.value];
    while ((this.skipBlanks(), this.looksLike(STRING_START))) {
      const next = this.#string();
      if (next.type !== first.type) this.fail('bytes joined to a string');
      parts.push(next.value);
    }
    if (parts.length === 1) return first;
    if (first.type === 'str') return { type: 'str', value: parts.join('') };
    return { type: 'bytes', value: Uint8Array.from(Buffer.concat(parts.filter((part) => typeof part !== 'string'))) };
  }

  #string(): PythonValue & { type: 'str' | 'bytes' } {
    const start = this.position;
    const opening = this.match(STRING_START) ?? '';
    const prefix = /^[a-zA-Z]*/.exec(opening)?.[0].toLowerCase() ?? '';
    const quote = opening.slice(prefix.length);
    const bodyStart = this.position;
    while (!this.text.startsWith(quote, this.position)) {
      const character = this.text[this.position];
      if (character === undefined || (character === '\n' && quote.length === 1)) {
        throw new LiteralError('a string that does not end', start);
      }
      this.position += character === '\\' ? 2 : 1;
    }
    const body = this.text.slice(bodyStart, this.position);
    this.position += quote.length;
    return this.#located(start, () => {
      if (prefix.includes('b'))
        return { type: 'bytes', value: prefix.includes('r') ? rawBytes(body) : decodeBytes(body) };
      return { type: 'str', value: prefix.includes('r') ? body : decodeText(body) };
    });
  }

  /** What `decode` gives; what it holds against a token is reported at the token's start. */
  #located<Result>(start: number, decode: () => Result): Result {
    try {
      return decode();
    } catch (error) {
      if (error instanceof SyntaxError) throw new LiteralError(error.message, start);
      throw error;
    }
  }
}

function other(value: PythonValue): Operand {
  return { value, form: 'other' };
}
