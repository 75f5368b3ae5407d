/** What a solver behind an endpoint used in a run, and what that came to. */
import { costOf, sumUsage, unansweredNotes, type SolverUsage } from '../solver/usage.js';
import type { Phase } from '../store/rows.js';
import type { RunStore } from '../store/store.js';
import type { Config } from './config.js';

export interface SolverAccount extends SolverUsage {
  /** In the currency of `solver.prices`; null without prices. */
  readonly cost: number | null;
}

/** Over the committed batches, of one phase or of the run; null where no endpoint was asked. */
export function accountOf(
  { config, store }: { readonly config: Pick<Config, 'solver'>; readonly store: RunStore },
  phase?: Phase,
): SolverAccount | null {
  const rows = store.solverUsage(phase === undefined ? {} : { phase });
  if (rows.length === 0) return null;
  const usage = sumUsage(rows);
  const { prices } = config.solver;
  return { ...usage, cost: prices && costOf(usage, prices) };
}

/** One line for people. */
export function describeAccount(account: SolverAccount): string {
  const { requests, retries, promptTokens, completionTokens, unmetered, cost } = account;
  const parts = [
    `${requests} requests to the solver, ${retries} of them retries`,
    `${promptTokens} prompt and ${completionTokens} completion tokens`,
    ...(unmetered > 0 ? [`${unmetered} responses without token counts`] : []),
    ...unansweredNotes(account),
    ...(cost === null ? [] : [`cost ${cost.toFixed(2)}`]),
  ];
  return parts.join('; ');
}
