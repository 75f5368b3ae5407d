/** PROPEL's reward: the probe's logit, standardised on the labels; the smallest over an ensemble for worst-case optimisation. */
import { gate } from './gate.js';

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
  return Math.min(...standardised);
}

export interface ProbeRewardSettings {
  /** One scale a probe, in the order of the logits. */
  readonly scales: readonly LogitScale[];
  /** Largest size of a standardised logit; the smallest valid reward is −clip. */
  readonly clip: number;
  /** Reward of an invalid task; must be below −clip. */
  readonly penalty: number;
}

/** One candidate as the probes saw it: one logit a probe, or null for an invalid task, which no probe sees. */
export type ProbeLogits = readonly number[] | null;

/** Rewards of a batch: standardise, clip, take the minimum over probes, gate. */
export function probeRewards(candidates: readonly ProbeLogits[], settings: ProbeRewardSettings): number[] {
  const { scales, clip, penalty } = settings;
  return candidates.map((logits) => {
    if (logits === null) return gate(false, Number.NaN, penalty);
    if (logits.length !== scales.length) throw new RangeError(`${logits.length} logits from ${scales.length} probes`);
    return gate(true, ensembleMinimum(logits.map((logit, j) => standardisedLogit(logit, scales[j]!, clip))), penalty);
  });
}
