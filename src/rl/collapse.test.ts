import { describe, expect, test } from 'vitest';
import { collapseOf, hasSignal, lastTrusted, silentSteps } from './collapse.js';
import type { StepFigures } from './collapse.js';

const RULES = { klStop: 8, noSignalStop: 3 };

/** Steps from 1: a letter each. `.` is healthy, `k` too far from its start, `0` has no valid task, `=` earned the same throughout. */
function steps(letters: string): StepFigures[] {
  return [...letters].map((letter, i) => ({
    step: i + 1,
    klPerSequence: letter === 'k' ? 8.5 : 8,
    validity: letter === '0' ? 0 : 0.5,
    signal: letter !== '0' && letter !== '=',
  }));
}

const since = (letters: string, ended = false) => collapseOf(steps(letters), RULES, ended)?.since ?? null;

describe('a step has a signal', () => {
  test('when a sample did better or worse than its group', () => {
    expect(hasSignal([0, 0, -0.5])).toBe(true);
    expect(hasSignal([0, 0.01, 0])).toBe(true);
  });

  test('not when equal rewards left nothing but rounding', () => {
    expect(hasSignal([0, -1e-12, 1e-12])).toBe(false);
    expect(hasSignal([])).toBe(false);
  });
});

describe('training has collapsed', () => {
  test('at a step whose samples are further from the start than the limit, not at it', () => {
    expect(since('....k')).toBe(5);
    expect(since('.....')).toBeNull();
    expect(collapseOf(steps('.k'), RULES, false)!.reason).toBe('KL of 8.50 nats a sequence, above 8');
    expect(collapseOf(steps('.k'), { ...RULES, klStop: null }, true)).toBeNull();
  });

  test('after so many steps in a row without a signal, from the first of them', () => {
    expect(since('..000')).toBe(3);
    expect(since('..=0=')).toBe(3);
    expect(since('..00')).toBeNull();
    expect(since('000.')).toBeNull();
    expect(collapseOf(steps('.000'), RULES, false)!.reason).toBe(
      'no valid task in steps 2 to 4, so there was nothing to learn from',
    );
    expect(collapseOf(steps('.0=0'), RULES, false)!.reason).toBe(
      'all samples of a task type earned the same in steps 2 to 4, so there was nothing to learn from',
    );
  });

  test('at the end, when no step at all had one', () => {
    expect(since('00')).toBeNull();
    expect(since('00', true)).toBe(1);
    expect(since('.00', true)).toBeNull();
    expect(collapseOf(steps('0'), RULES, true)!.reason).toContain('no valid task in step 1,');
    expect(collapseOf([], RULES, true)).toBeNull();
  });

  test('by both rules, from the earlier', () => {
    const both = steps('..00').concat({ step: 5, klPerSequence: 9, validity: 0, signal: false });
    expect(collapseOf(both, RULES, false)).toEqual({
      reason:
        'KL of 9.00 nats a sequence, above 8, and no valid task in steps 3 to 5, so there was nothing to learn from',
      since: 3,
    });
  });
});

test('steps in a row without a signal, up to the last', () => {
  expect(silentSteps(steps('0.=0')).map(({ step }) => step)).toEqual([3, 4]);
  expect(silentSteps(steps('0.'))).toEqual([]);
  expect(silentSteps(steps('00'))).toHaveLength(2);
});

test('what is trusted is the last checkpoint that a step has sampled from before the collapse showed', () => {
  // The samples of step 11 show it: they are those of the policy after step 10.
  expect(lastTrusted([5, 10, 11], { reason: '', since: 11 })).toBe(5);
  // After step 10 came step 11, which passed; step 12 did not.
  expect(lastTrusted([5, 10, 12], { reason: '', since: 12 })).toBe(10);
  expect(lastTrusted([5, 6], { reason: '', since: 6 })).toBe(0);
  expect(lastTrusted([], { reason: '', since: 1 })).toBe(0);
});
