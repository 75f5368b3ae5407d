/** What results of calls say of a task: the faults that its validity looks for. */
import type { CallResult } from '../../sandbox/sandbox.js';
import { tryParseLiteral } from './literal.js';
import type { ValiditySettings } from './settings.js';
import type { Fault } from './task.js';

/** Why a call of the task's own makes it invalid; null when its result can be an expected output. */
export function badCall(call: CallResult, settings: ValiditySettings): Fault | null {
  return failedCall(call) ?? badResult(call.repr ?? '', settings);
}

function failedCall({ outcome, detail }: CallResult): Fault | null {
  return outcome === 'ok' ? null : { outcome, detail };
}

function badResult(repr: string, settings: ValiditySettings): Fault | null {
  if (repr === 'None' && settings.noneResult === 'reject') return { outcome: 'none_result', detail: 'f returned None' };
  if (tryParseLiteral(repr) === null)
    return { outcome: 'not_literal', detail: `the result is no literal: ${repr.slice(0, 80)}` };
  const length = Array.from(repr).length;
  return length <= settings.maxReprLength ? null : { outcome: 'too_long', detail: `a result of ${length} characters` };
}

/** An exception on a random input is an output like another; a time-out or non-determinism is a fault of the program. */
export function failedBeyondException(call: CallResult): Fault | null {
  const fault = call.outcome === 'runtime_error' ? null : failedCall(call);
  return fault && { ...fault, detail: `on a random input: ${fault.detail}` };
}

/** All exceptions together count as one output. */
export function guessable(calls: readonly CallResult[], settings: ValiditySettings): Fault | null {
  if (settings.distinctOutputs === null) return null;
  const distinct = new Set(calls.map(({ repr }) => repr)).size;
  if (distinct >= settings.distinctOutputs.atLeast) return null;
  return { outcome: 'guessable', detail: `${distinct} distinct outputs on ${calls.length} inputs` };
}
