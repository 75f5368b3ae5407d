/** What a token adds to a text, byte by byte: a token may be a part of a character, and a text is not always whole when it is looked at. */
import { levelBytes } from './token-decoder.js';
import type { Part } from './tokenizer-parts.js';

/** The bytes of a token by its text in the vocabulary. */
export type TokenBytes = (token: string) => Uint8Array;

const encoder = new TextEncoder();
const BYTE = /^<0x([0-9A-Fa-f]{2})>$/;

/**
 * By the decoder of a `tokenizer.json`. What a decoder does to a whole text alone is left out: taking a space off its beginning, tidying of
 * spaces before marks. Without a decoder tokens are words, a space between them.
 */
export function tokenBytes(decoder: Part | null): TokenBytes {
  if (decoder === null) return (token) => encoder.encode(` ${token}`);
  const parts = flatten(decoder);
  if (parts.some(({ type }) => type === 'ByteLevel')) return (token) => Uint8Array.from(levelBytes(token));
  const fallsBack = parts.some(({ type }) => type === 'ByteFallback');
  const replaced = parts.flatMap(replacementOf);
  return (token) => {
    const byte = fallsBack ? BYTE.exec(token)?.[1] : undefined;
    if (byte !== undefined) return Uint8Array.of(Number.parseInt(byte, 16));
    return encoder.encode(replaced.reduce((text, replace) => replace(text), token));
  };
}

function flatten(part: Part): readonly Part[] {
  return part.type === 'Sequence' ? ((part['decoders'] ?? []) as readonly Part[]).flatMap(flatten) : [part];
}

/** The parts have been checked by `tokenDecoder`. */
function replacementOf(part: Part): ((text: string) => string)[] {
  const field = (name: string, fallback: string): string => (part[name] ?? fallback) as string;
  switch (part.type) {
    case 'Replace': {
      const { String: from } = part['pattern'] as { readonly String: string };
      return [(text) => text.split(from).join(field('content', ''))];
    }
    case 'Metaspace':
      return [(text) => text.replaceAll(field('replacement', '▁'), ' ')];
    case 'WordPiece': {
      const prefix = field('prefix', '##');
      return [(text) => (text.startsWith(prefix) ? text.slice(prefix.length) : ` ${text}`)];
    }
    default:
      return [];
  }
}
