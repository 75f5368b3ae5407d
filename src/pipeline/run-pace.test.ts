import { describe, expect, it } from 'vitest';
import { loadConfig } from './config-file.js';
import type { RunProgress } from './progress.js';
import { phaseShares, runProgress, shareDone } from './run-pace.js';

const config = loadConfig('pipelines/azr-micro.yaml', [
  'arms={base: {reward: none}, propel: {reward: probe}, sil: {reward: solver, train: {steps: 80}}}',
]);

describe('the share of a run that lies behind it', () => {
  const shares = phaseShares(config);
  const at = (label: string, done: number, total: number): number => shareDone(shares, { label, done, total })!;

  it('grows from 0 to 1 over the phases in their order', () => {
    const [tasks, steps, generations] = [config.label.tasks, config.train.steps, config.evaluate.generations];
    const moments = [
      at('label', 0, tasks),
      at('label', tasks / 2, tasks),
      at('train-probe', 0, 1),
      at('train-generator propel', steps / 2, steps),
      at('train-generator sil', 2 * steps, 2 * steps),
      at('evaluate base', generations, generations),
      at('evaluate sil', generations, generations),
    ];
    expect(moments[0]).toBe(0);
    expect(moments).toEqual([...moments].sort((a, b) => a - b));
    expect(at('re-score sil', 1, 1)).toBeCloseTo(1, 12);
  });

  it('counts an arm by its own steps, and a solver in the loop as dearer', () => {
    const propel = shares.get('train-generator propel')!.share;
    expect(shares.get('train-generator sil')!.share).toBeGreaterThan(2 * propel);
  });

  it('is unknown of what is no phase', () => {
    expect(shareDone(shares, { label: 'engine', done: 1, total: 1 })).toBeNull();
  });

  it('has no phase that no arm calls for', () => {
    const loop = loadConfig('pipelines/azr-micro.yaml', ['arms={base: {reward: none}, sil: {reward: solver}}']);
    expect([...phaseShares(loop).keys()]).toEqual([
      'train-generator sil',
      'evaluate base',
      'evaluate sil',
      're-score sil',
    ]);
  });
});

describe('the progress of a run', () => {
  it('goes with each phase: its share, and the time left by the rate of this start', () => {
    const clock = { ms: 0 };
    const heard: (RunProgress | null | undefined)[] = [];
    const factory = runProgress(
      config,
      () => ({ update: (_done, _total, _extra, run) => void heard.push(run), done: () => undefined }),
      () => clock.ms,
    );
    const [tasks, share] = [config.label.tasks, phaseShares(config).get('label')!.share];
    const label = factory('label');
    // Half of the labels are an earlier start's.
    label.update(tasks / 2, tasks);
    clock.ms = 10_000;
    label.update(tasks, tasks);
    factory('solver').update(1, 2);
    expect(heard[0]).toEqual({ share: share / 2, secondsLeft: null });
    expect(heard[1]!.share).toBeCloseTo(share, 12);
    expect(heard[1]!.secondsLeft).toBeCloseTo((10 * (1 - share)) / (share / 2), 9);
    expect(heard[2]).toBeNull();
  });
});
