/** What the Python side of a sandbox says of a program, read: `prepare` in JSON, `frame` as bytes (see runner.py). */
import type { CallResult, Outcome, SyntaxFacts } from './sandbox.js';

const FRAME_HEAD = 9;
/** Longest detail of one call in UTF-8, with room to spare. */
const DETAIL_BYTES = 4096;

/** Said before any code of the program runs. */
export interface Prepared {
  readonly error: string | null;
  /** For each call that does not parse, why. */
  readonly callErrors: readonly (string | null)[];
  readonly facts: SyntaxFacts | null;
  readonly hashed: boolean;
  readonly ids: boolean;
}

const OUTCOME_OF_STATUS: Readonly<Record<string, Outcome>> = {
  o: 'ok',
  e: 'runtime_error',
  m: 'memory',
  b: 'forbidden',
  s: 'syntax_error',
  l: 'output_limit',
};

/** Most bytes that the frame of `count` calls may take. */
export function frameLimit(count: number, resultBytes: number): number {
  return count * (FRAME_HEAD + Math.max(resultBytes, DETAIL_BYTES));
}

/** Statuses, lengths and texts of `count` calls, as `frame` in runner.py writes them; null when malformed. */
export function parseFrame(frame: Buffer, count: number, resultBytes: number): CallResult[] | null {
  const results: CallResult[] = [];
  let at = 0;
  for (let call = 0; call < count; call++) {
    const outcome = OUTCOME_OF_STATUS[frame.toString('latin1', at, at + 1)];
    const digits = frame.toString('latin1', at + 1, at + FRAME_HEAD);
    if (outcome === undefined || !/^\d{8}$/.test(digits)) return null;
    const start = at + FRAME_HEAD;
    const end = start + Number(digits);
    if (end > frame.length) return null;
    if (end - start > (outcome === 'ok' ? resultBytes : DETAIL_BYTES)) return null;
    const text = frame.toString('utf8', start, end);
    results.push(outcome === 'ok' ? { outcome, repr: text, detail: '' } : failure(outcome, text));
    at = end;
  }
  return at === frame.length ? results : null;
}

/** CPython says SystemError in the few places where it overlooks that an allocation failed. */
export function blameMemory(result: CallResult, isFull: boolean): CallResult {
  const overlooked = isFull && result.outcome === 'runtime_error' && result.detail.startsWith('SystemError');
  return overlooked ? { ...result, outcome: 'memory' } : result;
}

/** Addresses are left out: they depend on what else was asked of the interpreter. */
export function failure(outcome: Outcome, detail: string): CallResult {
  return { outcome, repr: null, detail: detail.replace(/\b0x[0-9a-f]+/g, '0x…') };
}
