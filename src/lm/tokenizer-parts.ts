/**
 * Normalizers and pre-tokenizers of a `tokenizer.json`, as parts that the JavaScript library computes as the tokenizers library in Rust does.
 * It differs in what it takes for white space and for a digit, leaves how pieces are split out of account, and spells replacements with `$`;
 * each such part is written with others that are alike in both. What has no such spelling is refused.
 */
import { quoted } from './json-file.js';

export interface Part {
  readonly type: string;
  readonly [field: string]: unknown;
}
export type Refuse = (what: string) => never;

/** A field that is a text. @param refuse throws where it is another thing */
export function textField(part: Part, name: string, fallback: string, refuse: Refuse): string {
  const value = part[name] ?? fallback;
  return typeof value === 'string' ? value : refuse(`${part.type}: ${name} is ${quoted(value)}, not a text`);
}

/** What a Metaspace writes for a space, and where it puts one that is not there. */
export function metaspaceFields(part: Part, refuse: Refuse): { readonly mark: string; readonly scheme: string } {
  const scheme = part['add_prefix_space'] === false ? 'never' : 'always';
  return {
    mark: textField(part, 'replacement', '▁', refuse),
    scheme: textField(part, 'prepend_scheme', scheme, refuse),
  };
}

/** What Rust's `regex` takes for `\w`. */
const WORD = String.raw`\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200C\u200D`;
const PUNCTUATION = String.raw`\p{P}\u0021-\u002F\u003A-\u0040\u005B-\u0060\u007B-\u007E`;
/** GPT-2's, of byte-level parts. */
const GPT2 = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;

const sequence = (pretokenizers: readonly Part[]): Part => ({ type: 'Sequence', pretokenizers });
const isolated = (pattern: string): Part => ({
  type: 'Split',
  pattern: { Regex: pattern },
  behavior: 'Isolated',
  invert: false,
});
/** Every match of the pattern is a piece, and nothing else is. */
const matchesOf = (pattern: string): Part => ({
  type: 'Split',
  pattern: { Regex: pattern },
  behavior: 'Removed',
  invert: true,
});

/** @param refuse throws for what is not alike in both libraries */
export function normalizerPart(part: Part, refuse: Refuse): Part {
  switch (part.type) {
    case 'Sequence':
      return { ...part, normalizers: partsOf(part['normalizers'], refuse).map((one) => normalizerPart(one, refuse)) };
    case 'NFC':
    case 'NFD':
    case 'NFKC':
    case 'NFKD':
    case 'Prepend':
      return part;
    case 'Replace':
      return { ...part, content: textField(part, 'content', '', refuse).replaceAll('$', '$$$$') };
    case 'Strip': {
      const ends = [
        ...(part['strip_left'] === true ? [String.raw`\A\s+`] : []),
        ...(part['strip_right'] === true ? [String.raw`\s+\z`] : []),
      ];
      return {
        type: 'Sequence',
        normalizers: ends.map((pattern) => ({ type: 'Replace', pattern: { Regex: pattern }, content: '' })),
      };
    }
    default:
      return refuse(`normalizer ${quoted(part.type)} is not supported`);
  }
}

/** @param refuse throws for what is not alike in both libraries */
export function preTokenizerPart(part: Part, refuse: Refuse): Part {
  switch (part.type) {
    case 'Sequence':
      return sequence(partsOf(part['pretokenizers'], refuse).map((one) => preTokenizerPart(one, refuse)));
    case 'ByteLevel':
      return byteLevel(part);
    case 'Metaspace':
      return metaspace(part, refuse);
    case 'Split':
      return splitPart(part, refuse);
    case 'Digits':
      return isolated(part['individual_digits'] === true ? String.raw`\p{N}` : String.raw`\p{N}+`);
    case 'Punctuation':
      return splitPart({ ...isolated(`[${PUNCTUATION}]`), behavior: part['behavior'] ?? 'Isolated' }, refuse);
    case 'Whitespace':
      return matchesOf(String.raw`[${WORD}]+|[^${WORD}\s]+`);
    case 'WhitespaceSplit':
      return matchesOf(String.raw`\S+`);
    case 'BertPreTokenizer':
      return sequence([matchesOf(String.raw`\S+`), isolated(`[${PUNCTUATION}]`)]);
    case 'CharDelimiterSplit':
      return matchesOf(`[^${escaped(textField(part, 'delimiter', ' ', refuse))}]+`);
    case 'FixedLength':
      return isolated(String.raw`[\s\S]{1,${Number(part['length'])}}`);
    default:
      return refuse(`pre_tokenizer ${quoted(part.type)} is not supported`);
  }
}

function partsOf(list: unknown, refuse: Refuse): readonly Part[] {
  if (Array.isArray(list) && list.every((one: Part | null) => typeof one?.type === 'string')) return list as Part[];
  return refuse('a Sequence has no list of parts');
}

/** The library's own pattern takes JavaScript's white space. */
function byteLevel(part: Part): Part {
  if (part['use_regex'] === false) return part;
  const bytes = { ...part, use_regex: false, add_prefix_space: false };
  if (part['add_prefix_space'] !== true) return sequence([isolated(GPT2), bytes]);
  const space = { type: 'Metaspace', replacement: ' ', prepend_scheme: 'always' };
  return sequence([space, isolated(GPT2), bytes]);
}

function metaspace(part: Part, refuse: Refuse): Part {
  const { mark, scheme } = metaspaceFields(part, refuse);
  const spaces = { type: 'Metaspace', replacement: mark, prepend_scheme: scheme };
  return part['split'] === false ? spaces : sequence([spaces, isolated(withNext(escaped(mark)))]);
}

const any = (pattern: string): string => String.raw`(?:(?!${pattern})[\s\S])*`;
const withNext = (pattern: string): string => `(?:${pattern})${any(pattern)}`;

function splitPart(part: Part, refuse: Refuse): Part {
  const { Regex: expression, String: text } = part['pattern'] as { readonly Regex?: string; readonly String?: string };
  const pattern = expression ?? escaped(text!);
  const invert = part['invert'] === true;
  // In older files a name in capitals.
  const behavior = textField(part, 'behavior', 'Isolated', refuse).toLowerCase();
  switch (invert ? `${behavior}, inverted` : behavior) {
    case 'isolated':
    case 'isolated, inverted':
      return isolated(pattern);
    case 'removed, inverted':
      return matchesOf(pattern);
    case 'removed':
      return matchesOf(String.raw`(?:(?!${pattern})[\s\S])+`);
    case 'mergedwithprevious':
      return isolated(`${any(pattern)}(?:${pattern})`);
    case 'mergedwithnext':
      return isolated(withNext(pattern));
    case 'contiguous':
      return isolated(`(?:${pattern})+`);
    default:
      return refuse(`a Split of behavior ${quoted(part['behavior'])}${invert ? ', inverted,' : ''} is not supported`);
  }
}

/** A text as a pattern that matches it. */
function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/-]/gu, String.raw`\$&`);
}

/** Whether a space is put before the first piece of a text alone. */
function marksFirst(part: Part | null): boolean {
  if (part === null) return false;
  const parts = part['pretokenizers'];
  if (part.type === 'Sequence' && Array.isArray(parts)) return (parts as Part[]).some(marksFirst);
  return part.type === 'Metaspace' && part['prepend_scheme'] === 'first';
}

const strips = (part: Part): boolean =>
  part.type === 'Strip' || ((part['normalizers'] ?? []) as readonly Part[]).some(strips);

/** What the first piece is, where a normalizer takes off the beginning of a text, is another question in each library. */
export function checkTogether(normalizer: Part | null, preTokenizer: Part | null, refuse: Refuse): void {
  if (normalizer && strips(normalizer) && marksFirst(preTokenizer))
    refuse('normalizer "Strip" with a pre_tokenizer that marks the first piece is not supported');
}

/** A token that a text is cut at although it is no control token. */
interface VisibleToken {
  readonly content: string;
  readonly lstrip?: boolean | undefined;
  readonly rstrip?: boolean | undefined;
  readonly normalized?: boolean | undefined;
}

/** @param normalize what the normalizer makes of a text; null where there is none */
export function checkVisibleTokens(
  tokens: readonly VisibleToken[],
  normalize: ((text: string) => string) | null,
  preTokenizer: Part | null,
  refuse: Refuse,
): void {
  for (const { content, lstrip, rstrip, normalized = true } of tokens) {
    const name = `added token ${quoted(content)}`;
    if (lstrip === true || rstrip === true)
      refuse(`${name} takes white space beside it, but is not special: not supported`);
    if (!normalized || normalize === null) continue;
    if (normalize(content) !== content || marksFirst(preTokenizer))
      refuse(`${name} is looked for in normalised texts: not supported with this normalizer and pre_tokenizer`);
  }
}

const texts = (value: unknown): value is string => typeof value === 'string' && value !== '';

/** Settings of a model that the library leaves out of account. */
export function checkModelSettings(model: Readonly<Record<string, unknown>>, refuse: Refuse): void {
  if (typeof model['dropout'] === 'number' && model['dropout'] > 0)
    refuse(`model.dropout ${model['dropout']}: the same text would have other tokens each time`);
  const isWords = model['type'] === 'WordPiece';
  if (!isWords && texts(model['continuing_subword_prefix'])) refuse('model.continuing_subword_prefix is not supported');
  if (texts(model['end_of_word_suffix'])) refuse('model.end_of_word_suffix is not supported');
  if (model['type'] === 'Unigram' && model['byte_fallback'] === true)
    refuse('model.byte_fallback of a Unigram model is not supported');
}
