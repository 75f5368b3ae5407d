/** Runs cases against a sandbox and says which it answers as it must. */
import { CASES, type Case } from './cases.js';
import type { CallResult, Sandbox } from './sandbox.js';

export interface SelfTestResult {
  readonly name: string;
  readonly ok: boolean;
  /** What differed; empty when `ok`. */
  readonly detail: string;
  /** What came out of each call: `ok 3`, `timeout`. */
  readonly outcomes: readonly string[];
}

/** The ordinary cases, one after the other: about a second. Every sandbox must pass all of them. */
export async function selfTest(sandbox: Sandbox, cases: readonly Case[] = CASES): Promise<SelfTestResult[]> {
  const results: SelfTestResult[] = [];
  for (const { name, code, calls, expect, limits } of cases) {
    const { calls: got } = await sandbox.run({ code, calls }, limits === undefined ? {} : { limits });
    const differences = expect.flatMap((expected, index) => {
      const call = got[index];
      return call !== undefined && matches(call, expected) ? [] : [`call ${index + 1}: ${describe(call)}`];
    });
    const outcomes = expect.map((_, index) => brief(got[index]));
    results.push({ name, ok: differences.length === 0, detail: differences.join('; '), outcomes });
  }
  return results;
}

function matches(call: CallResult, expected: Case['expect'][number]): boolean {
  if ('repr' in expected) return call.outcome === 'ok' && call.repr === expected.repr;
  return call.outcome === expected.outcome && call.detail.includes(expected.detail);
}

function describe(call: CallResult | undefined): string {
  if (call === undefined) return 'no result';
  return call.outcome === 'ok' ? `ok ${call.repr}` : `${call.outcome} (${call.detail})`;
}

function brief(call: CallResult | undefined): string {
  return call?.outcome === 'ok' ? `ok ${call.repr}` : (call?.outcome ?? 'no result');
}
