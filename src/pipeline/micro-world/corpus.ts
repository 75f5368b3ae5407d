/** The micro-world's corpus: sampled tasks with their answers, and the binary files that training reads. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deriveSeed, seededRandom } from '../../metrics/random.js';
import { makeFolder } from '../../store/files.js';
import { guardedCalls, type Evaluate } from './evaluation.js';
import { sampleProgram, taskText, type SampledProgram } from './language.js';

const BATCH = 1000;
export const LONGEST_OUTPUT = 36;
const FEWEST_DISTINCT_OUTPUTS = 6;

/** A task as text with its answer, both ending in a newline. */
export interface CorpusDocument {
  readonly task: string;
  readonly output: string;
}

/** Documents as token ids: task (its newline included), then output (its newline included). */
export interface EncodedDocument {
  readonly task: readonly number[];
  readonly output: readonly number[];
}

export interface CorpusRequest {
  readonly seed: number | string;
  /** How many documents to write. */
  readonly count: number;
  readonly evaluate: Evaluate;
  /** Whether a document may join the corpus, beyond the guards (its length in tokens, say). */
  readonly accept?: (document: CorpusDocument) => boolean;
  /** Called after each batch with the number of documents so far. */
  readonly onProgress?: (documents: number) => void;
}

/** How often outputs of this kind stay: without thinning, booleans and small integers would crowd out lists and strings. */
export function keptShare(output: string): number {
  if (output === 'True' || output === 'False') return 0.2;
  if (output.startsWith('[')) return output.length > 2 ? 1 : 0.3;
  if (output.startsWith("'")) return output.length > 3 ? 1 : 0.4;
  return output.length === 1 ? 0.22 : 0.45;
}

/**
 * Sample documents whose answer exists, is at most 36 characters long and cannot be guessed (at least 6 distinct outputs over
 * 8 inputs), thinned by kind of output, no task twice. The same seed gives the same documents; a larger count only adds some.
 */
export async function sampleCorpus(request: CorpusRequest): Promise<CorpusDocument[]> {
  const documents: CorpusDocument[] = [];
  const seen = new Set<string>();
  for (let batch = 0; documents.length < request.count; batch++) {
    const programs = sampleBatch(request.seed, batch, seen);
    const thinning = seededRandom(deriveSeed(request.seed, 'micro-world thinning', batch));
    const evaluations = await request.evaluate(programs.map(guardedCalls));
    for (const [index, outputs] of evaluations.entries()) {
      const kept = thinning();
      const output = outputs[0] ?? null;
      if (output === null || output.length > LONGEST_OUTPUT || canBeGuessed(outputs)) continue;
      if (kept >= keptShare(output)) continue;
      const document = { task: taskText(programs[index]!), output: `${output}\n` };
      if (request.accept?.(document) ?? true) documents.push(document);
    }
    request.onProgress?.(documents.length);
  }
  return documents.slice(0, request.count);
}

/** Too few distinct outputs; raising counts as one. */
export function canBeGuessed(outputs: readonly (string | null)[]): boolean {
  return new Set(outputs).size < FEWEST_DISTINCT_OUTPUTS;
}

/** The programs of one batch that no earlier batch has drawn. */
function sampleBatch(seed: number | string, batch: number, seen: Set<string>): SampledProgram[] {
  const random = seededRandom(deriveSeed(seed, 'micro-world programs', batch));
  const programs: SampledProgram[] = [];
  for (let drawn = 0; drawn < BATCH; drawn++) {
    const program = sampleProgram(random);
    const text = taskText(program);
    if (seen.has(text)) continue;
    seen.add(text);
    programs.push(program);
  }
  return programs;
}

/**
 * Write documents into `directory`: `documents.u16` holds all token ids one after another, little-endian; `lengths.u8` two
 * bytes a document, the tokens of its task and of its output. Throws a `RangeError` for a document beyond 255 tokens.
 */
export function writeCorpus(directory: string, documents: readonly EncodedDocument[]): void {
  const lengths = new Uint8Array(documents.length * 2);
  const total = documents.reduce((sum, { task, output }) => sum + task.length + output.length, 0);
  const tokens = Buffer.alloc(total * 2);
  let position = 0;
  for (const [index, { task, output }] of documents.entries()) {
    if (task.length > 255 || output.length > 255) {
      throw new RangeError(`document ${index} has ${task.length} + ${output.length} tokens; each part may have 255`);
    }
    lengths[index * 2] = task.length;
    lengths[index * 2 + 1] = output.length;
    for (const id of task) position = tokens.writeUInt16LE(id, position);
    for (const id of output) position = tokens.writeUInt16LE(id, position);
  }
  makeFolder(directory);
  writeFileSync(join(directory, 'documents.u16'), tokens);
  writeFileSync(join(directory, 'lengths.u8'), lengths);
}

/** Read what `writeCorpus` wrote. Throws an `Error` when the two files do not belong together. */
export function readCorpus(directory: string): EncodedDocument[] {
  const tokens = readFileSync(join(directory, 'documents.u16'));
  const lengths = readFileSync(join(directory, 'lengths.u8'));
  const documents: EncodedDocument[] = [];
  let position = 0;
  const read = (count: number): number[] => {
    const end = position + count * 2;
    if (end > tokens.length) throw new Error(`${directory}: documents.u16 is shorter than lengths.u8 says`);
    const ids: number[] = [];
    for (; position < end; position += 2) ids.push(tokens.readUInt16LE(position));
    return ids;
  };
  for (let index = 0; index < lengths.length; index += 2) {
    documents.push({ task: read(lengths[index]!), output: read(lengths[index + 1]!) });
  }
  if (position !== tokens.length) throw new Error(`${directory}: documents.u16 is longer than lengths.u8 says`);
  return documents;
}
