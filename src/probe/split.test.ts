import { describe, expect, test } from 'vitest';
import { assignFolds, resample, splitTasks } from './split.js';

const inBand = Array.from({ length: 100 }, (_, i) => i % 5 === 0);
const shares = { validation: 0.2, test: 0.3 };

describe('split', () => {
  test('every part has its share of both strata', () => {
    const parts = splitTasks(inBand, shares, 3);
    const count = (part: string, inside: boolean) => parts.filter((p, i) => p === part && inBand[i] === inside).length;
    expect(['train', 'validation', 'test'].map((part) => [count(part, true), count(part, false)])).toEqual([
      [10, 40],
      [4, 16],
      [6, 24],
    ]);
  });

  test('of few there is one of each stratum in every part, however small its share', () => {
    const few = [true, true, true, ...Array.from({ length: 20 }, () => false)];
    const parts = splitTasks(few, { validation: 0.1, test: 0.1 }, 3);
    for (const part of ['train', 'validation', 'test']) {
      expect(parts.filter((own, i) => own === part && few[i])).toHaveLength(1);
    }
  });

  test('it follows from the seed', () => {
    expect(splitTasks(inBand, shares, 3)).toEqual(splitTasks(inBand, shares, 3));
    expect(splitTasks(inBand, shares, 3)).not.toEqual(splitTasks(inBand, shares, 4));
  });
});

test('folds are of equal sizes, in band and out', () => {
  const folds = assignFolds(inBand, 5, 1);
  for (let fold = 0; fold < 5; fold++) {
    const members = folds.flatMap((f, i) => (f === fold ? [i] : []));
    expect(members).toHaveLength(20);
    expect(members.filter((i) => inBand[i])).toHaveLength(4);
  }
});

test('a resample has as many rows, all from those given, some of them again', () => {
  const rows = [10, 11, 12, 13, 14, 15, 16, 17];
  const drawn = resample(rows, 2);
  expect(drawn).toHaveLength(8);
  expect(drawn.every((row) => rows.includes(row))).toBe(true);
  expect(new Set(drawn).size).toBeLessThan(8);
});
