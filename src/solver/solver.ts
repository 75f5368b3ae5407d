/** The Solver interface: questions in, K attempts at each out. */
import type { UsageMeter } from './usage.js';

/** One attempt at a question. `error` is the infrastructure's fault: it is retried, and never counted. */
export interface Attempt {
  /** What the solver wrote. */
  readonly answer: string;
  /** `cut_off`: it ran past its limit, which is a fail whatever it wrote. */
  readonly status: 'answered' | 'cut_off' | 'error';
}

export interface Solver {
  readonly name: string;
  /**
   * For each question its `k` attempts; the same seed gives the same attempts, as far as the solver is deterministic.
   * @param meter counts what a solver that is paid for uses; a local one leaves it alone
   */
  attempt(questions: readonly string[], k: number, seed: number, meter?: UsageMeter): Promise<Attempt[][]>;
  close(): Promise<void>;
}
