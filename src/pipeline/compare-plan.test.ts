import { availableParallelism } from 'node:os';
import { describe, expect, it } from 'vitest';
import { runsAtOnce } from './compare-plan.js';
import { loadConfig } from './config-file.js';

const config = loadConfig('pipelines/azr-micro.yaml', []);

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
