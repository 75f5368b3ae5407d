/** Controls: what is gained when valid tasks earn the same whatever they are, or something by chance. */

/** r(x) = 1 of a valid task: the validity gate alone. */
export const VALID_REWARD = 1;

/** r(x) uniform in [0, 1) for each valid task, drawn from a stream of its own: the gate kept, the signal removed. */
export function randomRewards(count: number, random: () => number): number[] {
  return Array.from({ length: count }, random);
}
