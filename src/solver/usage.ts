/** What an endpoint was asked, what it charged and how its answers ended. */

export interface SolverUsage {
  /** Requests sent, failed ones too. */
  readonly requests: number;
  /** Requests sent again, because one before had failed. */
  readonly retries: number;
  /** As the endpoint counts them; of requests without an account nothing is known. */
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Answered requests whose response lacked a token count. */
  readonly unmetered: number;
  /** Attempts that ran into the limit of new tokens, or had no room in the context: fails. */
  readonly cutOff: number;
  /** Attempts without any text: fails too, which say little of the model. */
  readonly empty: number;
  /** Attempts that the model declined by the protocol's own field: fails too. */
  readonly refused: number;
}

/** In the currency of whoever sets them. */
export interface TokenPrices {
  /** Per million prompt tokens. */
  readonly prompt: number;
  /** Per million completion tokens. */
  readonly completion: number;
}

export const NO_USAGE: SolverUsage = {
  requests: 0,
  retries: 0,
  promptTokens: 0,
  completionTokens: 0,
  unmetered: 0,
  cutOff: 0,
  empty: 0,
  refused: 0,
};

/** Adds up as requests are made. */
export class UsageMeter {
  #total = NO_USAGE;

  add(part: Partial<SolverUsage>): void {
    this.#total = sumUsage([this.#total, { ...NO_USAGE, ...part }]);
  }

  get total(): SolverUsage {
    return this.#total;
  }
}

/** A part whose tokens would leave the safe integers counts as unmetered: a sum that is no whole number is none. */
export function sumUsage(parts: readonly SolverUsage[]): SolverUsage {
  const sum = { ...NO_USAGE };
  for (const part of parts) {
    let isMetered = true;
    for (const key of Object.keys(sum) as (keyof SolverUsage)[]) {
      // What was kept by an earlier version lacks the newer counts.
      const next = sum[key] + (part[key] ?? 0);
      if (Number.isSafeInteger(next)) sum[key] = next;
      else isMetered = false;
    }
    if (!isMetered) sum.unmetered++;
  }
  return sum;
}

const MILLION = 1e6;

/** What the tokens came to. */
export function costOf({ promptTokens, completionTokens }: SolverUsage, prices: TokenPrices): number {
  return (promptTokens * prices.prompt + completionTokens * prices.completion) / MILLION;
}

/** `3 answers empty`, a few words for each kind of attempt without an answer that there is. */
export function unansweredNotes({ cutOff, empty, refused }: SolverUsage): string[] {
  const kinds = [
    [cutOff, 'cut off'],
    [empty, 'empty'],
    [refused, 'refused'],
  ] as const;
  return kinds.flatMap(([attempts, how]) =>
    attempts > 0 ? [`${attempts} answer${attempts > 1 ? 's' : ''} ${how}`] : [],
  );
}
