/** A solver whose attempts do not say what drew them, for tests of what they are. */
import type { Attempt, Solver } from '../src/solver/solver.js';

export type SolverWithoutSeeds = Omit<Solver, 'attempt'> & {
  attempt(...args: Parameters<Solver['attempt']>): Promise<Attempt[][]>;
};

export function withoutSeeds(solver: Solver): SolverWithoutSeeds {
  return {
    name: solver.name,
    close: () => solver.close(),
    attempt: async (...args) =>
      (await solver.attempt(...args)).map((own) => own.map(({ answer, status }) => ({ answer, status }))),
  };
}
