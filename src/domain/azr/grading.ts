/** Grading: each distinct answer once, several at a time, and what is asked of the sandbox for it. */
import { RunError } from '../../errors.js';
import type { CallResult, Program } from '../../sandbox/sandbox.js';
import { mapBounded } from './bounded.js';
import type { Grader } from './task.js';

/** Programs given to the sandbox at once, for each that it can run: the next one is there when a worker is free. */
export const QUEUED_PER_WORKER = 2;

/** One verdict an answer, in order; answers of the same text are graded once. A text without an answer (null) has `unanswered`. */
export async function gradeEach<Verdict>(
  answers: readonly (string | null)[],
  { sandbox }: Grader,
  grade: (answer: string) => Promise<Verdict>,
  unanswered: Verdict,
): Promise<Verdict[]> {
  const distinct = [...new Set(answers.filter((answer) => answer !== null))];
  const verdicts = await mapBounded(distinct, sandbox.size * QUEUED_PER_WORKER, grade);
  const verdictOf = new Map(distinct.map((answer, index) => [answer, verdicts[index]!]));
  return answers.map((answer) => (answer === null ? unanswered : verdictOf.get(answer)!));
}

/**
 * One run of a program in an interpreter of its own, one result a call. An answer need not be deterministic, only right.
 * @throws {RunError} when the sandbox keeps failing
 */
export async function runCalls(program: Program, { sandbox, limits }: Grader): Promise<readonly CallResult[]> {
  const { calls } = await sandbox.run(program, { limits, determinism: false });
  const failure = calls.find(({ outcome }) => outcome === 'sandbox_failure');
  if (failure !== undefined) throw new RunError(`the ${sandbox.name} sandbox keeps failing: ${failure.detail}`);
  return calls;
}
