/** PROPEL's reward: the probe's logit, standardised on the labels; the smallest over an ensemble for worst-case optimisation. */

/** Mean and population standard deviation of a probe's logits on the labelled tasks. */
export interface LogitScale {
  readonly mean: number;
  readonly sd: number;
}

/** The scale of a probe from its logits on the labels. Throws `RangeError` when they do not differ: such a probe rewards nothing. */
export function logitScale(logits: ArrayLike<number>): LogitScale {
  let sum = 0;
  for (let index = 0; index < logits.length; index++) sum += logits[index]!;
  const mean = sum / logits.length;
  let squares = 0;
  for (let index = 0; index < logits.length; index++) squares += (logits[index]! - mean) ** 2;
  const sd = Math.sqrt(squares / logits.length);
  if (!(sd > 0)) throw new RangeError('the probe gives every labelled task the same logit');
  return { mean, sd };
}

/** (ℓ − mean)/sd, clipped to ±clip: probes of different temper become comparable, and no single logit can dominate a batch. */
export function standardisedLogit(logit: number, scale: LogitScale, clip: number): number {
  return Math.min(clip, Math.max(-clip, (logit - scale.mean) / scale.sd));
}

/** Worst-case optimisation: r(x) = min_j ℓ_j(x) over standardised logits. A single probe is an ensemble of one. */
export function ensembleMinimum(standardised: readonly number[]): number {
  if (standardised.length === 0) throw new RangeError('an ensemble needs at least one probe');
  return standardised.reduce((least, logit) => Math.min(least, logit), Infinity);
}

/**
 * The reward of a valid task from its logit by each probe: standardise, clip, take the minimum. It is never below −clip. An auxiliary
 * probe of the adversarial arms is one more member: r(x) = min(min_j ℓ_j(x), ℓ_aux(x)).
 */
export function probeReward(logits: readonly number[], scales: readonly LogitScale[], clip: number): number {
  if (logits.length !== scales.length) throw new RangeError(`${logits.length} logits from ${scales.length} probes`);
  return ensembleMinimum(logits.map((logit, j) => standardisedLogit(logit, scales[j]!, clip)));
}
