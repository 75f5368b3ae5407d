import { describe, expect, it } from 'vitest';
import { markNondeterministic, mergePass } from './determinism.js';
import type { CallResult } from './sandbox.js';

const ok = (repr: string): CallResult => ({ outcome: 'ok', repr, detail: '' });
const failed = (outcome: CallResult['outcome'], detail: string): CallResult => ({ outcome, repr: null, detail });

describe('mergePass', () => {
  it('keeps a result that came out alike and one that failed first', () => {
    const first = [ok('1'), failed('runtime_error', 'KeyError: 3')];
    expect(mergePass(first, [ok('1'), ok('7')])).toEqual(first);
  });

  it('names both values when they differ', () => {
    expect(mergePass([ok('[1, 2]')], [ok('[2, 1]')])).toEqual([failed('nondeterministic', 'gave [1, 2], then [2, 1]')]);
  });

  it('calls a result that turned into an error nondeterministic', () => {
    expect(mergePass([ok('1')], [failed('runtime_error', 'KeyError: 3')])).toEqual([
      failed('nondeterministic', 'gave 1, then failed: KeyError: 3'),
    ]);
  });

  it.each(['timeout', 'memory', 'output_limit', 'sandbox_failure'] as const)(
    'keeps the name of a later %s',
    (outcome) => {
      expect(mergePass([ok('1')], [failed(outcome, 'why')])).toEqual([failed(outcome, 'on a later run: why')]);
    },
  );

  it('leaves addresses out of the message', () => {
    const [merged] = mergePass([ok('<object object at 0xd50450>')], [ok('<object object at 0xdc9c80>')]);
    expect(merged?.detail).toBe('gave <object object at 0x…>, then <object object at 0x…>');
  });

  it('shows at most 80 characters of each value', () => {
    const [merged] = mergePass([ok('a'.repeat(200))], [ok('b')]);
    expect(merged?.detail).toBe(`gave ${'a'.repeat(80)}…, then b`);
  });
});

describe('markNondeterministic', () => {
  it('turns only what was ok', () => {
    expect(markNondeterministic([ok('1'), failed('memory', 'm')], 'the program read the clock')).toEqual([
      failed('nondeterministic', 'the program read the clock'),
      failed('memory', 'm'),
    ]);
  });
});
