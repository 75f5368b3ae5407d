import { expect, test } from 'vitest';
import { spread } from './label.js';

test('of more valid tasks than are needed some are attempted, of every kind its share', () => {
  // A batch's kinds stand one after another.
  const tasks = ['o1', 'o2', 'o3', 'o4', 'i1', 'i2', 'f1', 'f2'];
  expect(spread(tasks, 4)).toEqual(['o1', 'o3', 'i1', 'f1']);
  expect(spread(tasks, 3)).toEqual(['o1', 'o3', 'i2']);
  expect(spread(tasks, 1)).toEqual(['o1']);
  expect(spread(tasks, 8)).toEqual(tasks);
  expect(spread(tasks, 100)).toEqual(tasks);
});
