import { describe, expect, test } from 'vitest';
import { describeOutcomes, outcomesInWords } from './invalid-outcomes.js';

const row = (outcome: string, completion = '', detail = '') => ({
  valid: outcome === 'ok',
  outcome,
  completion,
  detail,
});

const ROWS = [
  row('ok'),
  row('cut_off', 'Sure! Here is\n a  function', 'no end within 40 tokens'),
  row('unparsable', 'I am', 'not a program and its input'),
  row('unparsable', 'other', 'another detail'),
  row('runtime_error', 'def f(x):\n    return y', 'NameError: y'),
  row('os_error', 'x', 'long '.repeat(60)),
  row('os_error', 'x'),
  row('os_error', 'x'),
];

describe('what was written instead of valid tasks', () => {
  test('in words, most frequent first, equals by name', () => {
    expect(outcomesInWords(ROWS)).toBe('3 os error, 2 unparsable, 1 cut off, 1 runtime error');
    expect(outcomesInWords([row('ok')])).toBe('');
  });

  test('the three most frequent with the first example, and what to try where the user can do something', () => {
    expect(describeOutcomes(ROWS)).toEqual([
      expect.stringMatching(/^ {2}3 of 8 \(38%\) os error, as: (long ){20} …$/),
      '      wrote  "x"',
      '  2 of 8 (25%) unparsable, as: not a program and its input',
      '      wrote  "I am"',
      expect.stringMatching(/^ {6}try {4}the text is no task in this notation: see domain\.notation/),
      '  1 of 8 (13%) cut off, as: no end within 40 tokens',
      '      wrote  "Sure! Here is\\n a function"',
      expect.stringMatching(/^ {6}try {4}completions do not end in time: raise policy\.maxNewTokens/),
    ]);
    expect(describeOutcomes([row('ok')])).toEqual([]);
    const hostile = describeOutcomes([row('os_error', 'a\u001B[2Jb\u009B1m', 'x\u001B[2J\ny')]);
    expect(hostile).toEqual(['  1 of 1 (100%) os error, as: x [2J y', '      wrote  "a\\u001b[2Jb 1m"']);
  });
});
