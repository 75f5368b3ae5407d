/** The vocabulary and merges of a `tokenizer.json`, of every kind of model that the tokenizers library has. */
import { quoted } from './json-file.js';

type Merge = string | readonly [left: string, right: string];

export interface VocabularyModel {
  readonly type?: string | null | undefined;
  /** Token text → id; of a unigram model, texts with their scores in the order of ids. */
  readonly vocab: Readonly<Record<string, number>> | readonly (readonly [text: string, score: number])[];
  /** Of byte-pair encodings. */
  readonly merges?: readonly Merge[];
  readonly unk_token?: string | null;
  readonly unk_id?: number | null;
}

export interface Vocabulary {
  readonly json: VocabularyModel;
  readonly ids: ReadonlyMap<string, number>;
  /** By id: 1 where there is a token of it. */
  readonly taken: Uint8Array;
}

/** The text of an id in a vocabulary, by search: it is asked for once or twice. */
export function textOfId({ ids, taken }: Vocabulary, id: number): string | undefined {
  return taken[id] === 1 ? [...ids].find(([, other]) => other === id)?.[0] : undefined;
}

/** Larger than any vocabulary: a larger id is damage, and would make a table of that length. */
const LARGEST_ID = 2 ** 24 - 1;

/** The end of a message about an id. */
export const ID_RULE = `token ids are whole numbers from 0 to ${LARGEST_ID}`;

const KINDS = ['BPE', 'Unigram', 'WordPiece', 'WordLevel'];

export function isTokenId(id: unknown): id is number {
  return Number.isInteger(id) && (id as number) >= 0 && (id as number) <= LARGEST_ID;
}

/** @param refuse throws for what cannot be used */
export function checkVocabulary(model: Readonly<Record<string, unknown>>, refuse: (what: string) => never): Vocabulary {
  const { type, vocab, unk_token: unknown } = model;
  if (typeof type === 'string' && !KINDS.includes(type))
    refuse(`model.type ${quoted(type)} is not supported; supported are ${KINDS.join(', ')}`);
  if (unknown !== undefined && unknown !== null && typeof unknown !== 'string')
    refuse(`model.unk_token is ${quoted(unknown)}, not a token`);
  if (Array.isArray(vocab) && (type === 'Unigram' || type === undefined || type === null)) {
    return scoredVocabulary(model, vocab, refuse);
  }
  if (vocab === null || typeof vocab !== 'object' || Array.isArray(vocab) || type === 'Unigram')
    return refuse('model.vocab is not the vocabulary of such a model');
  const ids = new Map<string, number>();
  let largestId = -1;
  for (const text of Object.keys(vocab)) {
    const id = (vocab as Readonly<Record<string, unknown>>)[text];
    if (!isTokenId(id)) return refuse(`model.vocab: ${quoted(text)} has the id ${quoted(id)}: ${ID_RULE}`);
    ids.set(text, id);
    if (id > largestId) largestId = id;
  }
  const taken = new Uint8Array(largestId + 1);
  for (const [text, id] of ids) {
    if (taken[id] === 1) return refuse(`model.vocab: ${quoted(text)} has the id ${id} of another token`);
    taken[id] = 1;
  }
  const prefix = model['continuing_subword_prefix'];
  const inner = typeof prefix === 'string' ? prefix.length : 0;
  if (type === 'BPE' || model['merges'] !== undefined) checkMerges(model['merges'], ids, inner, refuse);
  return { json: model as unknown as VocabularyModel, ids, taken };
}

function scoredVocabulary(
  model: Readonly<Record<string, unknown>>,
  vocab: readonly unknown[],
  refuse: (what: string) => never,
): Vocabulary {
  const ids = new Map<string, number>();
  for (const [id, entry] of vocab.entries()) {
    const [text, score] = Array.isArray(entry) ? (entry as unknown[]) : [];
    if (typeof text !== 'string' || typeof score !== 'number' || !Number.isFinite(score))
      return refuse(`model.vocab.${id} is ${quoted(entry)}, not a token and its score`);
    ids.set(text, id);
  }
  if (ids.size < vocab.length) refuse(`model.vocab has a token twice: ${vocab.length} entries, ${ids.size} tokens`);
  if (vocab.length > LARGEST_ID) refuse(`model.vocab has ${vocab.length} tokens, more than ${LARGEST_ID}`);
  const unknown = model['unk_id'];
  const isKnown = unknown === undefined || unknown === null || (isTokenId(unknown) && unknown < vocab.length);
  if (!isKnown) refuse(`model.unk_id ${quoted(unknown)} is no token`);
  return { json: model as unknown as VocabularyModel, ids, taken: new Uint8Array(vocab.length).fill(1) };
}

/**
 * Every merge joins two texts into a token; the second loses the `inner` characters that mark it as the inside of a word. What it joins need
 * not be looked up: of a text that is no token there is never one to join.
 */
function checkMerges(
  merges: unknown,
  ids: ReadonlyMap<string, number>,
  inner: number,
  refuse: (what: string) => never,
): void {
  if (!Array.isArray(merges)) return refuse('model.merges is no list');
  // The library takes the first merge's way of writing for all.
  const paired = Array.isArray(merges[0]);
  for (let i = 0; i < merges.length; i++) {
    const merge = merges[i] as unknown;
    const parts: unknown = paired ? merge : typeof merge === 'string' && merge.split(' ');
    const [left, right] = Array.isArray(parts) && parts.length === 2 ? (parts as unknown[]) : [];
    if (typeof left !== 'string' || typeof right !== 'string')
      return refuse(`model.merges.${i} is ${quoted(merge)}, not two tokens`);
    const joined = left + (inner === 0 ? right : right.slice(inner));
    if (!ids.has(joined)) return refuse(`model.merges.${i} makes ${quoted(joined)}, which is not in model.vocab`);
  }
}

/** The two tokens that a merge joins. */
export function mergeParts(merge: Merge): readonly [string, string] {
  return typeof merge === 'string' ? (merge.split(' ') as [string, string]) : merge;
}
