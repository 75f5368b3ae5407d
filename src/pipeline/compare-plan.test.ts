import { availableParallelism } from 'node:os';
import { describe, expect, it } from 'vitest';
import { phaseShares, runsAtOnce, shareDone } from './compare-plan.js';
import { loadConfig } from './config-file.js';

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
});

describe('runs at once', () => {
  it('are as many as asked for, at most one a seed', () => {
    expect(runsAtOnce(config, 3, 2, 2 ** 30)).toBe(2);
    expect(runsAtOnce(config, 3, 8, 2 ** 30)).toBe(3);
  });

  it('auto: as memory carries', () => {
    const narrow = { engine: { ...config.engine, threads: 1 } };
    expect(runsAtOnce(narrow, 1000, 'auto', process.availableMemory() + 2 ** 30)).toBe(1);
  });

  it('auto: as processors carry, at least one', () => {
    const wide = { ...config, engine: { ...config.engine, threads: 10_000 } };
    expect(runsAtOnce(wide, 3, 'auto', 1)).toBe(1);
    expect(runsAtOnce(config, 1000, 'auto', 1)).toBeLessThanOrEqual(
      Math.max(1, Math.floor(availableParallelism() / config.engine.threads)),
    );
  });
});
