/** `engine.memory: SIZE`: a run that is cut to a budget writes what it writes without one, and a cut pass takes less memory. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { rolloutWorkingBytes, trainerBytes, updateBytes } from '../src/lm/footprint.js';
import { TARGET_MODULES } from '../src/lm/adapter.js';
import type { Plan } from '../src/pipeline/plan.js';
import { RunStore } from '../src/store/store.js';
import { PACKAGE, propelIn, sets, temporaryFolder } from './propel-process.js';
import { TINY_LLAMA, tinyCheckpoint } from './tiny-checkpoint.js';

const folder = temporaryFolder();

/** Every phase, some seconds. */
const SHORT = sets({
  'label.tasks': 150,
  'label.batch': 64,
  'train.steps': 2,
  'train.batch': 24,
  arms: { base: { reward: 'none' }, propel: { reward: 'probe' } },
  'evaluate.generations': 24,
  'evaluate.batch': 24,
});

/** A JSON document that a command writes. */
function output(...args: string[]): unknown {
  const { code, stdout, stderr } = propelIn(folder, args);
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout);
}

describe('a run under a tight budget', () => {
  /** 20 MB beside process and weights. */
  const TIGHT = ['--set', 'engine.memory=1288MB'];

  it('has every use of its models cut', () => {
    const { memory } = output('plan', '--json', ...SHORT, ...TIGHT) as Plan;
    expect(memory.fits).toBe(true);
    expect(memory.budget).toBe(1_288_000_000);
    for (const { use, sequences, uncut, sequencesThatFit } of memory.models.flatMap((model) => model!.uses)) {
      expect(sequences, use).toBeLessThanOrEqual(sequencesThatFit!);
      if (use !== 'rollout') expect(sequences, use).toBeLessThan(uncut);
    }
    expect(memory.models[1]!.uses[0]).toMatchObject({ use: 'rollout', sequences: 40, uncut: 512 });
  });

  it('has the tasks, attempts, labels and scores of one without', () => {
    const rows = (name: string, ...more: string[]) => {
      output('run', '--json', '--out', name, ...SHORT, ...more);
      const store = RunStore.read(join(folder, name));
      const { tasks, attempts, labels } = store.dumpRows();
      const steps = store.steps('propel');
      store.close();
      return { tasks, attempts, labels, steps };
    };
    const [whole, cut] = [rows('whole'), rows('cut', ...TIGHT)];
    expect(cut.tasks).toEqual(whole.tasks);
    expect(cut.attempts).toEqual(whole.attempts);
    expect(cut.labels).toEqual(whole.labels);
    // Gradients add up in another order.
    cut.steps.forEach(({ loss, gradientNorm }, i) => {
      expect(loss).toBeCloseTo(whole.steps[i]!.loss, 5);
      expect(gradientNorm).toBeCloseTo(whole.steps[i]!.gradientNorm, 4);
    });
  }, 120_000);
});

describe('the peak of memory', () => {
  const model = {
    ...TINY_LLAMA,
    vocabulary: 512,
    width: 256,
    layers: 4,
    kvHeads: 2,
    headDim: 64,
    feedForward: 704,
    maxPositions: 256,
  };
  const layout = { rank: 16, alpha: 32, targets: [...TARGET_MODULES] };
  const { optimiser, gradients } = trainerBytes(model, layout);

  it.each([
    [
      'a rollout',
      'rollout',
      [256, 132] as const,
      rolloutWorkingBytes(model, { prompts: 1, promptTime: 4, samples: 256, newTokens: 128 }),
    ],
    [
      'an update',
      'update',
      [32, 200] as const,
      optimiser +
        gradients +
        updateBytes(model, layout, { batch: 32, time: 200 }, { headRows: null, recompute: false }),
    ],
  ])('of %s that is cut to a quarter is less than half', (_what, use, size, bytes) => {
    const checkpoint = tinyCheckpoint(model);
    const script = join(PACKAGE, 'scripts', 'bench', 'engine', 'budget-process.mjs');
    const peak = (passBytes: number | 'all') =>
      Number(execFileSync(process.execPath, [script, checkpoint, use, passBytes, ...size, 2].map(String)));
    expect(peak(bytes / 4) / peak('all')).toBeLessThan(0.5);
  });
});
