/**
 * From tokens to text, as the decoders of the tokenizers library in Rust do. The JavaScript library's drop a byte order mark, and have other
 * replacement characters for bytes that are no text.
 */
import { quoted } from './json-file.js';
import { metaspaceFields, textField } from './tokenizer-parts.js';
import type { Part, Refuse } from './tokenizer-parts.js';

/** Texts of tokens → texts that are to be joined. */
export type TokenDecoder = (tokens: readonly string[]) => readonly string[];

/** @param refuse throws for a decoder that is not known */
export function tokenDecoder(part: Part | null, refuse: Refuse): TokenDecoder {
  if (part === null) return (tokens) => [tokens.join(' ')];
  switch (part.type) {
    case 'Sequence': {
      const parts = part['decoders'];
      if (!Array.isArray(parts)) return refuse('decoder: a Sequence has no list of parts');
      const decoders = (parts as Part[]).map((one) => tokenDecoder(one, refuse));
      return (tokens) => decoders.reduce((texts, decode) => decode(texts), tokens);
    }
    case 'ByteLevel':
      return (tokens) => [bytesAsText(Uint8Array.from(tokens.flatMap(levelBytes)))];
    case 'ByteFallback':
      return byteFallback;
    case 'Fuse':
      return (tokens) => [tokens.join('')];
    case 'Strip': {
      const content = textField(part, 'content', '', refuse);
      const [start, stop] = [countField(part, 'start', refuse), countField(part, 'stop', refuse)];
      return (tokens) => tokens.map((token) => stripped(token, content, start, stop));
    }
    case 'Replace': {
      const pattern = (part['pattern'] ?? {}) as { readonly String?: unknown };
      if (typeof pattern.String !== 'string')
        return refuse('decoder: a Replace of anything but a text is not supported');
      const [text, content] = [pattern.String, textField(part, 'content', '', refuse)];
      return (tokens) => tokens.map((token) => token.split(text).join(content));
    }
    case 'Metaspace':
      return metaspace(part, refuse);
    case 'WordPiece': {
      const prefix = textField(part, 'prefix', '##', refuse);
      const cleanup = part['cleanup'] !== false;
      return (tokens) => tokens.map((token, i) => wordPiece(token, i === 0, prefix, cleanup));
    }
    default:
      return refuse(`decoder ${quoted(part.type)} is not supported`);
  }
}

/** Byte → the character that stands for it in byte-level vocabularies: itself where it can be seen, else one from U+0100 on. */
const LEVEL_BYTES: ReadonlyMap<string, number> = (() => {
  const isSeen = (byte: number): boolean =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  let next = 0x100;
  return new Map(
    Array.from({ length: 256 }, (_, byte) => [String.fromCodePoint(isSeen(byte) ? byte : next++), byte] as const),
  );
})();

function countField(part: Part, name: string, refuse: Refuse): number {
  const value = part[name] ?? 0;
  return typeof value === 'number' ? value : refuse(`${part.type}: ${name} is ${quoted(value)}, not a count`);
}

const encoder = new TextEncoder();
/** Keeps a byte order mark, as a text may begin with one. */
const lossy = new TextDecoder('utf-8', { ignoreBOM: true });
const strict = new TextDecoder('utf-8', { ignoreBOM: true, fatal: true });

const bytesAsText = (bytes: Uint8Array): string => lossy.decode(bytes);

/** Bytes that a token spells; its own where it spells none, as an added token may. */
export function levelBytes(token: string): number[] {
  const bytes = Array.from(token, (character) => LEVEL_BYTES.get(character));
  return bytes.includes(undefined) ? [...encoder.encode(token)] : (bytes as number[]);
}

function byteFallback(tokens: readonly string[]): string[] {
  const texts: string[] = [];
  let bytes: number[] = [];
  const flush = (): void => {
    if (bytes.length > 0) texts.push(strictly(bytes));
    bytes = [];
  };
  for (const token of tokens) {
    const [, byte] = /^<0x([0-9A-Fa-f]{2})>$/.exec(token) ?? [];
    if (byte === undefined) {
      flush();
      texts.push(token);
    } else bytes.push(Number.parseInt(byte, 16));
  }
  flush();
  return texts;
}

/** A run of bytes that is no text has a replacement character for each of them. */
function strictly(bytes: readonly number[]): string {
  try {
    return strict.decode(Uint8Array.from(bytes));
  } catch {
    return '\uFFFD'.repeat(bytes.length);
  }
}

function stripped(token: string, content: string, start: number, stop: number): string {
  const characters = [...token];
  let first = 0;
  while (first < start && characters[first] === content) first++;
  let end = characters.length;
  while (characters.length - end < stop && end > first && characters[end - 1] === content) end--;
  return characters.slice(first, end).join('');
}

/** Of the first token every mark goes, unless the pre-tokenizer never puts one before a text. */
function metaspace(part: Part, refuse: Refuse): TokenDecoder {
  const { mark, scheme } = metaspaceFields(part, refuse);
  return (tokens) => tokens.map((token, i) => token.split(mark).join(i === 0 && scheme !== 'never' ? '' : ' '));
}

const CLEANED = [
  [' .', '.'],
  [' ?', '?'],
  [' !', '!'],
  [' ,', ','],
  [" ' ", "'"],
  [" n't", "n't"],
  [" 'm", "'m"],
  [' do not', " don't"],
  [" 's", "'s"],
  [" 've", "'ve"],
  [" 're", "'re"],
] as const;

function wordPiece(token: string, isFirst: boolean, prefix: string, cleanup: boolean): string {
  const text = isFirst ? token : token.startsWith(prefix) ? token.slice(prefix.length) : ` ${token}`;
  return cleanup ? CLEANED.reduce((all, [from, to]) => all.split(from).join(to), text) : text;
}
