/** The validity gate: an invalid task earns a fixed penalty, below every reward that a valid task can earn. */

/** r(x) if 𝒲(x) = 1, else the penalty (PROPEL, phase 2). `reward` is read for valid tasks only; NaN there is an error. */
export function gate(valid: boolean, reward: number, penalty: number): number {
  if (!valid) return penalty;
  if (Number.isNaN(reward)) throw new RangeError('a valid task has no reward');
  return reward;
}

/** What is wrong with a penalty that does not lie below the smallest valid reward; null when it does. For a configuration's check. */
export function penaltyProblem(penalty: number, smallestReward: number): string | null {
  if (penalty < smallestReward) return null;
  return `the invalid penalty (${penalty}) must be below the smallest reward of a valid task (${smallestReward})`;
}
