/** The logit of "in band" from a head over pass counts. */

/**
 * Log-odds of the band under a softmax over pass counts 0..K with logits u_c: LSE_{c in band} u_c − LSE_{c not in band} u_c,
 * which is log P(band) − log(1 − P(band)) without rounding either probability to 0 or 1.
 */
export function bandLogit(
  countLogits: ArrayLike<number>,
  band: { readonly min: number; readonly max: number },
): number {
  const inside: number[] = [];
  const outside: number[] = [];
  for (let count = 0; count < countLogits.length; count++) {
    (count >= band.min && count <= band.max ? inside : outside).push(countLogits[count]!);
  }
  if (inside.length === 0 || outside.length === 0) {
    throw new RangeError(`band ${band.min} to ${band.max} leaves no counts in or out of ${countLogits.length}`);
  }
  return logSumExp(inside) - logSumExp(outside);
}

/** log Σ exp(v), with the largest value taken out first. */
function logSumExp(values: readonly number[]): number {
  const largest = values.reduce((most, value) => Math.max(most, value), -Infinity);
  return largest + Math.log(values.reduce((sum, value) => sum + Math.exp(value - largest), 0));
}

/** The probability of a logit. */
export function sigmoid(logit: number): number {
  return logit >= 0 ? 1 / (1 + Math.exp(-logit)) : 1 - 1 / (1 + Math.exp(logit));
}
