/** `tokenizer.json`, checked: its tokens and their ids, its merges, and what it puts before a text. */
import { z } from 'zod';
import { UserError } from '../errors.js';
import { parseFields, quoted } from './json-file.js';
import { tokenBytes } from './token-bytes.js';
import type { TokenBytes } from './token-bytes.js';
import { tokenDecoder } from './token-decoder.js';
import type { TokenDecoder } from './token-decoder.js';
import type { TokenizerConfig } from './tokenizer-config.js';
import { checkModelSettings, checkTogether, normalizerPart, preTokenizerPart } from './tokenizer-parts.js';
import type { Part } from './tokenizer-parts.js';
import { checkVocabulary, ID_RULE, isTokenId, textOfId } from './tokenizer-vocabulary.js';
import type { Vocabulary, VocabularyModel } from './tokenizer-vocabulary.js';

/** A token that a text is cut at before the model of the tokenizer sees it. */
export interface AddedToken {
  readonly id: number;
  readonly content: string;
  /** Special tokens are control tokens: they have no text when token ids are decoded. */
  readonly special: boolean;
  readonly single_word?: boolean | undefined;
  /** Whether white space before it, and after it, belongs to it. */
  readonly lstrip?: boolean | undefined;
  readonly rstrip?: boolean | undefined;
  /** Whether it is looked for in the normalised text; unless it is special where nothing says so. */
  readonly normalized?: boolean | undefined;
}

/** What the tokenizers library reads; the parts that have no type here are the library's to check. */
export interface TokenizerJson {
  readonly added_tokens: readonly AddedToken[];
  readonly model: VocabularyModel;
  readonly normalizer: Part | null;
  readonly pre_tokenizer: Part | null;
}

export interface TokenizerFile {
  /** As the library takes it: its parts are those that it computes as it should, without post-processor and decoder. */
  readonly json: TokenizerJson;
  /** Token text → id, and back, of the vocabulary and the added tokens. */
  readonly idOf: (text: string) => number | undefined;
  readonly textOf: (id: number) => string | undefined;
  readonly isToken: (id: number) => boolean;
  readonly largestId: number;
  /** Texts of tokens → the texts that make theirs. */
  readonly decode: TokenDecoder;
  /** What a token adds to a text. */
  readonly bytesOf: TokenBytes;
  /** Tokens that the post-processor puts before a text, as transformers does whatever `add_bos_token` says. */
  readonly prefix: readonly number[];
}

const ADVICE = 'fetch the file again';

const addedToken = z.looseObject({
  id: z.unknown().optional(),
  content: z.string().nonempty('is empty'),
  special: z.boolean().default(false),
  single_word: z.boolean().optional(),
  lstrip: z.boolean().optional(),
  rstrip: z.boolean().optional(),
  normalized: z.boolean().optional(),
});
const part = z.looseObject({ type: z.string() }).nullish();
const schema = z.looseObject({
  added_tokens: z.array(addedToken).nullish(),
  model: z.looseObject({ type: z.string().nullish() }),
  normalizer: part,
  pre_tokenizer: part,
  post_processor: part,
  decoder: part,
});

/**
 * @param json the content of `file`
 * @param config what the checkpoint says of its special tokens beside the file
 * @throws UserError naming the file and what in it cannot be used
 */
export function parseTokenizer(json: unknown, file: string, config: TokenizerConfig): TokenizerFile {
  const parsed = parseFields(schema, json, file, 'this is not the tokenizer.json of a fast tokenizer');
  const refuse = (what: string): never => {
    throw new UserError(`${file}: ${what}; ${ADVICE}`);
  };
  const unsupported = (what: string): never => {
    throw new UserError(`${file}: ${what}`);
  };
  const { normalizer = null, pre_tokenizer = null, post_processor = null, decoder = null } = parsed;
  for (const [name, value] of Object.entries({ normalizer, pre_tokenizer, post_processor, decoder })) {
    const problem = partProblem(value);
    if (problem !== null) refuse(`${name} ${problem}`);
  }
  const vocabulary = checkVocabulary(parsed.model, refuse);
  const added = completed(checkAdded(parsed.added_tokens ?? [], vocabulary, refuse), vocabulary, config);
  checkOrder(added, vocabulary, unsupported);
  const ids = new Map(added.map(({ content, id }) => [content, id]));
  const texts = new Map(added.map(({ content, id }) => [id, content]));
  const largestId = added.reduce((largest, { id }) => Math.max(largest, id), vocabulary.taken.length - 1);
  if (largestId < 0) refuse('model.vocab has no tokens');
  const known = new Uint8Array(largestId + 1);
  known.set(vocabulary.taken);
  for (const id of texts.keys()) known[id] = 1;
  checkModelSettings(parsed.model, unsupported);
  const word = added.find((token) => token.single_word);
  if (word) unsupported(`added token ${quoted(word.content)} is single_word, which is not supported`);
  checkTogether(normalizer, pre_tokenizer, unsupported);
  const parts = {
    normalizer: normalizer && normalizerPart(normalizer, unsupported),
    pre_tokenizer: pre_tokenizer && preTokenizerPart(pre_tokenizer, unsupported),
    post_processor: null,
    // Texts are made of tokens here.
    decoder: null,
  };
  return {
    json: { ...parsed, ...parts, added_tokens: added, model: vocabulary.json },
    idOf: (text) => ids.get(text) ?? vocabulary.ids.get(text),
    textOf: (id) => texts.get(id) ?? textOfId(vocabulary, id),
    isToken: isOneOf(known),
    largestId,
    bytesOf: tokenBytes(decoder),
    decode: tokenDecoder(decoder, unsupported),
    prefix: prefixOf(post_processor, (id) => known[id] === 1, file),
  };
}

/** By itself, so that what a tokenizer keeps of its file is this alone. */
function isOneOf(known: Uint8Array): (id: number) => boolean {
  return (id) => known[id] === 1;
}

/** An added token may take over the id of a token of the vocabulary that was kept for it. */
function checkAdded(
  tokens: readonly z.output<typeof addedToken>[],
  { ids }: Vocabulary,
  refuse: (what: string) => never,
): AddedToken[] {
  const textOf = new Map<number, string>();
  const idOf = new Map<string, number>();
  return tokens.map(({ id, content, ...rest }, i) => {
    const name = `added_tokens.${i}: ${quoted(content)}`;
    if (!isTokenId(id)) return refuse(`${name} has the id ${quoted(id)}: ${ID_RULE}`);
    const otherId = ids.get(content) ?? idOf.get(content) ?? id;
    if (otherId !== id) refuse(`${name} has the id ${id} here and ${otherId} elsewhere`);
    const otherText = textOf.get(id) ?? content;
    if (otherText !== content) refuse(`${name} has the id ${id} of ${quoted(otherText)}`);
    textOf.set(id, content);
    idOf.set(content, id);
    return { ...rest, id, content };
  });
}

/** The added tokens, and with them those that only the checkpoint's other files call special, as transformers adds them. */
function completed(added: readonly AddedToken[], { ids, taken }: Vocabulary, config: TokenizerConfig): AddedToken[] {
  const byText = new Map(added.map((token) => [token.content, token]));
  const addedIds = new Set(added.map(({ id }) => id));
  const add = (content: string, id: number | undefined, special: boolean): void => {
    if (id !== undefined) byText.set(content, { id, content, special });
  };
  for (const { id, content, special } of config.listed) {
    const there = byText.get(content);
    const free = addedIds.has(id) || taken[id] === 1 ? undefined : id;
    if (there === undefined) add(content, ids.get(content) ?? free, special);
    else byText.set(content, { ...there, special: there.special || special });
  }
  for (const content of Object.values(config.named)) {
    const there = byText.get(content);
    if (there === undefined) add(content, ids.get(content), true);
    else byText.set(content, { ...there, special: true });
  }
  for (const content of config.others) if (!byText.has(content)) add(content, ids.get(content), true);
  return [...byText.values()];
}

/**
 * The tokenizers library does not go by the ids that a file gives to added tokens: those that are no words of the model follow one another
 * behind its vocabulary.
 */
function checkOrder(added: readonly AddedToken[], { ids }: Vocabulary, refuse: (what: string) => never): void {
  let next = ids.size;
  for (const { content, id } of added) {
    const given = ids.get(content) ?? next;
    if (given !== id) refuse(`added token ${quoted(content)} has the id ${id}, where transformers gives it ${given}`);
    next = Math.max(next, id + 1);
  }
}

/** No tokenizer nests or spells its parts longer; what does would take the library's recursion and pattern reader for ever. */
const DEEPEST = 64;
const LONGEST_PATTERN = 10_000;

/** Why a part of the pipeline is not given to the library; null when it is. */
function partProblem(root: unknown): string | null {
  const open: [value: unknown, depth: number][] = [[root, 0]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [value, depth] = next;
    if (value === null || typeof value !== 'object') continue;
    if (depth > DEEPEST) return `is nested more than ${DEEPEST} deep`;
    const fields = value as Readonly<Record<string, unknown>>;
    const pattern = fields['Regex'];
    if (typeof pattern === 'string' && pattern.length > LONGEST_PATTERN)
      return `has a pattern of ${pattern.length} characters, more than ${LONGEST_PATTERN}`;
    const type = fields['type'];
    if ((type === 'Split' || type === 'Replace') && !isPattern(fields['pattern']))
      return `has a ${type} without a pattern`;
    if (type === 'FixedLength' && !isPositive(fields['length']))
      return `has pieces of length ${quoted(fields['length'])}`;
    for (const inner of Object.values(fields)) open.push([inner, depth + 1]);
  }
  return null;
}

function isPattern(pattern: unknown): boolean {
  const { Regex: expression, String: text } = (pattern ?? {}) as Readonly<Record<string, unknown>>;
  return typeof expression === 'string' || typeof text === 'string';
}

function isPositive(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

const tokenIds = z.array(z.int().nonnegative());
/** A piece of the template is a special token, or it is the text. */
const piece = z.looseObject({ SpecialToken: z.looseObject({ id: z.string() }).optional() });
const template = z.looseObject({
  single: z.array(piece).refine((pieces) => pieces.some((one) => !one.SpecialToken), 'has no place for the text'),
  special_tokens: z.record(z.string(), z.looseObject({ ids: tokenIds })),
});
const pair = z.tuple([z.string(), z.int().nonnegative()]);
const bert = z.looseObject({ cls: pair });
const sequence = z.looseObject({ processors: z.array(z.looseObject({ type: z.string() })) });

/** The ids before a text. Of processors in a sequence each is put around what those before it made. */
function prefixOf(
  processor: { readonly type: string } | null,
  isToken: (id: number) => boolean,
  file: string,
): number[] {
  if (processor === null) return [];
  switch (processor.type) {
    case 'ByteLevel':
      return [];
    case 'TemplateProcessing': {
      const { single, special_tokens } = parseFields(template, processor, `${file}: post_processor`, ADVICE);
      const names = single.map(({ SpecialToken }) => SpecialToken?.id);
      return names.slice(0, names.indexOf(undefined)).flatMap((name) => {
        const ids = special_tokens[name!]?.ids;
        if (ids?.every(isToken)) return ids;
        throw new UserError(`${file}: post_processor names ${quoted(name)}, which is no token; ${ADVICE}`);
      });
    }
    case 'BertProcessing':
    case 'RobertaProcessing':
      return [parseFields(bert, processor, `${file}: post_processor`, ADVICE).cls[1]].filter(isToken);
    case 'Sequence': {
      const { processors } = parseFields(sequence, processor, `${file}: post_processor`, ADVICE);
      return processors.toReversed().flatMap((one) => prefixOf(one, isToken, file));
    }
    default:
      throw new UserError(`${file}: post_processor ${quoted(processor.type)} is not supported`);
  }
}
