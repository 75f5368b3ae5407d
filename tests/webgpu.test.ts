/**
 * The whole micro-world on WebGPU, reduced to a handful of everything: it runs end to end, writes cpu's tokens on a fixed case and has cpu's
 * gradients. Skipped with its reason where WebGPU does not work; PROPEL_REQUIRE_WEBGPU=1 makes that a failure.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Engine } from '../src/lm/engine.js';
import { ModelTrial } from '../src/lm/provider-trial.js';
import { unexpectedOnCpu } from '../src/onnx/placements.js';
import { testProvider } from '../src/onnx/self-test.js';
import type { Results } from '../src/report/results.js';
import { RunStore } from '../src/store/store.js';
import { MAIN, PACKAGE, sets, temporaryFolder } from './propel-process.js';

const GENERATOR = join(PACKAGE, 'data', 'micro-world', 'generator');
const TOLERANCE = 1e-4;
const { passed: here, detail } = await testProvider('webgpu');
if (!here) console.warn(`SKIPPED on webgpu: ${detail}`);

it.runIf(process.env['PROPEL_REQUIRE_WEBGPU'] === '1')('WebGPU is here, as it must be', () => {
  expect(detail).toBe('gradients agree with float64');
});

/**
 * Every phase with a handful of everything: a software GPU takes a tenth of a second and more for a token. In band is what the solver fails
 * at its one attempt, so that few labels have enough on both sides for a probe.
 */
const REDUCED = sets({
  'engine.provider': 'webgpu',
  band: { min: 0, max: 0, of: 1 },
  'policy.maxNewTokens': 32,
  'solver.maxNewTokens': 10,
  'label.tasks': 36,
  'label.batch': 48,
  'probe.features': [[{ layer: 1, pooling: 'mean' }]],
  'probe.l2': [0.1],
  'train.steps': 2,
  'train.batch': 8,
  'train.microBatch': 8,
  arms: { base: { reward: 'none' }, propel: { reward: 'probe', probes: 1 } },
  'evaluate.generations': 8,
  'evaluate.batch': 8,
  'evaluate.rescoreEvery': 0,
});

describe.runIf(here)('the micro-world on WebGPU', () => {
  it('writes the tokens that cpu writes', async () => {
    const request = {
      prompts: [[1]],
      perPrompt: 6,
      maxNewTokens: 24,
      temperature: 1,
      stops: [2],
      seed: 5,
      adapter: null,
    };
    const written = [];
    for (const provider of ['cpu', 'webgpu'] as const) {
      const engine = await Engine.create({ provider, threads: 2 });
      written.push(await engine.rollout(GENERATOR, request));
      await engine.close();
    }
    const [cpu, webgpu] = written as [(typeof written)[0], (typeof written)[0]];
    expect(webgpu.map(({ tokens }) => tokens)).toEqual(cpu.map(({ tokens }) => tokens));
    cpu.forEach(({ logProbs }, sample) =>
      logProbs.forEach((logProb, i) => {
        expect(Math.abs(logProb - webgpu[sample]!.logProbs[i]!)).toBeLessThan(TOLERANCE);
      }),
    );
  }, 300_000);

  it('has cpu’s gradients of the generator’s adapter, and no node on the CPU that computes', async () => {
    const trial = await ModelTrial.open(GENERATOR, 2);
    const { gradientError, logProbError, placements } = await trial.try('webgpu', 'auto', true);
    await trial.release();
    expect(gradientError).toBeLessThan(TOLERANCE);
    expect(logProbError).toBeLessThan(TOLERANCE);
    expect(placements.length).toBeGreaterThan(0);
    expect(unexpectedOnCpu(placements)).toEqual([]);
  }, 300_000);

  it('runs end to end', () => {
    const out = join(temporaryFolder(), 'run');
    const { status, stderr } = spawnSync(process.execPath, [MAIN, 'run', '--out', out, ...REDUCED], {
      cwd: PACKAGE,
      encoding: 'utf8',
    });
    expect(stderr).toMatch(/^engine: webgpu, gradients agree with float64/m);
    expect(status).toBe(0);
    expect(existsSync(join(out, 'report.html'))).toBe(true);
    const results = JSON.parse(readFileSync(join(out, 'results.json'), 'utf8')) as Results;
    expect(results.arms.map(({ name }) => name)).toEqual(['base', 'propel']);
    const store = RunStore.read(out);
    expect(store.run()!.versions).toMatchObject({ provider: 'webgpu', dtype: 'float32' });
    expect(store.steps('propel')).toHaveLength(2);
    store.close();
  }, 900_000);
});
