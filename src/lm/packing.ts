/** Sequences of like length share a pass, so that little of it is padding. */

export interface BatchLimits {
  /** Sequences in a batch. */
  readonly rows: number;
  /** Tokens in a batch, padding included; a longer sequence has a batch of its own. */
  readonly tokens: number;
  /** Whether so many sequences fit at the length of the longest; a sequence that does not fit has a batch of its own. */
  readonly fits?: ((rows: number, longest: number) => boolean) | undefined;
}

/** Indices of sequences, shortest first, cut into batches; it depends on nothing but the lengths and the limits. */
export function packByLength(lengths: readonly number[], { rows, tokens, fits = () => true }: BatchLimits): number[][] {
  const order = lengths.map((_, i) => i).sort((a, b) => lengths[a]! - lengths[b]! || a - b);
  const batches: number[][] = [];
  for (const i of order) {
    const batch = batches.at(-1);
    const next = (batch?.length ?? 0) + 1;
    if (batch && next <= rows && next * lengths[i]! <= tokens && fits(next, lengths[i]!)) batch.push(i);
    else batches.push([i]);
  }
  return batches;
}
