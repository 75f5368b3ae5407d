/** A plan on a machine that other programs keep busy. */
import { expect, it, vi } from 'vitest';
import { loadConfig } from './config-file.js';
import { plan } from './plan.js';

const machine = vi.hoisted(() => ({ load: 9.4 }));
vi.mock('node:os', async (original) => ({
  ...(await original<typeof import('node:os')>()),
  loadavg: () => [machine.load, machine.load, machine.load],
  availableParallelism: () => 2,
}));

const planned = () =>
  plan({
    config: loadConfig('pipelines/azr-micro.yaml', ['engine.threads=1', 'sandbox.workers=1']),
    modelConfigs: new Map(),
    memory: null,
    like: null,
    progress: () => ({ update: () => {}, done: () => {} }),
  });

it('says so, with the load and what the timing got', { timeout: 120_000 }, async () => {
  expect((await planned()).time.busy).toEqual({
    when: 'now',
    what: expect.stringMatching(/^load 9\.4 on 2 processors, the timing got \d+% of what it asked for$/),
  });
});
