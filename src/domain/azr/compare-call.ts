/** What a call of a recorded task came to, against what was recorded of it. */
import { RunError } from '../../errors.js';
import type { CallResult, Outcome } from '../../sandbox/sandbox.js';
import { literalEqual } from './literal.js';

export interface ComparedCall {
  /**
   * `ok`: the recorded output to the character; `literal_equal`: an equal value written another way; `value_equal`: an equal value, and
   * the recorded output is no literal; `recorded_output_differs`: it ran to another value; else the sandbox's outcome.
   */
  readonly outcome: Outcome | 'literal_equal' | 'value_equal' | 'recorded_output_differs';
  readonly detail: string;
  /** Whether the recording can be held against the call: there is one, not cut, and the program imports nothing that it may not. */
  readonly counts: boolean;
}

/** Recordings are cut to two halves of equal length with three dots between; shorter ones with dots in the middle are values. */
const SHORTEST_CUT = 100;

/** @throws {RunError} when the sandbox failed */
export function compareCall(recorded: string, call: CallResult | undefined, sandboxName: string): ComparedCall {
  if (call === undefined || call.outcome === 'sandbox_failure') {
    throw new RunError(`the ${sandboxName} sandbox keeps failing: ${call?.detail ?? 'no result'}`);
  }
  const { outcome, repr, detail } = call;
  const cut = isCut(recorded, repr);
  const counts = recorded !== '' && !cut && !isImportRefused(call);
  if (outcome !== 'ok' || repr === null) return { outcome, detail, counts };
  if (repr === recorded) return { outcome: 'ok', detail: '', counts: true };
  const recording = recorded === '' ? 'nothing' : `${shorten(recorded)}${cut ? ' (cut in the middle)' : ''}`;
  return {
    outcome: literalEqual(repr, recorded) ? 'literal_equal' : 'recorded_output_differs',
    detail: `recorded ${recording}, came out as ${shorten(repr)}`,
    counts,
  };
}

/** A recording may be cut in the middle: `[1, 2...8, 9]`. Where nothing came out, its form must tell. */
function isCut(recorded: string, repr: string | null): boolean {
  const at = recorded.indexOf('...');
  if (at <= 0 || recorded === repr) return false;
  const looksCut = recorded.length >= SHORTEST_CUT && recorded.length === 2 * at + 3;
  if (repr === null) return looksCut;
  // The dots may stand for a single character, so that what is cut is longer than the value was.
  const leftOut = repr.length - (looksCut ? recorded.length - 3 : recorded.length);
  return leftOut > 0 && repr.startsWith(recorded.slice(0, at)) && repr.endsWith(recorded.slice(at + 3));
}

/** A module that is not allowed, or not there at all. */
function isImportRefused({ outcome, detail }: CallResult): boolean {
  if (outcome === 'forbidden') return /^module \S+ is not on the allow-list/.test(detail);
  return outcome === 'runtime_error' && detail.startsWith('ModuleNotFoundError');
}

function shorten(text: string): string {
  return text.length <= 100 ? text : `${text.slice(0, 97)}...`;
}
