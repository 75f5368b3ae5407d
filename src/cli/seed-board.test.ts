import { describe, expect, it } from 'vitest';
import type { SeedStatus } from '../pipeline/compare-seeds.js';
import { createSeedBoard } from './seed-board.js';

const running = (share: number, done: number): SeedStatus => ({
  state: 'running',
  phase: { label: 'train-generator propel', done, total: 40 },
  share,
  secondsLeft: 190,
});

function board(isTTY: boolean) {
  const written: string[] = [];
  let time = 0;
  const show = createSeedBoard([0, 7], { isTTY, columns: 60, write: (text) => written.push(text) }, () => time);
  return { written, show, pass: (milliseconds: number) => (time += milliseconds) };
}

describe('in a log', () => {
  it('each seed has a line now and then, with the time left, and one at its end', () => {
    const { written, show, pass } = board(false);
    show(0, { state: 'waiting' });
    show(7, running(0.1, 2));
    show(0, running(0.34, 12));
    pass(14_000);
    show(0, running(0.5, 16));
    pass(1000);
    show(0, running(0.6, 20));
    show(0, { state: 'finished', seconds: 242 });
    show(7, { state: 'failed', why: 'no space left' });
    expect(written).toEqual([
      'seed 7 · 10% · train-generator propel 2/40 · 3 min 10 s left\n',
      'seed 0 · 34% · train-generator propel 12/40 · 3 min 10 s left\n',
      'seed 0 · 60% · train-generator propel 20/40 · 3 min 10 s left\n',
      'seed 0 · finished (4 min 2 s)\n',
      'seed 7 · failed: no space left\n',
    ]);
  });
});

describe('on a terminal', () => {
  it('one line a seed is rewritten, no wider than the terminal', () => {
    const { written, show, pass } = board(true);
    show(7, running(0.1, 2));
    expect(written).toEqual([
      '\u001B[2Kseed 0 · waiting\n\u001B[2Kseed 7 · 10% · train-generator propel 2/40 · 3 min 10 s lef\n',
    ]);
    show(7, running(0.11, 3)); // too soon
    pass(200);
    show(0, { state: 'running', phase: null, share: 0, secondsLeft: null });
    expect(written[1]!.startsWith('\u001B[2A\u001B[2Kseed 0 · starting\n\u001B[2Kseed 7 · 11% ·')).toBe(true);
    expect(written).toHaveLength(2);
  });
});
