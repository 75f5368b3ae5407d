/** Diversity of a set of texts: Self-BLEU-3 and Distinct-3, equal to NLTK's. */

/** A tokenised text. */
export type Words = readonly string[];

/**
 * Words of code: a line break with its indentation, a name's letters, a run of digits, or one punctuation mark. The classes are
 * Python's for Unicode text: letters outside ASCII are in none of them.
 */
const CODE_WORD = /\n *|[A-Za-z_]+|\p{Nd}+|[^\p{L}\p{N}_\s]/gu;

/** Tokenise code for the diversity measures. */
export function codeWords(text: string): string[] {
  return text.match(CODE_WORD) ?? [];
}

/** Distinct n-grams over all n-grams of all texts; null when no text has one. Source: J. Li et al., arXiv 1510.03055. */
export function distinctN(texts: readonly Words[], n: number): number | null {
  const grams = new NgramIds();
  const seen = new Set<number>();
  let total = 0;
  for (const text of texts) {
    for (const gram of grams.ofOrder(text, n)) {
      seen.add(gram);
      total++;
    }
  }
  return total === 0 ? null : seen.size / total;
}

const ORDERS = [1, 2, 3] as const;

/** NLTK's `SmoothingFunction().method1`: an order without a match counts as this many matches. */
const METHOD1_EPSILON = 0.1;

/**
 * Self-BLEU-3: the mean over texts of the sentence BLEU of the text against all others, with weights (1/3, 1/3, 1/3), closest
 * reference length (the shorter of two equally close) and NLTK's smoothing method 1 with ε = 0.1. 1 when all texts are equal; null
 * below two texts. Time is linear in the number of n-grams: for each n-gram only the two largest counts over texts are needed, since
 * the largest count among the *others* is the first or, when the first is the text's own, the second.
 *
 * Sources: K. Papineni et al., "BLEU" (ACL 2002); Y. Zhu et al., "Texygen" (arXiv 1802.01886) for Self-BLEU.
 */
export function selfBleu3(texts: readonly Words[]): number | null {
  if (texts.length < 2) return null;
  const grams = new NgramIds();
  const counts = ORDERS.map((order) => texts.map((text) => countOf(grams.ofOrder(text, order))));
  const largest = counts.map(largestCounts);
  const referenceLength = closestOtherLength(texts.map((text) => text.length));

  let sum = 0;
  for (let text = 0; text < texts.length; text++) {
    const length = texts[text]!.length;
    let logPrecision = 0;
    let unigramMatches = 0;
    for (const order of ORDERS) {
      let matches = 0;
      let total = 0;
      for (const [gram, count] of counts[order - 1]![text]!) {
        const most = largest[order - 1]!.get(gram)!;
        matches += Math.min(count, most.owner === text ? most.second : most.first);
        total += count;
      }
      if (order === 1) unigramMatches = matches;
      logPrecision += Math.log((matches === 0 ? METHOD1_EPSILON : matches) / Math.max(1, total)) / ORDERS.length;
    }
    if (unigramMatches === 0) continue; // no word in common: BLEU is 0 whatever the smoothing
    const reference = referenceLength(length);
    const brevityPenalty = length > reference ? 1 : Math.exp(1 - reference / length);
    sum += brevityPenalty * Math.exp(logPrecision);
  }
  return sum / texts.length;
}

/** Numbers n-grams: each is its (n−1)-gram's number joined with its last word's, so no two n-grams of one order share one. */
class NgramIds {
  readonly #words = new Map<string, number>();
  readonly #longer = new Map<number, number>();

  /** One number an n-gram of the text, in order, repeats kept. */
  ofOrder(text: Words, order: number): number[] {
    const ids = text.map((word) => number(this.#words, word));
    const grams: number[] = [];
    for (let end = order; end <= ids.length; end++) {
      let gram = ids[end - order]!;
      for (let position = end - order + 1; position < end; position++) {
        // 2^26 words and 2^27 prefixes fit exactly in a double.
        gram = number(this.#longer, gram * 0x4000000 + ids[position]!);
      }
      grams.push(gram);
    }
    return grams;
  }
}

function number<Key>(known: Map<Key, number>, key: Key): number {
  let id = known.get(key);
  if (id === undefined) known.set(key, (id = known.size));
  return id;
}

function countOf(grams: readonly number[]): Map<number, number> {
  const counts = new Map<number, number>();
  for (const gram of grams) counts.set(gram, (counts.get(gram) ?? 0) + 1);
  return counts;
}

interface LargestCounts {
  first: number;
  /** The text that has the first. */
  owner: number;
  second: number;
}

function largestCounts(perText: readonly Map<number, number>[]): Map<number, LargestCounts> {
  const largest = new Map<number, LargestCounts>();
  perText.forEach((counts, text) => {
    for (const [gram, count] of counts) {
      const most = largest.get(gram);
      if (most === undefined) largest.set(gram, { first: count, owner: text, second: 0 });
      else if (count > most.first) {
        most.second = most.first;
        most.first = count;
        most.owner = text;
      } else if (count > most.second) most.second = count;
    }
  });
  return largest;
}

/** The length of another text that is closest to a text's own length, the shorter on a tie. */
function closestOtherLength(lengths: readonly number[]): (length: number) => number {
  const howMany = countOf(lengths);
  const sorted = [...howMany.keys()].sort((a, b) => a - b);
  const place = new Map(sorted.map((length, index) => [length, index]));
  return (length) => {
    if (howMany.get(length)! > 1) return length;
    const index = place.get(length)!;
    const shorter = sorted[index - 1];
    const longer = sorted[index + 1];
    if (shorter === undefined) return longer!;
    if (longer === undefined) return shorter;
    return length - shorter <= longer - length ? shorter : longer;
  };
}
