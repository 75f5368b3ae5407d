/** Builds what the micro-world's models are trained on: tokenizers, then the corpus, and a model's documents from it. */
import { join } from 'node:path';
import { readCorpus, sampleCorpus, writeCorpus, type CorpusDocument, type EncodedDocument } from './corpus.js';
import { functionTask, inputQuestion, proposal, sampleFunctionQuestions } from './documents.js';
import type { Evaluate } from './evaluation.js';
import { TOKENIZERS, type CorpusRecipe } from './recipe.js';
import {
  readBytePairEncoding,
  trainBytePairEncoding,
  writeTokenizer,
  type BytePairEncoding,
} from './tokenizer-training.js';
import type { DocumentKind, Documents } from './training.js';

const TOKENIZER_DOCUMENTS = 20_000;
const LONGEST_TASK_TOKENS = 75;

/** The corpus is kept in this tokenizer's ids. */
const CORPUS_TOKENIZER = 'boilerplate';

/** The parts of the corpus: questions of code_o, and questions about functions. */
export const CORPUS_PARTS = ['train', 'held-out', 'functions/train', 'functions/held-out'] as const;

export interface CorpusBuild {
  readonly recipe: CorpusRecipe;
  readonly evaluate: Evaluate;
  /** Where the corpus's parts and `tokenizers/` are written. */
  readonly directory: string;
  readonly onProgress?: (documents: number) => void;
}

export interface CorpusStatistics {
  readonly documents: number;
  readonly vocabularySize: number;
  /** Tokens, the final newline included. */
  readonly meanTaskTokens: number;
  readonly meanOutputTokens: number;
  readonly longestTaskTokens: number;
}

/** Train the tokenizers and write them, then sample the corpus and write it. The same seed writes the same bytes. */
export async function buildCorpus(build: CorpusBuild): Promise<CorpusStatistics> {
  const { evaluate, directory } = build;
  const { seed, heldOutDocuments, trainingDocuments, trainingFunctions } = build.recipe;
  const sample = await sampleCorpus({ seed, count: TOKENIZER_DOCUMENTS, evaluate });
  for (const [name, { vocabulary, pattern }] of Object.entries(TOKENIZERS)) {
    const texts = sample.map(({ task, output }) => task + output);
    writeTokenizer(trainBytePairEncoding(texts, vocabulary, pattern), tokenizerDirectory(directory, name));
  }
  const tokenizer = readBytePairEncoding(tokenizerDirectory(directory, CORPUS_TOKENIZER));
  const documents = await sampleCorpus({
    seed,
    count: heldOutDocuments + trainingDocuments,
    evaluate,
    accept: ({ task }) => tokenizer.encode(task).length <= LONGEST_TASK_TOKENS,
    ...(build.onProgress && { onProgress: build.onProgress }),
  });
  const functions = await sampleFunctionQuestions({ seed, count: heldOutDocuments + trainingFunctions, evaluate });
  const encoded = documents.map((document) => encode(tokenizer, document));
  const encodedFunctions = functions.map((document) => encode(tokenizer, document));
  writeCorpus(join(directory, 'functions/held-out'), encodedFunctions.slice(0, heldOutDocuments));
  writeCorpus(join(directory, 'functions/train'), encodedFunctions.slice(heldOutDocuments));
  writeCorpus(join(directory, 'held-out'), encoded.slice(0, heldOutDocuments));
  writeCorpus(join(directory, 'train'), encoded.slice(heldOutDocuments));

  const mean = (length: (document: EncodedDocument) => number): number =>
    encoded.reduce((sum, document) => sum + length(document), 0) / encoded.length;
  return {
    documents: encoded.length,
    vocabularySize: tokenizer.vocabulary.length,
    meanTaskTokens: mean(({ task }) => task.length),
    meanOutputTokens: mean(({ output }) => output.length),
    longestTaskTokens: encoded.reduce((longest, { task }) => Math.max(longest, task.length), 0),
  };
}

export function tokenizerDirectory(directory: string, name: string): string {
  return join(directory, 'tokenizers', name);
}

function encode(tokenizer: BytePairEncoding, { task, output }: CorpusDocument): EncodedDocument {
  return { task: tokenizer.encode(task), output: tokenizer.encode(output) };
}

/** The documents of these kinds in a tokenizer's ids, made of the corpus. */
export function readDocuments(
  directory: string,
  split: 'train' | 'held-out',
  tokenizer: BytePairEncoding,
  kinds: readonly DocumentKind[],
): Documents {
  const kept = readBytePairEncoding(tokenizerDirectory(directory, CORPUS_TOKENIZER));
  const read = (part: string): CorpusDocument[] =>
    readCorpus(join(directory, part)).map(({ task, output }) => ({
      task: kept.decode(task),
      output: kept.decode(output),
    }));
  const programs = read(split);
  const functions = read(`functions/${split}`);
  const written: Record<DocumentKind, () => CorpusDocument[]> = {
    code_o: () => programs.map((document) => proposal('code_o', document)),
    'code_o question': () => programs,
    code_i: () => programs.map((document) => proposal('code_i', document)),
    'code_i question': () => programs.map(inputQuestion),
    code_f: () => functions.map((question) => proposal('code_f', functionTask(question))),
    'code_f question': () => functions,
  };
  return Object.fromEntries(
    kinds.map((kind) => [kind, written[kind]().map((document) => encode(tokenizer, document))]),
  );
}
