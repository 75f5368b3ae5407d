import { expect, test } from 'vitest';
import { labelsInReach, spread } from './label.js';

test('labels in reach are those there are and what is left, at the upper end of validity', () => {
  // None valid of 256: Wilson's upper end is z²/(n + z²) = 3.8416/259.8416 = 1.478%; of 19,744 generations 291.9.
  expect(labelsInReach({ generations: 256, valid: 0, labelled: 0 }, 20_000)).toBeCloseTo(291.9, 1);
  // 19 of 256 valid are 7.4%, which would give 1,484 labels; at the upper end, 11.30% (Wilson), it is 2,250.
  expect(labelsInReach({ generations: 256, valid: 19, labelled: 19 }, 20_000)).toBeCloseTo(2250, -1);
  expect(labelsInReach({ generations: 300, valid: 300, labelled: 250 }, 300)).toBe(250);
  expect(labelsInReach({ generations: 320, valid: 300, labelled: 250 }, 300)).toBe(250);
});

test('of more valid tasks than are needed some are attempted, of every kind its share', () => {
  // A batch's kinds stand one after another.
  const tasks = ['o1', 'o2', 'o3', 'o4', 'i1', 'i2', 'f1', 'f2'];
  expect(spread(tasks, 4)).toEqual(['o1', 'o3', 'i1', 'f1']);
  expect(spread(tasks, 3)).toEqual(['o1', 'o3', 'i2']);
  expect(spread(tasks, 1)).toEqual(['o1']);
  expect(spread(tasks, 8)).toEqual(tasks);
  expect(spread(tasks, 100)).toEqual(tasks);
});
