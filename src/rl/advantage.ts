/**
 * Advantage estimators: rewards and the prompt group of each → advantages, one a sample.
 *
 * With a single prompt GRPO and REINFORCE++-baseline coincide and RLOO differs only by scale; they part when there are several prompts.
 */

/** Keeps the division finite when all rewards of a group agree. */
const EPSILON = 1e-4;

/** `groups[i]` names the prompt of sample i (any integers, in any order). */
export type AdvantageEstimator = (rewards: ArrayLike<number>, groups: ArrayLike<number>) => Float64Array;

/**
 * GRPO: A_i = (r_i − mean)/(std + ε) over the prompt's group, population std, ε = 1e-4. A group of equal rewards gets zeros.
 * Source: Shao et al., "DeepSeekMath", arXiv 2402.03300.
 */
export const grpo: AdvantageEstimator = (rewards, groups) => {
  const advantages = new Float64Array(rewards.length);
  for (const members of groupMembers(rewards, groups)) {
    const { mean, std } = moments(members.map((index) => rewards[index]!));
    for (const index of members) advantages[index] = (rewards[index]! - mean) / (std + EPSILON);
  }
  return advantages;
};

/**
 * RLOO: A_i = r_i − mean of the others' rewards = n/(n−1)·(r_i − r̄) within the prompt's group. A sample that is alone, the others of its
 * group having been lost, has nothing to be compared with and gets 0, as by the other estimators.
 * Source: Ahmadian et al., "Back to Basics", arXiv 2402.14740.
 */
export const rloo: AdvantageEstimator = (rewards, groups) => {
  const advantages = new Float64Array(rewards.length);
  for (const members of groupMembers(rewards, groups)) {
    if (members.length < 2) continue;
    const { mean } = moments(members.map((index) => rewards[index]!));
    const scale = members.length / (members.length - 1);
    for (const index of members) advantages[index] = scale * (rewards[index]! - mean);
  }
  return advantages;
};

/**
 * REINFORCE++-baseline: r_i minus the mean of its prompt's group, then whitened over the whole batch (population std, ε = 1e-4).
 * Source: Hu et al., "REINFORCE++", arXiv 2501.03262.
 */
export const reinforcePlusPlusBaseline: AdvantageEstimator = (rewards, groups) => {
  const centred = new Float64Array(rewards.length);
  for (const members of groupMembers(rewards, groups)) {
    const { mean } = moments(members.map((index) => rewards[index]!));
    for (const index of members) centred[index] = rewards[index]! - mean;
  }
  const { mean, std } = moments(centred);
  return centred.map((value) => (value - mean) / (std + EPSILON));
};

/** The estimators by the name that a configuration gives. */
export const ADVANTAGE_ESTIMATORS = {
  grpo,
  rloo,
  'reinforce++-baseline': reinforcePlusPlusBaseline,
} as const satisfies Record<string, AdvantageEstimator>;

export type AdvantageName = keyof typeof ADVANTAGE_ESTIMATORS;

/** Indices of the samples of each group. */
function groupMembers(rewards: ArrayLike<number>, groups: ArrayLike<number>): number[][] {
  if (rewards.length !== groups.length) throw new RangeError(`${rewards.length} rewards in ${groups.length} groups`);
  const members = new Map<number, number[]>();
  for (let index = 0; index < rewards.length; index++) {
    const group = members.get(groups[index]!);
    if (group) group.push(index);
    else members.set(groups[index]!, [index]);
  }
  return [...members.values()];
}

/** Mean and population standard deviation. */
function moments(values: ArrayLike<number>): { mean: number; std: number } {
  let sum = 0;
  for (let index = 0; index < values.length; index++) sum += values[index]!;
  const mean = sum / values.length;
  let squares = 0;
  for (let index = 0; index < values.length; index++) squares += (values[index]! - mean) ** 2;
  return { mean, std: Math.sqrt(squares / values.length) };
}
