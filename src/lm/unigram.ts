/**
 * Unigram segmentation (Kudo 2018): the most probable way to write a piece in tokens, by Viterbi. Many ways are as probable as each other (of spaces
 * in other orders, say): which of them is taken follows from the order in which the tokenizers library tries them, and adds their scores.
 */
interface Branch {
  readonly next: Map<string, Branch>;
  /** The token that ends here. */
  token: { readonly text: string; readonly score: number } | null;
}

/** Below the least score: of a character that is no token. */
const UNKNOWN_PENALTY = 10;

/**
 * A score as serde_json reads its digits: as a whole number that is then divided by a power of ten, which may be off by a last bit. Two ways
 * to write a piece that are as probable are told apart by such bits.
 */
function asRead(score: number): number {
  const [digits, exponent] = Math.abs(score).toExponential().split('e') as [string, string];
  const [whole, fraction = ''] = digits.split('.') as [string, string?];
  const power = Number(exponent) - fraction.length;
  const significand = Number(whole + fraction);
  const size = power < 0 ? significand / 10 ** -power : significand * 10 ** power;
  return score < 0 ? -size : size;
}

/**
 * @param vocab texts with their scores, in the order of ids
 * @returns from a piece to the texts of its tokens, runs of unknown characters together as `unknown`
 */
export function unigramModel(
  vocab: readonly (readonly [text: string, score: number])[],
  unknown: string | null,
): (piece: string) => string[] {
  const root: Branch = { next: new Map(), token: null };
  let least = Infinity;
  for (const [text, written] of vocab) {
    const score = asRead(written);
    least = Math.min(least, score);
    let at = root;
    for (const character of text) {
      let branch = at.next.get(character);
      if (!branch) at.next.set(character, (branch = { next: new Map(), token: null }));
      at = branch;
    }
    at.token = { text, score };
  }
  const unknownScore = least - UNKNOWN_PENALTY;
  return (piece) => {
    const characters = [...piece];
    // Of the best way to write the characters before each place: its score, where its last token begins, and that token; null where it is unknown.
    const best: ({ score: number; from: number; token: string | null } | undefined)[] = [];
    for (let from = 0; from < characters.length; from++) {
      const before = from === 0 ? 0 : best[from]!.score;
      const offer = (to: number, score: number, token: string | null): void => {
        const found = best[to];
        if (!found || score + before > found.score) best[to] = { score: score + before, from, token };
      };
      let isWritten = false;
      let branch = root.next.get(characters[from]!);
      for (let to = from + 1; branch; branch = branch.next.get(characters[to++]!)) {
        if (!branch.token) continue;
        isWritten ||= to === from + 1;
        offer(to, branch.token.score, branch.token.text);
      }
      if (!isWritten) offer(from + 1, unknownScore, null);
    }
    const tokens: (string | null)[] = [];
    for (let end = characters.length; end > 0; end = best[end]!.from) tokens.push(best[end]!.token);
    const inOrder = tokens.reverse().filter((token, i, all) => token !== null || all[i - 1] !== null);
    return inOrder.flatMap((token) => token ?? unknown ?? []);
  };
}
