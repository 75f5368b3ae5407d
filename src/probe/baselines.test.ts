import { expect, test } from 'vitest';
import { lengthFeatures, ngramFeatures } from './baselines.js';

test('length: tokens, characters, lines', () => {
  const { rows, columns, data } = lengthFeatures(['a\nbc', ''], [[0, 5, 6], [0]]);
  expect([rows, columns]).toEqual([2, 3]);
  expect([...data]).toEqual([3, 4, 2, 1, 0, 1]);
});

test('n-grams count what at least three training sequences have', () => {
  // 7 is in rows 0, 1 and 2, as is the pair 7 8; 8 too; 9 only in row 0 and in row 3, which does not train.
  const sequences = [
    [7, 8, 9],
    [7, 8, 7, 8],
    [7, 8],
    [9, 9, 7],
  ];
  const { columns, data } = ngramFeatures(sequences, [0, 1, 2]);
  expect(columns).toBe(3);
  // In the order met: 7, 8, 7 8.
  expect([...data]).toEqual([1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 0, 0]);
});

test('a row that is drawn three times is one document', () => {
  expect(ngramFeatures([[1], [2]], [0, 0, 0, 1]).columns).toBe(0);
});
