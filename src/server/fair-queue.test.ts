import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { Dropped, FairQueue } from './fair-queue.js';

it('runs no more jobs at once than it has slots, a lane’s in order', async () => {
  const queue = new FairQueue(2);
  const lane = queue.lane();
  let [running, peak] = [0, 0];
  const begun: number[] = [];
  const jobs = Array.from({ length: 6 }, (_, i) =>
    lane.run(async () => {
      begun.push(i);
      peak = Math.max(peak, ++running);
      await sleep(2);
      running--;
      return i;
    }),
  );
  expect(queue.size).toEqual({ running: 2, waiting: 4 });
  expect(await Promise.all(jobs)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(begun).toEqual([0, 1, 2, 3, 4, 5]);
  expect(peak).toBe(2);
  await sleep(1);
  expect(queue.size).toEqual({ running: 0, waiting: 0 });
});

it('gives a lane of quick jobs its turns beside one of long jobs', async () => {
  const queue = new FairQueue(1);
  const slow = queue.lane();
  const slowJobs = Array.from({ length: 10 }, () => slow.run(() => sleep(50)));
  const quick = queue.lane();
  const ended: string[] = [];
  for (const job of slowJobs) void job.then(() => ended.push('slow'));
  await Promise.all(Array.from({ length: 10 }, () => quick.run(async () => {}).then(() => ended.push('quick'))));
  // Its ten jobs together take less time than one of the others, so at most two of those come before the last.
  expect(ended.filter((which) => which === 'slow').length).toBeLessThanOrEqual(2);
  await Promise.all(slowJobs);
});

it('lets nobody who comes late make up for the time before', async () => {
  const queue = new FairQueue(1);
  const early = queue.lane();
  const ended: string[] = [];
  const run = (lane: ReturnType<FairQueue['lane']>, name: string) =>
    lane.run(() => sleep(20)).then(() => ended.push(name));
  const first = Array.from({ length: 8 }, () => run(early, 'early'));
  await first[3];
  const late = queue.lane();
  await Promise.all([...first, ...Array.from({ length: 4 }, () => run(late, 'late'))]);
  // From then on they take turns.
  expect(ended.slice(4).filter((name) => name === 'early').length).toBe(4);
  expect(ended.slice(4, 9)).toContain('early');
  expect(ended.slice(4, 9)).toContain('late');
});

it('drops what has not begun, and lets the rest end', async () => {
  const queue = new FairQueue(1);
  const lane = queue.lane();
  const jobs = [lane.run(() => sleep(5, 'done')), lane.run(() => sleep(5, 'never'))];
  lane.drop('too late');
  await expect(jobs[1]).rejects.toThrow(new Dropped('too late'));
  expect(await jobs[0]).toBe('done');
  expect(queue.size.waiting).toBe(0);
});

it('goes on after a job that fails', async () => {
  const queue = new FairQueue(1);
  const lane = queue.lane();
  const failing = lane.run(() => Promise.reject(new Error('broken')));
  const next = lane.run(async () => 1);
  await expect(failing).rejects.toThrow('broken');
  expect(await next).toBe(1);
});
