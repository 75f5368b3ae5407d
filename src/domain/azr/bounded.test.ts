import { expect, it } from 'vitest';
import { mapBounded } from './bounded.js';

const later = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

it('keeps the order of the items and never more than the width under way', async () => {
  let running = 0;
  let peak = 0;
  const results = await mapBounded([30, 1, 10, 1, 5], 2, async (delay, index) => {
    peak = Math.max(peak, ++running);
    await later(delay);
    running -= 1;
    return `${index}:${delay}`;
  });
  expect(results).toEqual(['0:30', '1:1', '2:10', '3:1', '4:5']);
  expect(peak).toBe(2);
});

it('starts nothing after a failure, waits for what is under way, then throws it', async () => {
  const ended: number[] = [];
  const work = async (item: number): Promise<void> => {
    await later(item === 0 ? 20 : 1);
    if (item === 1) throw new Error('item 1 failed');
    ended.push(item);
  };
  await expect(mapBounded([0, 1, 2, 3, 4], 2, work)).rejects.toThrow('item 1 failed');
  expect(ended).toEqual([0]);
});
