/** Where texts end: at stops, by what notations say. */
import { describe, expect, it } from 'vitest';
import { answerEnd, taskEnd } from '../src/domain/azr/doctest-ends.js';
import { endsAtText, untilEnd } from '../src/text-end.js';

describe('a stop', () => {
  it.each([
    ['one\ntwo\n', '\n', 'one\n'],
    // A stop that begins again within what looked like it.
    ['aaab', 'aab', 'aaab'],
    ['ababac, ababad', 'ababad', 'ababac, ababad'],
    ['Straße, né é', 'é', 'Straße, né'],
    ['no end', '\n\n', 'no end'],
    ['', 'x', ''],
  ])('ends %j at %j', (text, stop, until) => {
    expect(untilEnd(text, [endsAtText(stop)])).toBe(until);
  });

  it('is the first of several', () => {
    expect(untilEnd('a;b\nc', [endsAtText('\n'), endsAtText(';b')])).toBe('a;b');
    expect(untilEnd('a;b\nc', [endsAtText(';b\nc'), endsAtText('\n')])).toBe('a;b\n');
  });

  it('must say something', () => {
    expect(() => endsAtText('')).toThrow('an empty stop ends nothing');
  });
});

describe('the doctest notation', () => {
  it.each([
    ['def f(x):\n    return x\n>>> f(3)\n', ''],
    ['def f(x):\n    return x\n>>> f(3)\n', '3\n'],
    ['def f(x):\n\n    s = ">>> "\n    return s\n>>> f(\'a\')\n', '\n\n# input\ndef f(x):'],
    ['>>> f(3)\n', 'x'],
    ['>>> f(\n>>> f((1, 2), 3)\n', 'x'],
  ])('ends the task %j before %j', (task, more) => {
    expect(untilEnd(task + more, [taskEnd])).toBe(task);
  });

  it('has no end of a task in a program without a call, or in a line that only looks like one', () => {
    for (const text of [
      'def f(x):\n    return x\n',
      'def f(x):\n    return x\n >>> f(3)\n',
      '>>f(3)\n',
      '>>> f(3)',
      '>>> f(3]\n',
    ])
      expect(untilEnd(`${text}x`, [taskEnd])).toBe(`${text}x`);
  });

  it.each([
    ['4\n', '>>> f(2)'],
    ["'def f'\n", 'x'],
    ['defined\n', 'x'],
    ['def f(x):\n    return x + 1\n', '>>> f(3)\n'],
    ['def f(x):\n    return\n', '    pass'],
    ['def f(x):\n    if x:\n        return 1\n    returned = 2\n    return returned\n', 'def g'],
  ])('ends the answer %j before %j', (answer, more) => {
    expect(untilEnd(answer + more, [answerEnd])).toBe(answer);
  });
});
