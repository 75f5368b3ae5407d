/** What an endpoint was asked and what it charged. */

export interface SolverUsage {
  /** Requests sent, failed ones too. */
  readonly requests: number;
  /** Requests sent again, because one before had failed. */
  readonly retries: number;
  /** As the endpoint counts them; of requests without an account nothing is known. */
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Answered requests whose response had no token counts. */
  readonly unmetered: number;
}

/** In the currency of whoever sets them. */
export interface TokenPrices {
  /** Per million prompt tokens. */
  readonly prompt: number;
  /** Per million completion tokens. */
  readonly completion: number;
}

export const NO_USAGE: SolverUsage = { requests: 0, retries: 0, promptTokens: 0, completionTokens: 0, unmetered: 0 };

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

export function sumUsage(parts: readonly SolverUsage[]): SolverUsage {
  const sum = { ...NO_USAGE };
  for (const part of parts) {
    for (const key of Object.keys(sum) as (keyof SolverUsage)[]) sum[key] += part[key];
  }
  return sum;
}

const MILLION = 1e6;

/** What the tokens came to. */
export function costOf({ promptTokens, completionTokens }: SolverUsage, prices: TokenPrices): number {
  return (promptTokens * prices.prompt + completionTokens * prices.completion) / MILLION;
}
