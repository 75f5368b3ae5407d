/** How well scores tell positives from negatives, and how honest probabilities are. */

/** Labels as booleans or 0/1. */
export type Labels = ArrayLike<boolean | number>;

/**
 * Area under the ROC curve: the chance that a positive scores above a negative, ties counting half (Mann–Whitney U / n₊n₋).
 * NaN when one class is missing.
 */
export function auroc(labels: Labels, scores: ArrayLike<number>): number {
  requireEqualLengths(labels, scores);
  const order = ascending(scores);
  let positives = 0;
  let rankSum = 0;
  for (let start = 0; start < order.length;) {
    const end = tieEnd(order, scores, start);
    const middleRank = (start + 1 + end) / 2;
    for (let position = start; position < end; position++) {
      if (labels[order[position]!]) {
        positives++;
        rankSum += middleRank;
      }
    }
    start = end;
  }
  const negatives = order.length - positives;
  return (rankSum - (positives * (positives + 1)) / 2) / (positives * negatives);
}

/**
 * Average precision Σ (recallᵢ − recallᵢ₋₁)·precisionᵢ over the distinct thresholds from high to low, not interpolated (as in
 * scikit-learn). NaN without positives.
 */
export function averagePrecision(labels: Labels, scores: ArrayLike<number>): number {
  requireEqualLengths(labels, scores);
  const order = ascending(scores).reverse();
  let positives = 0;
  for (let index = 0; index < labels.length; index++) if (labels[index]) positives++;
  let found = 0;
  let sum = 0;
  for (let start = 0; start < order.length;) {
    const end = tieEnd(order, scores, start);
    let gained = 0;
    for (let position = start; position < end; position++) if (labels[order[position]!]) gained++;
    found += gained;
    sum += gained * (found / end);
    start = end;
  }
  return sum / positives;
}

/** Brier score: the mean squared difference between probability and outcome. */
export function brierScore(labels: Labels, probabilities: ArrayLike<number>): number {
  requireEqualLengths(labels, probabilities);
  let sum = 0;
  for (let index = 0; index < labels.length; index++) sum += (probabilities[index]! - Number(labels[index])) ** 2;
  return sum / labels.length;
}

/** One bin of a reliability diagram. */
export interface ReliabilityBin {
  readonly count: number;
  /** Mean predicted probability. */
  readonly predicted: number;
  /** Share of positives. */
  readonly observed: number;
}

/**
 * Reliability over `bins` bins of equal mass, by ascending probability. Equal probabilities share a bin, the lowest that any of them
 * falls into, so that the order of the rows does not matter; bins left empty by that are dropped.
 */
export function reliabilityBins(labels: Labels, probabilities: ArrayLike<number>, bins: number): ReliabilityBin[] {
  requireEqualLengths(labels, probabilities);
  if (!Number.isInteger(bins) || bins < 1)
    throw new RangeError(`a reliability diagram needs at least one bin, not ${bins}`);
  const order = ascending(probabilities);
  const sums = Array.from({ length: bins }, () => ({ count: 0, predicted: 0, observed: 0 }));
  for (let start = 0; start < order.length;) {
    const end = tieEnd(order, probabilities, start);
    const bin = sums[Math.floor((start * bins) / order.length)]!;
    for (let position = start; position < end; position++) {
      bin.count++;
      bin.predicted += probabilities[order[position]!]!;
      bin.observed += Number(labels[order[position]!]);
    }
    start = end;
  }
  return sums
    .filter(({ count }) => count > 0)
    .map(({ count, predicted, observed }) => ({ count, predicted: predicted / count, observed: observed / count }));
}

/**
 * Expected calibration error over equal-mass bins: Σ (n_b / n)·|observed_b − predicted_b|.
 * Sources: Guo et al., arXiv 1706.04599; equal mass: Nguyen and O'Connor, arXiv 1508.05154.
 */
export function expectedCalibrationError(labels: Labels, probabilities: ArrayLike<number>, bins: number): number {
  let error = 0;
  for (const { count, predicted, observed } of reliabilityBins(labels, probabilities, bins)) {
    error += (count / labels.length) * Math.abs(observed - predicted);
  }
  return error;
}

function requireEqualLengths(labels: ArrayLike<unknown>, scores: ArrayLike<number>): void {
  if (labels.length !== scores.length) throw new RangeError(`${labels.length} labels for ${scores.length} scores`);
}

/** Indices by ascending score; equal scores keep their order. */
function ascending(scores: ArrayLike<number>): number[] {
  return Array.from({ length: scores.length }, (_, index) => index).sort((a, b) => scores[a]! - scores[b]!);
}

/** End of the run of equal scores that starts at `start`. */
function tieEnd(order: readonly number[], scores: ArrayLike<number>, start: number): number {
  let end = start + 1;
  while (end < order.length && scores[order[end]!] === scores[order[start]!]) end++;
  return end;
}
