/** What a warm start is trained on: prompts and completions as texts, from a file or of the micro-world, and as token ids. */
import { createHash } from 'node:crypto';
import * as z from 'zod';
import { readJsonLines } from '../../domain/azr/index.js';
import { UserError } from '../../errors.js';
import type { ChatSetting, Tokenizer } from '../../lm/tokenizer.js';
import type { TrainingDocument } from '../../rl/supervised.js';

export interface TextDocument {
  readonly prompt: string;
  readonly completion: string;
  /** Where it stands, for a message: `pairs.jsonl, line 3`. */
  readonly where: string;
}

const text = z.string({ error: 'is no text' });
const schema = z.looseObject({ prompt: text, completion: text.min(1, { error: 'is empty' }) });

/**
 * Rows `{"prompt": "…", "completion": "…"}`; further fields are passed over.
 * @throws UserError naming the line that is not one
 */
export async function readDocuments(path: string): Promise<TextDocument[]> {
  const documents: TextDocument[] = [];
  for await (const { line, value } of readJsonLines(path)) {
    const where = `${path}, line ${line}`;
    const parsed = schema.safeParse(value);
    if (!parsed.success) {
      const { path: at, message } = parsed.error.issues[0]!;
      const what =
        at.length === 0 ? 'the row is no object' : `${at.join('.')} ${missing(value, at) ? 'is missing' : message}`;
      throw new UserError(`${where}: ${what}; give {"prompt": "…", "completion": "…"}`);
    }
    documents.push({ prompt: parsed.data.prompt, completion: parsed.data.completion, where });
  }
  return documents;
}

function missing(value: unknown, [key]: readonly PropertyKey[]): boolean {
  return key !== undefined && !Object.hasOwn(value as object, key);
}

/** How a role's model reads a prompt and ends an answer. */
export interface DocumentReader {
  readonly tokenizer: Pick<Tokenizer, 'question' | 'encode' | 'eos' | 'ends'>;
  readonly chat: ChatSetting;
  /** Of the model. */
  readonly maxPositions: number;
}

/**
 * The prompt as the model will be asked, and the completion with the token that ends it, where its last token does not do so already.
 * @throws UserError for a document that is longer than the model's positions
 */
export function encodeDocument(
  { prompt, completion, where }: TextDocument,
  { tokenizer, chat, maxPositions }: DocumentReader,
): TrainingDocument {
  const asked = tokenizer.question(prompt, chat);
  const written = tokenizer.encode(completion);
  if (!tokenizer.ends.includes(written.at(-1)!)) written.push(tokenizer.eos);
  const length = asked.length + written.length;
  if (length > maxPositions)
    throw new UserError(
      `${where}: ${length} tokens with its end, and the model has ${maxPositions} positions; leave it out`,
    );
  if (asked.length === 0)
    throw new UserError(`${where}: prompt is empty, and the model puts no token before a text; give a prompt`);
  return { prompt: asked, completion: written };
}

/** SHA-256 of documents as token ids, in order. */
export function documentsHash(documents: readonly TrainingDocument[]): string {
  const hash = createHash('sha256');
  for (const { prompt, completion } of documents) hash.update(`${prompt.join()} ${completion.join()}\n`);
  return hash.digest('hex');
}
