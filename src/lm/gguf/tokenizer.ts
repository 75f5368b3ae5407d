/** The tokenizer of a GGUF file as a Hugging Face checkpoint's `tokenizer.json` and `tokenizer_config.json`. */
import { inOneLine } from '../../errors.js';
import type { DecoderConfig } from '../config.js';
import type { Metadata } from './metadata.js';
import { BYTE_LEVEL, PRE_TOKENIZERS } from './pre-tokenizers.js';

/** `tokenizer.ggml.token_type`. */
const UNKNOWN = 2;
const CONTROL = 3;
const USER_DEFINED = 4;

/** Every cut of a piece in two is looked at, so that the work goes by the square of its length: Gemma's pieces take 14 million. */
const MOST_LETTERS_SQUARED = 2 ** 27;

/** What `config.json` and `generation_config.json` say of tokens. */
export interface TokenIds {
  readonly bos_token_id?: number;
  readonly eos_token_id?: number | readonly number[];
  readonly pad_token_id?: number;
}

export interface ImportedTokenizer {
  readonly tokenizer: Readonly<Record<string, unknown>>;
  readonly config: Readonly<Record<string, unknown>>;
  readonly ids: TokenIds;
  readonly hasChat: boolean;
}

/** What a kind of vocabulary decides. */
interface Parts {
  readonly normalizer: unknown;
  readonly pre_tokenizer: unknown;
  readonly decoder: unknown;
  readonly model: Readonly<Record<string, unknown>>;
}

interface Vocabulary {
  readonly metadata: Metadata;
  /** As the file has them, by id. */
  readonly tokens: readonly string[];
  readonly kinds: readonly number[];
}

/** @param model it is of. @throws UserError naming what is not known or is missing */
export function readTokenizer(
  metadata: Metadata,
  { family, vocabulary: embeddings }: Pick<DecoderConfig, 'family' | 'vocabulary'>,
): ImportedTokenizer {
  const key = (rest: string) => `tokenizer.ggml.${rest}`;
  const model = metadata.required(metadata.text(key('model')), key('model'));
  const tokens = metadata.required(metadata.texts(key('tokens')), key('tokens'));
  // First, as their number bounds all that is made of them.
  if (tokens.length > embeddings) metadata.refuse(`it has ${tokens.length} tokens and embeddings of ${embeddings}`);
  const kinds = metadata.numbers(key('token_type')) ?? [];
  if (kinds.length > 0 && kinds.length !== tokens.length)
    metadata.refuse(`it has ${tokens.length} tokens and the types of ${kinds.length}`);
  const vocabulary = { metadata, tokens, kinds };
  const pieces = model === 'llama';
  if (!pieces && model !== 'gpt2')
    metadata.refuse(`its tokenizer '${inOneLine(model)}' is not read here; supported are gpt2 and llama`);
  const { parts, begins } = pieces ? pieceModel(vocabulary, family === 'gemma3_text') : byteModel(vocabulary);

  const takesSpaces = (token: string) => pieces && family === 'phi3' && !PHI3_BARE.has(token);
  const id = (name: string): number | undefined => {
    const value = metadata.whole(key(`${name}_token_id`));
    if (value !== undefined && value >= tokens.length)
      metadata.refuse(`its ${key(`${name}_token_id`)} is ${value}, of ${tokens.length} tokens`);
    return value;
  };
  const [bos, eos, unknown, padding] = ['bos', 'eos', 'unknown', 'padding'].map(id);
  const withBegin = bos !== undefined && (metadata.flag(key('add_bos_token')) ?? begins);
  const withEnd = eos !== undefined && (metadata.flag(key('add_eos_token')) ?? false);
  const named = Object.entries({ bos_token: bos, eos_token: eos, unk_token: unknown, pad_token: padding }).flatMap(
    ([name, token]) => (token === undefined ? [] : [[name, tokens[token]!]]),
  );
  const ends = [...new Set(['eos', 'eot', 'eom'].map(id).filter((end) => end !== undefined))];
  const template = chatTemplate(metadata);
  return {
    tokenizer: {
      version: '1.0',
      truncation: null,
      padding: null,
      added_tokens: addedTokens(vocabulary, takesSpaces),
      ...parts,
      post_processor: processor(tokens, withBegin ? bos : null, withEnd ? eos : null),
    },
    config: {
      tokenizer_class: 'PreTrainedTokenizerFast',
      clean_up_tokenization_spaces: false,
      add_bos_token: withBegin,
      add_eos_token: withEnd,
      ...Object.fromEntries(named),
      ...(template === null ? {} : { chat_template: template }),
    },
    ids: {
      ...(bos === undefined ? {} : { bos_token_id: bos }),
      ...(ends.length === 0 ? {} : { eos_token_id: ends.length > 1 ? ends : ends[0]! }),
      ...(padding === undefined ? {} : { pad_token_id: padding }),
    },
    hasChat: template !== null,
  };
}

/** Byte pairs, as GPT-2 has them. */
function byteModel({ metadata, tokens }: Vocabulary): { parts: Parts; begins: boolean } {
  const name = metadata.required(metadata.text('tokenizer.ggml.pre'), 'tokenizer.ggml.pre');
  const pre = PRE_TOKENIZERS.get(name);
  if (pre === undefined)
    return metadata.refuse(
      `its pre-tokenizer '${inOneLine(name)}' is not known here; known are ${[...PRE_TOKENIZERS.keys()].join(', ')}`,
    );
  const parts = {
    normalizer: pre.normalizer,
    pre_tokenizer: { type: 'Sequence', pretokenizers: pre.steps },
    decoder: BYTE_LEVEL,
    model: {
      type: 'BPE',
      unk_token: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: pre.ignoreMerges,
      vocab: idsOf(metadata, tokens),
      merges: metadata.required(metadata.texts('tokenizer.ggml.merges'), 'tokenizer.ggml.merges'),
    },
  };
  return { parts, begins: pre.begins };
}

/** Pieces of SentencePiece, of which the file has the scores and not the merges. */
function pieceModel({ metadata, tokens }: Vocabulary, isGemma: boolean): { parts: Parts; begins: boolean } {
  const withSpace = metadata.flag('tokenizer.ggml.add_space_prefix') ?? true;
  // Gemma's files hold runs of spaces as such, while a text has ▁ by then.
  const texts = tokens.map((text) => (isRunOfSpaces(text) ? '▁'.repeat(text.length) : text));
  const vocab = idsOf(metadata, texts);
  const scores = metadata.numbers('tokenizer.ggml.scores');
  // Gemma's merges go by the order of the tokens, not by their scores.
  const rank = isGemma ? (id: number) => -id : (id: number) => scores?.[id] ?? 0;
  if (!isGemma && scores?.length !== tokens.length)
    metadata.refuse(`it has ${tokens.length} tokens and the scores of ${scores?.length ?? 0}`);
  const toMarks = { type: 'Replace', pattern: { String: ' ' }, content: '▁' };
  const unknown = metadata.whole('tokenizer.ggml.unknown_token_id');
  const parts = {
    normalizer: withSpace ? { type: 'Sequence', normalizers: [{ type: 'Prepend', prepend: '▁' }, toMarks] } : toMarks,
    pre_tokenizer: null,
    decoder: {
      type: 'Sequence',
      decoders: [
        { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
        { type: 'ByteFallback' },
        { type: 'Fuse' },
        ...(withSpace ? [{ type: 'Strip', content: ' ', start: 1, stop: 0 }] : []),
      ],
    },
    model: {
      type: 'BPE',
      unk_token: unknown === undefined ? null : (texts[unknown] ?? null),
      fuse_unk: true,
      byte_fallback: true,
      ignore_merges: false,
      vocab,
      merges: mergesOf(metadata, texts, rank),
    },
  };
  return { parts, begins: true };
}

/** Every way to cut a piece into two others, the best rank first; of cuts of one piece that with the longer left part, then by ids. */
function mergesOf(metadata: Metadata, texts: readonly string[], rank: (id: number) => number): [string, string][] {
  const ids = new Map(texts.map((text, id) => [text, id]));
  const merges: { left: string; right: string; rank: number; lengths: number[]; ids: number[] }[] = [];
  const work = texts.reduce((sum, { length }) => sum + length * length, 0);
  if (work > MOST_LETTERS_SQUARED) metadata.refuse('its tokens are longer than those of any tokenizer');
  for (const [id, text] of texts.entries()) {
    const letters = [...text];
    for (let at = 1, cut = letters[0]?.length ?? 0; at < letters.length; cut += letters[at++]!.length) {
      const [left, right] = [text.slice(0, cut), text.slice(cut)];
      const [leftId, rightId] = [ids.get(left), ids.get(right)];
      if (leftId === undefined || rightId === undefined) continue;
      merges.push({ left, right, rank: rank(id), lengths: [at, letters.length - at], ids: [leftId, rightId] });
    }
  }
  merges.sort(
    (a, b) =>
      b.rank - a.rank ||
      b.lengths[0]! - a.lengths[0]! ||
      b.lengths[1]! - a.lengths[1]! ||
      a.ids[0]! - b.ids[0]! ||
      a.ids[1]! - b.ids[1]!,
  );
  return merges.map(({ left, right }) => [left, right]);
}

function isRunOfSpaces(text: string): boolean {
  return /^ +$/.test(text);
}

/** Text → id. @throws UserError where two tokens have one text */
function idsOf(metadata: Metadata, texts: readonly string[]): Record<string, number> {
  if (new Set(texts).size < texts.length) metadata.refuse('two of its tokens have one text');
  // As entries, since a token may be named __proto__.
  return Object.fromEntries(texts.map((text, id) => [text, id]));
}

/** Of Phi-3's pieces the special tokens that leave the spaces behind them; the others take them up, which no file says. */
const PHI3_BARE: ReadonlySet<string> = new Set(['<unk>', '<s>', '<|endoftext|>']);

/** Control tokens, and those that texts are cut at before all else; runs of spaces come about by merging. */
function addedTokens(
  { tokens, kinds }: Vocabulary,
  takesSpaces: (token: string) => boolean,
): Record<string, unknown>[] {
  return tokens.flatMap((content, id) => {
    const special = kinds[id] === CONTROL || kinds[id] === UNKNOWN;
    const isAdded = content !== '' && (special || (kinds[id] === USER_DEFINED && !isRunOfSpaces(content)));
    if (!isAdded) return [];
    const rstrip = takesSpaces(content);
    return [{ id, content, single_word: false, lstrip: false, rstrip, normalized: false, special }];
  });
}

/** What stands around a text, and around two. */
function processor(tokens: readonly string[], begin: number | null, end: number | null): Record<string, unknown> {
  const special = (id: number | null, type_id: number) =>
    id === null ? [] : [{ SpecialToken: { id: tokens[id]!, type_id } }];
  const around = (sequence: 'A' | 'B', type_id: number) => [
    ...special(begin, type_id),
    { Sequence: { id: sequence, type_id } },
    ...special(end, type_id),
  ];
  const used = [begin, end].filter((id) => id !== null);
  return {
    type: 'TemplateProcessing',
    single: around('A', 0),
    pair: [...around('A', 0), ...around('B', 1)],
    special_tokens: Object.fromEntries(
      used.map((id) => [tokens[id]!, { id: tokens[id]!, ids: [id], tokens: [tokens[id]!] }]),
    ),
  };
}

/** The chat template, with others by name where the file has several; null for none. */
function chatTemplate(metadata: Metadata): string | { name: string; template: string }[] | null {
  const plain = metadata.text('tokenizer.chat_template');
  const others = (metadata.texts('tokenizer.chat_templates') ?? []).flatMap((name) => {
    const template = metadata.text(`tokenizer.chat_template.${name}`);
    return template === undefined ? [] : [{ name, template }];
  });
  if (others.length === 0) return plain ?? null;
  return [...(plain === undefined ? [] : [{ name: 'default', template: plain }]), ...others];
}
