import { describe, expect, test } from 'vitest';
import { wilsonInterval } from './interval.js';
import { duplicateShares, novelty, TaskIndex, taskKey, type TaskText } from './near-duplicates.js';
import { skeleton } from './python-tokens.js';
import { seededRandom } from './random.js';

const task = (body: string, input = '[1, 2, 3]', type = 'code_o'): TaskText => ({
  type,
  text: `def f(x):\n    ${body}\n>>> f(${input})\n`,
});
const similarity = (one: TaskText, other: TaskText): number => new TaskIndex([one]).nearest(other);

describe('similarity', () => {
  test('by hand: "a + a" and "a + b" have 3-grams { v0 + v0, + v0 newline } and { v0 + v1, + v1 newline }; "b + b" is "a + a"', () => {
    const text = (source: string): TaskText => ({ type: 'code_o', text: source });
    expect(similarity(text('a + a'), text('a + b'))).toBe(0);
    expect(similarity(text('a + a'), text('b + b'))).toBe(1);
    // { v0 + v0, + v0 newline } and { v0 + v0, + v0 +, v0 + v0, + v0 newline }: 2 of 3 distinct ones
    expect(similarity(text('a + a'), text('a + a + a'))).toBe(2 / 3);
    // Shorter than a shingle: one shingle.
    expect(similarity(text('a'), text('b'))).toBe(1);
  });

  test.each([
    [
      'another name and constant',
      task('return x[:2]'),
      { type: 'code_o', text: 'def f(y):\n  return y[:7]\n>>> f([9,9,9])' },
    ],
    ['a longer list', task('return x[1:]'), task('return x[1:]', '[1, 2, 3, 4, 5]')],
    ['one more equal term', task('return x * 2 * 2 * 2'), task('return x * 2 * 2 * 2 * 2')],
  ])('%s is the same task', (_, one, other) => {
    expect(similarity(one, other)).toBe(1);
  });

  test.each([
    ['another operator in a short program', task('return x + 1'), task('return x - 1')],
    ['a string for a list', task('return x[1:]'), task('return x[1:]', "'ABC'")],
  ])('%s is another task', (_, one, other) => {
    expect(similarity(one, other)).toBeGreaterThan(0);
    expect(similarity(one, other)).toBeLessThan(0.8);
  });

  test('a change in a longer program leaves a near duplicate', () => {
    const long = (operator: string): TaskText =>
      task(
        `t = 0\n    for i in range(len(x)):\n        if x[i] > 3:\n            t = t ${operator} x[i]\n    return t`,
      );
    expect(similarity(long('+'), long('-'))).toBeGreaterThanOrEqual(0.8);
  });

  test('tasks of different types have nothing in common', () => {
    expect(similarity(task('return x'), task('return x', '[1, 2, 3]', 'code_i'))).toBe(0);
  });

  test('the nearest of many is that of all pairs', () => {
    const random = seededRandom('programs');
    const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(items.length * random())]!;
    const program = (): TaskText => {
      const lines = Array.from({ length: 1 + Math.floor(3 * random()) }, () =>
        pick([
          'y = x + 1',
          'x = x[1:]',
          'x = sorted(x)',
          'z = len(x) * 2',
          "x = x.replace('A', 'B')",
          'z = [v for v in x]',
        ]),
      );
      return task(
        [...lines, pick(['return x', 'return x[::-1]', 'return len(x)'])].join('\n    '),
        pick(['[1]', "'AB'", '3']),
      );
    };
    const shingles = ({ text }: TaskText): Set<string> => {
      const tokens = skeleton(text);
      return new Set(tokens.slice(2).map((_, start) => tokens.slice(start, start + 3).join(' ')));
    };
    const jaccard = (a: Set<string>, b: Set<string>): number => {
      const common = [...a].filter((shingle) => b.has(shingle)).length;
      return common / (a.size + b.size - common);
    };
    const known = Array.from({ length: 40 }, program);
    const index = new TaskIndex(known);
    for (const other of Array.from({ length: 60 }, program)) {
      const all = known.map((one) => jaccard(shingles(one), shingles(other)));
      expect(index.nearest(other)).toBe(Math.max(...all));
    }
  });
});

test('a key tells texts and types apart', () => {
  expect(taskKey(task('return x'))).toBe(taskKey(task('return x')));
  expect(taskKey(task('return x'))).not.toBe(taskKey(task('return x', '[1, 2, 3]', 'code_i')));
});

test('duplicates count each task that repeats an earlier one: here the third exactly, third and fourth nearly', () => {
  const tasks = [task('return x + 1'), task('return x[1:]'), task('return x + 1'), task('return x[2:]')];
  expect(duplicateShares(tasks)).toEqual({ exact: 1 / 4, near: 2 / 4 });
  expect(duplicateShares([])).toBeNull();
});

test('novelty: one of four tasks is new', () => {
  const known = new TaskIndex([task('return x + 1'), task('return x[1:]')]);
  const fresh = task('return sorted(set(x))');
  const distance = 1 - known.nearest(fresh);
  expect(distance).toBeGreaterThan(0.2);
  expect(novelty([task('return x + 1'), task('return x + 2'), task('return x[5:]'), fresh], known)).toEqual({
    share: 1 / 4,
    interval: wilsonInterval(1, 4),
    meanDistance: distance / 4,
  });
  expect(novelty([], known)).toBeNull();
});

test('800 tasks against 1,500 known ones take well under a second', () => {
  const random = seededRandom('speed');
  const program = (): TaskText =>
    task(
      Array.from(
        { length: 12 },
        () =>
          `x = x ${'+-*%'[Math.floor(4 * random())]} ${'xy'[Math.floor(2 * random())]}[${Math.floor(9 * random())}]`,
      ).join('\n    '),
    );
  const known = Array.from({ length: 1500 }, program);
  const fresh = Array.from({ length: 800 }, program);
  const before = process.cpuUsage();
  novelty(fresh, new TaskIndex(known));
  expect(process.cpuUsage(before).user / 1e6).toBeLessThan(3);
});
