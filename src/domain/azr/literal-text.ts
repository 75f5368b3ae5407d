/** The inside of Python string and bytes literals: escapes to characters. */

const SIMPLE_ESCAPES: Readonly<Record<string, string>> = {
  '\n': '',
  '\\': '\\',
  "'": "'",
  '"': '"',
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};
const HEX_WIDTHS: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/**
 * The characters of a string literal's body. `\x`, octal, `\u` and `\U` escapes are decoded; an unknown escape keeps its
 * backslash, as in Python.
 * @throws {SyntaxError} for a cut escape, a code point past U+10FFFF, a surrogate (text that is not well-formed) or `\N{…}`
 * (its names are not on the host).
 */
export function decodeText(body: string): string {
  return decode(body, (code) => {
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
      throw new SyntaxError('an escape that is not a character');
    return String.fromCodePoint(code);
  });
}

/**
 * The bytes of a bytes literal's body, whose characters must be ASCII; `\u`, `\U` and `\N` are no escapes there.
 * @throws {SyntaxError} for a character past ASCII or a cut `\x`.
 */
export function decodeBytes(body: string): Uint8Array {
  assertAscii(body);
  return toBytes(decode(body, (code) => String.fromCharCode(code & 0xff), true));
}

/** The bytes of a raw bytes literal. @throws {SyntaxError} for a character past ASCII. */
export function rawBytes(body: string): Uint8Array {
  assertAscii(body);
  return toBytes(body);
}

function decode(body: string, character: (code: number) => string, bytes = false): string {
  const parts: string[] = [];
  let position = 0;
  while (position < body.length) {
    const backslash = body.indexOf('\\', position);
    if (backslash === -1) break;
    parts.push(body.slice(position, backslash));
    const letter = body[backslash + 1] ?? '';
    position = backslash + 2;
    const simple = SIMPLE_ESCAPES[letter];
    const width = bytes && letter !== 'x' ? undefined : HEX_WIDTHS[letter];
    if (simple !== undefined) {
      parts.push(simple);
    } else if (width !== undefined) {
      const digits = body.slice(position, position + width);
      if (digits.length < width || !/^[0-9a-fA-F]+$/.test(digits)) throw new SyntaxError(`a cut \\${letter} escape`);
      parts.push(character(parseInt(digits, 16)));
      position += width;
    } else if (letter >= '0' && letter <= '7') {
      const octal = /^[0-7]{1,3}/.exec(body.slice(backslash + 1, backslash + 4))?.[0] ?? letter;
      parts.push(character(parseInt(octal, 8)));
      position = backslash + 1 + octal.length;
    } else if (letter === 'N' && !bytes) {
      throw new SyntaxError('\\N{…} escapes are not supported');
    } else {
      parts.push(`\\${letter}`);
    }
  }
  parts.push(body.slice(position));
  return parts.join('');
}

function assertAscii(body: string): void {
  for (let position = 0; position < body.length; position++) {
    if (body.charCodeAt(position) > 0x7f) throw new SyntaxError('bytes can only hold ASCII characters');
  }
}

function toBytes(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text, 'latin1'));
}
