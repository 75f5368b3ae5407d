/** Builds what the micro-world's models are trained on: the tokenizer, then the corpus it encodes. */
import { join } from 'node:path';
import { sampleCorpus, writeCorpus, type EncodedDocument } from './corpus.js';
import type { Evaluate } from './evaluation.js';
import { trainBytePairEncoding, writeTokenizer } from './tokenizer-training.js';

const TOKENIZER_DOCUMENTS = 20_000;
const VOCABULARY_SIZE = 280;
const LONGEST_TASK_TOKENS = 75;

export interface CorpusBuild {
  readonly seed: number | string;
  /** Documents to train on, and documents held out; no task is in both. */
  readonly trainingDocuments: number;
  readonly heldOutDocuments: number;
  readonly evaluate: Evaluate;
  /** Where `train/` and `held-out/` are written. */
  readonly corpusDirectory: string;
  /** One directory a model; each gets the same tokenizer. */
  readonly tokenizerDirectories: readonly string[];
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

/** Train the tokenizer and write it, then sample the corpus and write it. The same seed writes the same bytes. */
export async function buildCorpus(build: CorpusBuild): Promise<CorpusStatistics> {
  const { seed, evaluate } = build;
  const sample = await sampleCorpus({ seed, count: TOKENIZER_DOCUMENTS, evaluate });
  const tokenizer = trainBytePairEncoding(
    sample.map(({ task, output }) => task + output),
    VOCABULARY_SIZE,
  );
  for (const directory of build.tokenizerDirectories) writeTokenizer(tokenizer, directory);

  const documents = await sampleCorpus({
    seed,
    count: build.heldOutDocuments + build.trainingDocuments,
    evaluate,
    accept: ({ task }) => tokenizer.encode(task).length <= LONGEST_TASK_TOKENS,
    ...(build.onProgress && { onProgress: build.onProgress }),
  });
  const encoded: EncodedDocument[] = documents.map(({ task, output }) => ({
    task: tokenizer.encode(task),
    output: tokenizer.encode(output),
  }));
  writeCorpus(join(build.corpusDirectory, 'held-out'), encoded.slice(0, build.heldOutDocuments));
  writeCorpus(join(build.corpusDirectory, 'train'), encoded.slice(build.heldOutDocuments));

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
