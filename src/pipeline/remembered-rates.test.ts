/** What is kept of runs, and which plans may rest on it. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { loadConfig } from './config-file.js';
import { plan } from './plan.js';
import type { RunBasis } from './plan-rates.js';
import { rememberedRun, rememberRates } from './remembered-rates.js';

const folder = mkdtempSync(join(tmpdir(), 'propel-rates-'));
afterAll(() => rmSync(folder, { recursive: true }));
const file = join(folder, 'rates.json');
beforeEach(() => vi.stubEnv('PROPEL_CACHE', folder));
afterEach(() => {
  rmSync(file, { force: true });
  vi.unstubAllEnvs();
});

const micro = (...settings: string[]) => loadConfig('pipelines/azr-micro.yaml', settings);
const BASIS: RunBasis = {
  rates: { label: 0.02, 'train-probe': 0.01, evaluate: 0.03, 're-score': 0.004, training: new Map([['probe', 0.05]]) },
  expected: { validity: { label: 0.8, train: 0.9, evaluate: 0.95 }, taskTokens: 20 },
};

describe('the rates of a run', () => {
  it('are those of the same models and settings, whatever there is to do', () => {
    rememberRates(micro(), BASIS);
    expect(rememberedRun(micro())).toMatchObject({ name: 'azr-micro', ...BASIS });
    const more = [
      'name=other',
      'seed=3',
      'train.steps=7',
      'train.klStop=null',
      'label.tasks=20',
      'evaluate.generations=9',
    ];
    expect(rememberedRun(micro(...more))).toMatchObject(BASIS);
  });

  it.each([
    'engine.threads=1',
    'sandbox.workers=1',
    'models.solver=data/micro-world/generator',
    'policy.maxNewTokens=60',
    'solver.maxNewTokens=20',
    'band={min: 1, max: 3, of: 4}',
    'domain.types=[code_i]',
    'label.batch=64',
    'train.batch=48',
    'train.lora.rank=4',
    'arms.propel.train={updates: 2}',
    'arms.propel.policy=data/micro-world/second-generator',
  ])('say nothing of one with %s', (setting) => {
    rememberRates(micro(), BASIS);
    expect(rememberedRun(micro(setting))).toBeNull();
  });

  it('are the last ones, of 32 runs at most', () => {
    rememberRates(micro('seed=1'), BASIS);
    rememberRates(micro('seed=2'), { ...BASIS, rates: { ...BASIS.rates, label: 0.5 } });
    expect(rememberedRun(micro())!.rates.label).toBe(0.5);
    for (let threads = 1; threads <= 40; threads++) rememberRates(micro(`engine.threads=${threads}`), BASIS);
    expect((JSON.parse(readFileSync(file, 'utf8')) as { runs: unknown[] }).runs).toHaveLength(32);
    expect(rememberedRun(micro('engine.threads=8'))).toBeNull();
    expect(rememberedRun(micro('engine.threads=40'))).toMatchObject(BASIS);
  });

  it('are forgotten with a file that is not theirs, kept by none that cannot be written', () => {
    for (const text of ['', '{', '{"version": 1, "runs": [{}]}', '{"version": 2, "runs": []}']) {
      writeFileSync(file, text);
      expect(rememberedRun(micro())).toBeNull();
      rememberRates(micro(), BASIS);
      expect(rememberedRun(micro())).toMatchObject(BASIS);
    }
    vi.stubEnv('PROPEL_CACHE', '/proc/propel');
    rememberRates(micro(), BASIS);
    expect(rememberedRun(micro())).toBeNull();
  });

  it('are not kept with an empty PROPEL_CACHE, nor of models that are not here', () => {
    rememberRates(loadConfig('azr-qwen2.5-3b'), BASIS);
    expect(rememberedRun(loadConfig('azr-qwen2.5-3b'))).toBeNull();
    rememberRates(micro(), BASIS);
    vi.stubEnv('PROPEL_CACHE', '');
    expect(rememberedRun(micro())).toBeNull();
  });
});

describe('a plan', () => {
  const options = {
    modelConfigs: new Map(),
    memory: null,
    like: null,
    progress: () => ({ update: () => {}, done: () => {} }),
  };
  const SMALL = ['engine.threads=1', 'sandbox.workers=1'];

  it('rests on them', async () => {
    rememberRates(micro(...SMALL), BASIS);
    const { phases, time, expected } = await plan({ config: micro(...SMALL), ...options });
    expect(time.basis).toMatch(/^the last run like it on this machine \(azr-micro, \d{4}-\d\d-\d\d\)$/);
    expect(time.uncounted).toEqual([]);
    expect(expected).toMatchObject(BASIS.expected);
    const seconds = (phase: string, arm = ''): number =>
      phases.find((one) => one.phase === phase && one.arm === arm)!.seconds!;
    expect(seconds('label')).toBeCloseTo(0.02 * 15 * 128);
    expect(seconds('train-probe')).toBeCloseTo(0.01 * 1500);
    expect(seconds('train-generator', 'propel-wco')).toBeCloseTo(0.05 * 40 * 96);
    expect(seconds('evaluate', 'base')).toBeCloseTo(0.03 * 800);
  });

  it('says when that run had not the machine for itself', async () => {
    rememberRates(micro(...SMALL), BASIS);
    writeFileSync(
      file,
      readFileSync(file, 'utf8').replace(/"load":[\d.]+,"processors":\d+/, '"load":9.44,"processors":2'),
    );
    const { time } = await plan({ config: micro(...SMALL), ...options });
    expect(time.busy).toEqual({ when: 'then', what: 'load 9.4 on 2 processors' });
  });

  it('times what that run has not done', { timeout: 120_000 }, async () => {
    rememberRates(micro(...SMALL), { ...BASIS, rates: { ...BASIS.rates, evaluate: null } });
    const { phases, time } = await plan({ config: micro(...SMALL), ...options });
    expect(time.basis).toMatch(/\), and evaluate by a timing of cpu here, 1 threads, and of the sandbox$/);
    expect(phases.find(({ phase }) => phase === 'label')!.seconds).toBeCloseTo(0.02 * 15 * 128);
    expect(phases.every(({ seconds }) => seconds! > 0)).toBe(true);
  });
});
