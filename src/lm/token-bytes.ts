/** What a token adds to a text, byte by byte: a token may be a part of a character, and a text is not always whole when it is looked at. */

/** The bytes of a token by its text in the vocabulary. */
export type TokenBytes = (token: string) => Uint8Array;

interface Part {
  readonly type?: string;
  readonly decoders?: readonly Part[];
  readonly pattern?: { readonly String?: string };
  readonly content?: string;
  readonly replacement?: string;
  readonly prefix?: string;
  readonly suffix?: string;
}

/** The decoder of a `tokenizer.json`. */
export type TokenDecoder = Part | null | undefined;

const encoder = new TextEncoder();
const BYTE = /^<0x([0-9A-Fa-f]{2})>$/;

/**
 * By the decoder of a `tokenizer.json`. What a decoder does to a whole text alone is left out: taking a space off its beginning, tidying of
 * spaces before marks. Without a decoder tokens are words, a space between them.
 */
export function tokenBytes(decoder: TokenDecoder): TokenBytes {
  if (decoder === null || decoder === undefined) return (token) => encoder.encode(` ${token}`);
  const parts = flatten(decoder);
  if (parts.some(({ type }) => type === 'ByteLevel')) return byteLevel();
  const fallsBack = parts.some(({ type }) => type === 'ByteFallback');
  const replaced = parts.flatMap(replacementOf);
  return (token) => {
    const byte = fallsBack ? BYTE.exec(token)?.[1] : undefined;
    if (byte !== undefined) return Uint8Array.of(Number.parseInt(byte, 16));
    return encoder.encode(replaced.reduce((text, replace) => replace(text), token));
  };
}

function flatten(part: Part): readonly Part[] {
  return part.type === 'Sequence' ? (part.decoders ?? []).flatMap(flatten) : [part];
}

function replacementOf(part: Part): ((text: string) => string)[] {
  switch (part.type) {
    case 'Replace': {
      const from = part.pattern?.String;
      return from === undefined ? [] : [(text) => text.replaceAll(from, part.content ?? '')];
    }
    case 'Metaspace':
      return [(text) => text.replaceAll(part.replacement ?? '▁', ' ')];
    case 'WordPiece': {
      const prefix = part.prefix ?? '##';
      return [(text) => (text.startsWith(prefix) ? text.slice(prefix.length) : ` ${text}`)];
    }
    case 'BPEDecoder': {
      const suffix = part.suffix ?? '</w>';
      return [(text) => (text.endsWith(suffix) ? `${text.slice(0, -suffix.length)} ` : text)];
    }
    default:
      return [];
  }
}

/**
 * Bytes as GPT-2 writes them: printable ones as themselves, the others as the characters from 256 on, in order. Radford et al. 2019,
 * `bytes_to_unicode`.
 */
function byteLevel(): TokenBytes {
  const isPlain = (byte: number): boolean =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xff && byte !== 0xad);
  const byteOf = new Map<number, number>();
  let others = 0;
  for (let byte = 0; byte < 256; byte++) byteOf.set(isPlain(byte) ? byte : 256 + others++, byte);
  return (token) => {
    const bytes = Array.from(token, (character) => byteOf.get(character.codePointAt(0)!));
    // A token of another alphabet stands for itself.
    return bytes.includes(undefined) ? encoder.encode(token) : Uint8Array.from(bytes as number[]);
  };
}
