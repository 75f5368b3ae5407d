/** What code_o and code_i share: the generator writes a program and one call, and the sandbox fills in what it returns. */
import type { CallResult } from '../../sandbox/sandbox.js';
import { badCall, failedBeyondException, guessable } from './call-results.js';
import { tryParseArguments } from './literal.js';
import type { Notation } from './notation.js';
import { perturbedInputs } from './perturb.js';
import type { CallTask, Settled, Writing } from './task.js';

export function proposedCall(notation: Notation, task: CallTask): string {
  return notation.writeProgramAndInput(task);
}

/** The task's own call, then random ones that tell whether its output could be guessed. */
export function callsToCheck(task: CallTask, proposal: string, { settings }: Writing): string[] | null {
  const input = tryParseArguments(task.input);
  if (input === null) return null;
  const guard = settings.validity.distinctOutputs;
  return [task.input, ...(guard === null ? [] : perturbedInputs(input, guard.of - 1, proposal, guard))];
}

export function settleCall<Task extends CallTask>(
  task: Task,
  results: readonly CallResult[],
  { settings: { validity } }: Writing,
): Settled<Task> {
  const [own, ...perturbed] = results;
  if (own === undefined) throw new Error('a task is checked by a call of its program');
  const fault =
    badCall(own, validity) ??
    perturbed.map(failedBeyondException).find((found) => found !== null) ??
    guessable(results, validity);
  return fault ? { task: null, fault } : { task: { ...task, output: own.repr }, fault: null };
}

/** What the sandbox computed. @throws Error for a task that is not checked. */
export function checkedOutput({ output }: CallTask): string {
  if (output === null) throw new Error('a task has an output only once it has been checked');
  return output;
}
