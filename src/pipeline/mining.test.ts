import { describe, expect, test } from 'vitest';
import { draw, isMiningStep, mostUseful } from './mining.js';

describe('what is mined', () => {
  const task = (text: string, reward: number) => ({ text, reward });

  test('the best-paid share of the distinct tasks, rounded up, best first', () => {
    const tasks = [task('a', 0.5), task('b', 2), task('a', 9), task('c', -1), task('d', 0.5), task('e', 0)];
    expect(mostUseful(tasks, 0.5)).toEqual([task('b', 2), task('a', 0.5), task('d', 0.5)]);
    expect(mostUseful(tasks, 0.1)).toEqual([task('b', 2)]);
    expect(mostUseful(tasks, 1).map(({ text }) => text)).toEqual(['b', 'a', 'd', 'e', 'c']);
    expect(mostUseful([], 0.5)).toEqual([]);
  });

  test('a draw follows from its seed, keeps the order, and takes all when there are no more', () => {
    const tasks = Array.from({ length: 50 }, (_, i) => i);
    const drawn = draw(tasks, 10, 1);
    expect(drawn).toHaveLength(10);
    expect(new Set(drawn).size).toBe(10);
    expect(drawn).toEqual(drawn.toSorted((a, b) => a - b));
    expect(draw(tasks, 10, 1)).toEqual(drawn);
    expect(draw(tasks, 10, 2)).not.toEqual(drawn);
    expect(draw([7, 5, 9], 10, 1)).toEqual([7, 5, 9]);
  });

  test('every n-th step, none before the first', () => {
    const settings = { every: 10, mine: 1, share: 1 };
    expect([0, 5, 10, 19, 20].filter((step) => isMiningStep(settings, step))).toEqual([10, 20]);
  });
});
