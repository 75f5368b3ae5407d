/** The progress line with a clock set by hand. */
import { describe, expect, it } from 'vitest';
import { createProgress } from './progress.js';

function watch(isTTY: boolean, columns = 80) {
  const written: string[] = [];
  const clock = { ms: 0 };
  const stream = { isTTY, columns, write: (text: string) => written.push(text) };
  return { written, clock, progress: createProgress('label', stream, () => clock.ms) };
}

describe('in a log', () => {
  it('gets a line every five seconds, with rate and time left, and the summary', () => {
    const { written, clock, progress } = watch(false);
    for (let done = 0; done <= 1200; done += 100) {
      progress.update(done, 1500, 'in band 23%');
      clock.ms += 1000;
    }
    progress.done('1,500 labels');
    expect(written).toEqual([
      'label 500/1,500 · 100/s · 10 s left · in band 23%\n',
      'label 1,000/1,500 · 100/s · 5.0 s left · in band 23%\n',
      'label: 1,500 labels (13 s)\n',
    ]);
  });

  it('does not count what an earlier run has done', () => {
    const { written, clock, progress } = watch(false);
    progress.update(1000, 1100);
    clock.ms = 5000;
    progress.update(1010, 1100);
    expect(written).toEqual(['label 1,010/1,100 · 2.0/s · 45 s left\n']);
  });

  it('says of slow units how long each takes', () => {
    const { written, clock, progress } = watch(false);
    progress.update(0, 10);
    clock.ms = 60_000;
    progress.update(2, 10);
    expect(written).toEqual(['label 2/10 · 30 s each · 4 min 0 s left\n']);
  });

  it('gets fewer lines the longer the phase lasts: a line a minute of a long one', () => {
    const { written, clock, progress } = watch(false);
    for (let second = 0; second <= 3600; second++) {
      clock.ms = 1000 * second;
      progress.update(second, 3600);
    }
    expect(written.length).toBeLessThan(75);
    expect(written.at(-2)).toMatch(/^label 3,5\d\d/);
  });

  it('begins with the run that the phase is a part of', () => {
    const { written, clock, progress } = watch(false);
    progress.update(0, 10, undefined, { share: 0.2, secondsLeft: null });
    clock.ms = 5000;
    progress.update(5, 10, 'valid 0.9', { share: 0.34, secondsLeft: 720 });
    clock.ms = 10_000;
    progress.update(10, 10, undefined, { share: 0.5, secondsLeft: null });
    expect(written).toEqual([
      'run 34%, 12 min 0 s left · label 5/10 · 1.0/s · 5.0 s left · valid 0.9\n',
      'run 50% · label 10/10 · 1.0/s · 0.0 s left\n',
    ]);
  });

  it('promises nothing while nothing is done', () => {
    const { written, clock, progress } = watch(false);
    clock.ms = 6000;
    progress.update(0, 10);
    expect(written).toEqual(['label 0/10\n']);
  });
});

describe('on a terminal', () => {
  it('is one line, rewritten at most ten times a second and never wider than the terminal', () => {
    const { written, clock, progress } = watch(true, 18);
    for (let done = 0; done < 20; done++) {
      progress.update(done, 20);
      clock.ms += 10;
    }
    progress.done('20 labels');
    expect(written).toEqual([
      '\r\u001B[2Klabel 0/20',
      '\r\u001B[2Klabel 10/20 · 100',
      '\r\u001B[2Klabel: 20 labels (0.2 s)\n',
    ]);
  });
});
