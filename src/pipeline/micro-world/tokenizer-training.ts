/** Trains the micro-world's byte-pair encoding and writes it as a Hugging Face tokenizer. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../../store/files.js';

/** Special tokens in the order of their ids: 0, 1, 2. */
export const SPECIAL_TOKENS = ['<pad>', '<bos>', '<eos>'] as const;

/**
 * Where text may be cut. No merge crosses a cut, so digits and capitals stay single, and a newline joins what follows it in a
 * program; only the newline that ends a task and the one that ends an output stand alone, and generation stops at those.
 */
export const PRE_TOKENS =
  'def f\\(|\\n>>> f\\(|\\n +(?:return |for |if |while )?|\\n|[a-z_]+ ?|[A-Z]|[0-9]| ?[^A-Za-z0-9_ \\n]+ ?| ';

/** Cuts of another family: words with the space before them, capitals in runs, and `def f(` in pieces. */
export const WORD_PRE_TOKENS = '\\n>>> f\\(|\\n +|\\n| ?[A-Za-z_]+|[0-9]| ?[^A-Za-z0-9_ \\n]+| ';

/** The characters that can be encoded: newline and printable ASCII. */
const ALPHABET = ['\n', ...Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index))];

/** A pair seen less often than this is not worth a token. */
const RAREST_MERGE = 20;

type Merge = readonly [left: string, right: string];

/** A byte-pair encoding over characters. */
export interface BytePairEncoding {
  /** A regular expression for the pieces that text is cut into. */
  readonly pattern: string;
  /** Token texts by id: special tokens, alphabet, merges. */
  readonly vocabulary: readonly string[];
  /** Pairs in the order in which they are merged. */
  readonly merges: readonly Merge[];
  /** Token ids of `text`, without special tokens. Throws a `RangeError` on a character outside the alphabet. */
  encode(text: string): number[];
  /** The text of `ids`; special tokens have none. */
  decode(ids: Iterable<number>): string;
}

/** The pieces of `text` between cuts; together they are the text. */
export function preTokens(text: string, pattern = PRE_TOKENS): string[] {
  return text.match(new RegExp(pattern, 'gu')) ?? [];
}

/**
 * Byte-pair encoding (Sennrich et al. 2016, https://arxiv.org/abs/1508.07909): start from characters, merge the most frequent
 * neighbouring pair until there are `vocabularySize` tokens or no pair is frequent; ties go to the pair that sorts last.
 */
export function trainBytePairEncoding(
  texts: readonly string[],
  vocabularySize: number,
  pattern = PRE_TOKENS,
): BytePairEncoding {
  const counts = new Map<string, number>();
  for (const text of texts)
    for (const piece of preTokens(text, pattern)) counts.set(piece, (counts.get(piece) ?? 0) + 1);
  let words = Array.from(counts, ([piece, count]) => ({ tokens: [...piece], count }));
  const merges: Merge[] = [];
  while (SPECIAL_TOKENS.length + ALPHABET.length + merges.length < vocabularySize) {
    const merge = mostFrequentPair(words);
    if (merge === null) break;
    merges.push(merge);
    words = words.map(({ tokens, count }) => ({ tokens: mergePair(tokens, merge), count }));
  }
  return bytePairEncoding(merges, pattern);
}

function mostFrequentPair(words: readonly { tokens: readonly string[]; count: number }[]): Merge | null {
  const pairs = new Map<string, { merge: Merge; count: number }>();
  for (const { tokens, count } of words) {
    for (let index = 1; index < tokens.length; index++) {
      const merge: Merge = [tokens[index - 1]!, tokens[index]!];
      const key = JSON.stringify(merge);
      const pair = pairs.get(key);
      if (pair === undefined) pairs.set(key, { merge, count });
      else pair.count += count;
    }
  }
  let bestKey = '';
  let best: { merge: Merge; count: number } | null = null;
  for (const [key, pair] of pairs) {
    if (best === null || pair.count > best.count || (pair.count === best.count && key > bestKey)) {
      best = pair;
      bestKey = key;
    }
  }
  return best !== null && best.count >= RAREST_MERGE ? best.merge : null;
}

/** Join every occurrence of the pair, left to right. */
function mergePair(tokens: readonly string[], [left, right]: Merge): string[] {
  const merged: string[] = [];
  for (let index = 0; index < tokens.length; index++) {
    const joins = tokens[index] === left && tokens[index + 1] === right;
    merged.push(joins ? left + right : tokens[index]!);
    if (joins) index++;
  }
  return merged;
}

function bytePairEncoding(merges: readonly Merge[], pattern: string): BytePairEncoding {
  const vocabulary = [...SPECIAL_TOKENS, ...ALPHABET, ...merges.map(([left, right]) => left + right)];
  const ids = new Map(vocabulary.map((token, id) => [token, id]));
  const ranks = new Map(merges.map((merge, rank) => [JSON.stringify(merge), rank]));
  const cache = new Map<string, readonly number[]>();

  const encodePiece = (piece: string): readonly number[] => {
    const known = cache.get(piece);
    if (known !== undefined) return known;
    let tokens = [...piece];
    for (;;) {
      let lowest = Infinity;
      for (let index = 1; index < tokens.length; index++) {
        lowest = Math.min(lowest, ranks.get(JSON.stringify([tokens[index - 1], tokens[index]])) ?? Infinity);
      }
      if (lowest === Infinity) break;
      tokens = mergePair(tokens, merges[lowest]!);
    }
    const encoded = tokens.map((token) => {
      const id = ids.get(token);
      if (id === undefined) throw new RangeError(`cannot encode ${JSON.stringify(token)}: not in the alphabet`);
      return id;
    });
    cache.set(piece, encoded);
    return encoded;
  };

  return {
    pattern,
    vocabulary,
    merges,
    encode: (text) => preTokens(text, pattern).flatMap(encodePiece),
    decode: (tokenIds) => {
      let text = '';
      for (const id of tokenIds) if (id >= SPECIAL_TOKENS.length) text += vocabulary[id] ?? '';
      return text;
    },
  };
}

/** Read back what `writeTokenizer` wrote. */
export function readBytePairEncoding(directory: string): BytePairEncoding {
  const { model, pre_tokenizer: cuts } = JSON.parse(readFileSync(join(directory, 'tokenizer.json'), 'utf8')) as {
    model: { merges: readonly Merge[] };
    pre_tokenizer: { pattern: { Regex: string } };
  };
  return bytePairEncoding(model.merges, cuts.pattern.Regex);
}

/**
 * Write `tokenizer.json`, `tokenizer_config.json` and `generation_config.json` into `directory`, as Hugging Face's libraries read them. What is
 * written ends with the end token, or with the newline that stands alone.
 */
export function writeTokenizer(encoding: BytePairEncoding, directory: string): void {
  const [pad, bos, eos] = SPECIAL_TOKENS;
  const tokenizer = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: SPECIAL_TOKENS.map((content, id) => ({
      id,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    pre_tokenizer: { type: 'Split', pattern: { Regex: encoding.pattern }, behavior: 'Isolated', invert: false },
    // The models have seen every text behind a begin token.
    post_processor: beginWith(bos),
    decoder: { type: 'Fuse' },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(encoding.vocabulary.map((token, id) => [token, id])),
      merges: encoding.merges,
    },
  };
  const config = {
    tokenizer_class: 'PreTrainedTokenizerFast',
    clean_up_tokenization_spaces: false,
    model_max_length: 128,
    pad_token: pad,
    bos_token: bos,
    eos_token: eos,
  };
  makeFolder(directory);
  writeFileSync(join(directory, 'tokenizer.json'), `${JSON.stringify(tokenizer, null, 1)}\n`);
  writeFileSync(join(directory, 'tokenizer_config.json'), `${JSON.stringify(config, null, 2)}\n`);
  const generation = {
    bos_token_id: encoding.vocabulary.indexOf(bos),
    eos_token_id: [eos, '\n'].map((token) => encoding.vocabulary.indexOf(token)),
    pad_token_id: encoding.vocabulary.indexOf(pad),
  };
  writeFileSync(join(directory, 'generation_config.json'), `${JSON.stringify(generation, null, 2)}\n`);
}

/** Puts a token before every text. */
function beginWith(token: (typeof SPECIAL_TOKENS)[number]): object {
  const begin = { SpecialToken: { id: token, type_id: 0 } };
  const text = (id: 'A' | 'B', type_id: number): object => ({ Sequence: { id, type_id } });
  return {
    type: 'TemplateProcessing',
    single: [begin, text('A', 0)],
    pair: [begin, text('A', 0), text('B', 1)],
    special_tokens: { [token]: { id: token, ids: [SPECIAL_TOKENS.indexOf(token)], tokens: [token] } },
  };
}
