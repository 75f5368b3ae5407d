/**
 * How texts are cut before byte pairs are merged. A GGUF file names its way of cutting; what the names stand for is in llama.cpp
 * (src/llama-vocab.cpp), here spelt as the `tokenizer.json` of the models that have it.
 */

export interface PreTokenizer {
  readonly normalizer: Readonly<Record<string, unknown>> | null;
  readonly steps: readonly Readonly<Record<string, unknown>>[];
  /** Whether a word that is a token by itself is one whatever the merges say. */
  readonly ignoreMerges: boolean;
  /** Whether a text begins with the begin token where the file does not say. */
  readonly begins: boolean;
}

const cut = (pattern: string) => ({
  type: 'Split',
  pattern: { Regex: pattern },
  behavior: 'Isolated',
  invert: false,
});

/** Bytes as letters; what is cut has been cut before. */
export const BYTE_LEVEL = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false };

const CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const SPACES = '\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';
/** ByteLevel's own, given as a pattern: its built-in one in transformers.js takes a byte order mark for white space. */
const GPT2_WORDS = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
/** Words, numbers of so many digits, signs with the line breaks behind them, and spaces. */
const words = (digits: string): string =>
  `${CONTRACTIONS}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${SPACES}`;

const UPPER = '[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]';
const LOWER = '[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]';
/** The same with words cut where small letters are followed by capital ones. */
const casedWords = (digits: string, ending: string): string =>
  `[^\\r\\n\\p{L}\\p{N}]?${UPPER}*${LOWER}+${ending}|[^\\r\\n\\p{L}\\p{N}]?${UPPER}+${LOWER}*${ending}|\\p{N}${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|${SPACES}`;

const split = (...patterns: readonly string[]): PreTokenizer => ({
  normalizer: null,
  steps: [...patterns.map(cut), BYTE_LEVEL],
  ignoreMerges: false,
  begins: false,
});

const LLAMA3: PreTokenizer = { ...split(words('{1,3}')), ignoreMerges: true, begins: true };
const QWEN2 = split(words(''));

/** By the names in the files. */
export const PRE_TOKENIZERS: ReadonlyMap<string, PreTokenizer> = new Map([
  ['gpt-2', split(GPT2_WORDS)],
  // Digits one by one: not as the step `Digits`, of which transformers.js knows those of ASCII alone.
  ['smollm', split('\\p{N}', GPT2_WORDS)],
  ['llama-bpe', LLAMA3],
  ['llama-v3', LLAMA3],
  ['llama3', LLAMA3],
  // The files do not say that Qwen's texts are composed first (NFC).
  ['qwen2', { ...QWEN2, normalizer: { type: 'NFC' } }],
  ['deepseek-r1-qwen', QWEN2],
  ['gpt-4o', { ...split(casedWords('{1,3}', `${CONTRACTIONS}?`)), ignoreMerges: true }],
  ['tekken', { ...split(casedWords('', '')), ignoreMerges: true, begins: true }],
]);
