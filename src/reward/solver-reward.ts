/** The solver-in-the-loop baseline: 1 when the solver's pass count is in band, else 0. */
import { gate } from './gate.js';

/** Smallest reward of a valid task, which the penalty must lie below. */
export const SMALLEST_SOLVER_REWARD = 0;

/** One candidate as the solver saw it. `passes` counts only when valid. */
export interface SolverScored {
  readonly valid: boolean;
  readonly passes: number;
}

/** Rewards of a batch: r(x) = 1[min ≤ passes ≤ max] for valid tasks, the penalty for the others. */
export function solverRewards(
  candidates: readonly SolverScored[],
  band: { readonly min: number; readonly max: number },
  penalty: number,
): number[] {
  return candidates.map(({ valid, passes }) => gate(valid, passes >= band.min && passes <= band.max ? 1 : 0, penalty));
}
