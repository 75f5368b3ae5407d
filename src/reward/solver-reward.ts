/** Solver in the loop (SIL): 1 when the solver's pass count is in band, else 0. */

/** r(x) = 1[min ≤ passes ≤ max] of a valid task. */
export function solverReward(passes: number, band: { readonly min: number; readonly max: number }): number {
  return passes >= band.min && passes <= band.max ? 1 : 0;
}
