/** How several passes of one program over different interpreters become one result a call. */
import type { CallResult } from './sandbox.js';

/** Passes that a program needs: one more with another hash seed, and at least four seeds in all where hash order may matter. */
export const PASSES = { plain: 2, hashed: 4 } as const;

const SHOWN = 80;

/**
 * The first pass with what a later one says of it. A call that failed first stays as it is; one that was `ok` must give the
 * same repr again, else it is `nondeterministic`. Limits met only later (time, memory, output) and failures keep their name.
 */
export function mergePass(first: readonly CallResult[], later: readonly CallResult[]): CallResult[] {
  return first.map((call, index) => {
    const again = later[index];
    if (call.outcome !== 'ok' || again === undefined) return call;
    switch (again.outcome) {
      case 'ok':
        if (again.repr === call.repr) return call;
        return nondeterministic(`gave ${shorten(call.repr ?? '')}, then ${shorten(again.repr ?? '')}`);
      case 'timeout':
      case 'memory':
      case 'output_limit':
      case 'sandbox_failure':
        return { ...again, detail: `on a later run: ${again.detail}` };
      default:
        return nondeterministic(`gave ${shorten(call.repr ?? '')}, then failed: ${shorten(again.detail)}`);
    }
  });
}

/** Turns every `ok` call into `nondeterministic`, for a program that was seen to read the clock or entropy. */
export function markNondeterministic(calls: readonly CallResult[], detail: string): CallResult[] {
  return calls.map((call) => (call.outcome === 'ok' ? nondeterministic(detail) : call));
}

function nondeterministic(detail: string): CallResult {
  return { outcome: 'nondeterministic', repr: null, detail };
}

/** Short enough for a message, and without addresses, which depend on how the program was asked. */
function shorten(value: string): string {
  const text = value.replace(/\b0x[0-9a-f]+/g, '0x…');
  return text.length <= SHOWN ? text : `${text.slice(0, SHOWN)}…`;
}
