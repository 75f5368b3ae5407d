/** What a probe has to beat: features of a text that need no model. */
import type { Matrix } from './matrix.js';

/** Tokens, characters and lines of each text: [texts, 3]. */
export function lengthFeatures(texts: readonly string[], sequences: readonly (readonly number[])[]): Matrix {
  const data = Float32Array.from(
    texts.flatMap((text, i) => [sequences[i]!.length, text.length, text.split('\n').length]),
  );
  return { rows: texts.length, columns: 3, data };
}

/** An n-gram enters when it is in at least this many of the training sequences. */
const MIN_DOCUMENTS = 3;

/** Counts of the token 1- and 2-grams that the `training` rows know: [sequences, n-grams]. */
export function ngramFeatures(sequences: readonly (readonly number[])[], training: readonly number[]): Matrix {
  const documents = new Map<string, number>();
  // A bootstrap draws rows again; a text is one document all the same.
  for (const row of new Set(training)) {
    for (const ngram of new Set(ngrams(sequences[row]!))) documents.set(ngram, (documents.get(ngram) ?? 0) + 1);
  }
  const known = [...documents].filter(([, count]) => count >= MIN_DOCUMENTS).map(([ngram]) => ngram);
  const columnOf = new Map(known.map((ngram, column) => [ngram, column]));
  const columns = known.length;
  const data = new Float32Array(sequences.length * columns);
  sequences.forEach((sequence, row) => {
    for (const ngram of ngrams(sequence)) {
      const column = columnOf.get(ngram);
      if (column !== undefined) data[row * columns + column]!++;
    }
  });
  return { rows: sequences.length, columns, data };
}

function ngrams(sequence: readonly number[]): string[] {
  return sequence.flatMap((token, i) => (i === 0 ? [`${token}`] : [`${token}`, `${sequence[i - 1]} ${token}`]));
}
