/**
 * Crowding: valid tasks pay for being like the others of their batch and of the last few batches, so that a generator which writes one
 * thing over and over earns less by it. With a pool of the batch's valid tasks and those of the last batches,
 *
 *   c_i = mean over the others j of the pool of s(i, j), in [0, 1]
 *   r'_i = max(smallest, r_i − weight · c_i)
 *
 * where `smallest` is the least that a valid task earns without crowding, so the invalid penalty stays below. c_i is not standardised: a
 * batch of unlike tasks pays next to nothing.
 */

/**
 * How crowded each task of a batch is: its mean similarity to the other tasks of the batch and to earlier ones; 0 for a task that is alone.
 * @param similarity s(a, b), symmetric and in [0, 1]
 */
export function crowding<Task>(
  batch: readonly Task[],
  earlier: readonly Task[],
  similarity: (a: Task, b: Task) => number,
): number[] {
  const sums = new Float64Array(batch.length);
  for (let i = 0; i < batch.length; i++) {
    for (let j = i + 1; j < batch.length; j++) {
      const shared = similarity(batch[i]!, batch[j]!);
      sums[i]! += shared;
      sums[j]! += shared;
    }
    for (const task of earlier) sums[i]! += similarity(batch[i]!, task);
  }
  const others = batch.length + earlier.length - 1;
  return Array.from(sums, (sum) => (others > 0 ? sum / others : 0));
}

/** s = 1 for the same topic, else 0: c_i is the share of the others that have the task's topic. */
export function sameTopic(a: string, b: string): number {
  return a === b ? 1 : 0;
}

/** Features scaled to length 1, so that their dot product is a cosine; zeros stay zeros. */
export function unitVector(features: ArrayLike<number>): Float64Array {
  let squares = 0;
  for (let i = 0; i < features.length; i++) squares += features[i]! ** 2;
  const length = Math.sqrt(squares) || 1;
  return Float64Array.from(features, (value) => value / length);
}

/** s = max(0, cos(a, b)) of unit vectors of standardised features: 0 for tasks that have no more in common than labelled tasks have. */
export function cosineSimilarity(a: Float64Array, b: Float64Array): number {
  let dot = 0;
  for (let i = 0; i < a.length; i++) dot += a[i]! * b[i]!;
  return Math.min(1, Math.max(0, dot));
}

/** r' = max(smallest, r − weight · c). */
export function crowdedReward(reward: number, crowded: number, weight: number, smallest: number): number {
  return Math.max(smallest, reward - weight * crowded);
}
