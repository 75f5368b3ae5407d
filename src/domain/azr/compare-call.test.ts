import { describe, expect, it } from 'vitest';
import { failed } from '../../../tests/fake-sandbox.js';
import { RunError } from '../../errors.js';
import type { CallResult } from '../../sandbox/sandbox.js';
import { compareCall } from './compare-call.js';

const ok = (repr: string): CallResult => ({ outcome: 'ok', repr, detail: '' });
const compare = (recorded: string, call: CallResult) => {
  const { outcome, counts } = compareCall(recorded, call, 'fake');
  return [outcome, counts];
};
const half = 'x'.repeat(60);

describe('a call against its recording', () => {
  it('is the same, equal, or different', () => {
    expect(compare('[1, 2]', ok('[1, 2]'))).toEqual(['ok', true]);
    expect(compare('[1,2]', ok('[1, 2]'))).toEqual(['literal_equal', true]);
    expect(compare('[1, 3]', ok('[1, 2]'))).toEqual(['recorded_output_differs', true]);
    expect(compare('dict(a=1)', ok("{'a': 1}"))).toEqual(['recorded_output_differs', true]);
  });

  it('does not count when nothing was recorded, or half of it', () => {
    expect(compare('', ok('1'))).toEqual(['recorded_output_differs', false]);
    expect(compare('[1, ...4]', ok('[1, 2, 3, 4]'))).toEqual(['recorded_output_differs', false]);
    expect(compare(`${half}...${half}`, failed('output_limit', ''))).toEqual(['output_limit', false]);
    // One character was left out, and three dots written for it.
    expect(compare(`${half}...${half}`, ok(`${half}y${half}`))).toEqual(['recorded_output_differs', false]);
  });

  it('counts when dots are part of the value', () => {
    expect(compare("'a...b'", ok("'a...b'"))).toEqual(['ok', true]);
    expect(compare("'a...b'", ok("'a..b'"))).toEqual(['recorded_output_differs', true]);
    expect(compare("'a...b'", failed('timeout', ''))).toEqual(['timeout', true]);
  });

  it('does not count when the program imports what it may not', () => {
    expect(compare('1', failed('forbidden', 'module socket is not on the allow-list'))).toEqual(['forbidden', false]);
    expect(compare('1', failed('runtime_error', "ModuleNotFoundError: No module named 'sympy'"))).toEqual([
      'runtime_error',
      false,
    ]);
    expect(compare('1', failed('forbidden', 'file access: open'))).toEqual(['forbidden', true]);
    expect(compare('1', failed('runtime_error', 'KeyError: 1'))).toEqual(['runtime_error', true]);
  });

  it('is never held against the program when the sandbox fails', () => {
    expect(() => compare('1', failed('sandbox_failure', 'no worker starts'))).toThrow(RunError);
  });
});
