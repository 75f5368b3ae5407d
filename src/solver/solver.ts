/** The Solver interface: questions in, K attempts at each out. */
import type { SolverUsage, UsageMeter } from './usage.js';

/** One attempt at a question. `error` is the infrastructure's fault: it is retried, and never counted. */
export interface Attempt {
  /** What the solver wrote. */
  readonly answer: string;
  /**
   * Fails, whatever was written: `cut_off`, it ran past its limit, or there was no room for it to begin; `empty`, it has no text; `refused`, the
   * model declined.
   */
  readonly status: 'answered' | 'cut_off' | 'empty' | 'refused' | 'error';
}

/** An attempt with where its randomness came from: all attempts of one seed, in the order of `draw`, are one rollout or one request. */
export interface DrawnAttempt extends Attempt {
  /** What the rollout or the request was given; null of an attempt that was not drawn. */
  readonly seed: number | null;
  /** Its place among the samples of that seed. */
  readonly draw: number | null;
}

/** What one request for attempts at a question brought. */
export interface KeptResponse {
  /** Counts the requests after one another, each of which has a seed of its own. */
  readonly round: number;
  /** With their places among the question's K. */
  readonly attempts: readonly (DrawnAttempt & { readonly place: number })[];
  readonly usage: SolverUsage;
}

/** Holds on to what a solver that is paid for has answered, so that a call that is broken off loses none of it. */
export interface AnswerKeeper {
  /** What there is of a call's question, by the question's index, in the order it came. */
  kept(question: number): readonly KeptResponse[];
  /** Called as soon as a response is there. */
  keep(question: number, response: KeptResponse): void;
}

/** For solvers that are paid for, or waited for; a local one leaves it alone. */
export interface AttemptOptions {
  /** Counts what is used; what is kept already is not counted again. */
  readonly meter?: UsageMeter;
  readonly keeper?: AnswerKeeper;
  /** Called every second, with the questions that are done and what there is to tell: `waiting 12 s: status 429`, `3 answers empty`. */
  readonly onProgress?: (done: number, note: string | undefined) => void;
}

export interface Solver {
  readonly name: string;
  /** For each question its `k` attempts; the same seed gives the same attempts, as far as the solver is deterministic. */
  attempt(questions: readonly string[], k: number, seed: number, options?: AttemptOptions): Promise<DrawnAttempt[][]>;
  close(): Promise<void>;
}
