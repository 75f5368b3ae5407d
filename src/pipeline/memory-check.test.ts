/** Budgets that a run of the embedded models cannot stay within are refused before it begins. */
import { describe, expect, it } from 'vitest';
import { loadConfig } from './config-file.js';
import { checkMemory, runBytes } from './memory-check.js';

const micro = (memory: string, ...settings: string[]) =>
  loadConfig('pipelines/azr-micro.yaml', [`engine.memory=${memory}`, ...settings]);

describe('a budget that a run cannot stay within', () => {
  const refused = (...args: Parameters<typeof micro>): Promise<string> =>
    checkMemory(micro(...args)).then(
      () => 'taken',
      (error: Error) => error.message,
    );

  it('is refused when the weights alone take more', async () => {
    expect(await refused('1GB')).toBe(
      'engine.memory: 1GB is less than process and sandbox take (1.2 GiB) and the weights (17.1 MiB of models.policy and models.reference (data/micro-world/generator) in 7 graphs, 3.2 MiB of models.solver (data/micro-world/solver)); give 1217MiB or more, lower policy.maxNewTokens, take smaller models, or have the solver behind solver.endpoint',
    );
  });

  it('is refused when one longest sequence does not fit, by the largest', async () => {
    expect(await refused('1271MB')).toBe(
      'engine.memory: 1271MB leaves 1.5 MiB beside process and weights, and an update of models.policy and models.reference (data/micro-world/generator) needs 6.3 MiB for one sequence of 90 tokens; give 1217MiB or more, lower policy.maxNewTokens, take smaller models, or have the solver behind solver.endpoint',
    );
    const behind = ['models.solver=null', 'solver.endpoint=http://x', 'solver.model=m'];
    expect(await refused('1271MB', 'engine.provider=auto', ...behind)).toMatch(
      /lower policy.maxNewTokens, set engine.dtype: bfloat16 on cuda, or take smaller models$/,
    );
  });

  it('names the solver’s answers, where they are the longest', async () => {
    expect(await refused('1255MB', 'arms={base: {reward: none}}', 'solver.maxNewTokens=150')).toMatch(
      /a rollout of models.solver .* lower policy.maxNewTokens or solver.maxNewTokens, take/,
    );
  });

  it('is taken at what the refusal says', async () => {
    expect(await checkMemory(micro('1217MiB'))).toBeUndefined();
    expect(await refused('1216MiB')).toMatch(/^engine.memory: 1216MiB leaves/);
    expect(await checkMemory(micro('auto'))).toBeUndefined();
  });
});

it('what a run takes is all of its budget, or what is planned, its arms’ own settings with it', async () => {
  expect(await runBytes(micro('3GB'))).toBe(3e9);
  const wide = 'arms.propel.train={batch: 768, microBatch: 768, microBatchTokens: 80000}';
  expect((await runBytes(micro('auto', wide))) - (await runBytes(micro('auto')))).toBeGreaterThan(2 ** 30);
});
