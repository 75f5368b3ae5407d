/** A run's budget of memory: what it leaves for a pass, and what an update is cut by. */
import { describe, expect, it } from 'vitest';
import { findFile } from './paths.js';
import { openCheckpoint } from '../lm/checkpoint.js';
import { trainerBytes, updateBytes } from '../lm/footprint.js';
import { loadConfig } from './config-file.js';
import { engineSettings, passBytes, modelPassBytes, updateFits } from './memory-budget.js';
import { refusal } from '../../tests/refusal.js';

const micro = (memory: string, ...settings: string[]) =>
  loadConfig('pipelines/azr-micro.yaml', [`engine.memory=${memory}`, ...settings]);
const GENERATOR = 'data/micro-world/generator';
/** 638,848 parameters in 7 graphs: rollouts without and with an adapter, update, its reference, candidates and two probes' features. */
const WEIGHTS = 4 * (7 * 638_848 + 839_808);
/** Node.js and ONNX Runtime, and the second worker of the sandbox. */
const PROCESS = 1.1 * 2 ** 30 + 64 * 2 ** 20;

describe('what is left for a pass', () => {
  it('is the budget without process, sandbox and the weights of all graphs', async () => {
    expect(await passBytes(micro('2GB'))).toBe(2e9 - PROCESS - WEIGHTS);
    expect(await passBytes(micro('auto'))).toBeNull();
  });

  it('goes to the engine with models planned by their size', () => {
    expect(engineSettings(micro('2GB').engine, 5)).toEqual({
      provider: 'cpu',
      threads: 2,
      dtype: 'auto',
      memory: 'auto',
      passBytes: 5,
    });
    expect(engineSettings(micro('small').engine, null)).toEqual({
      provider: 'cpu',
      threads: 2,
      dtype: 'auto',
      memory: 'small',
    });
  });

  it('beside a reward server’s reference alone, a graph a probe', async () => {
    const reference = findFile(GENERATOR, 'models.reference');
    expect(modelPassBytes(micro('2GB'), reference, 3)).toBe(2e9 - PROCESS - 3 * 4 * 638_848);
    expect(modelPassBytes(micro('fast'), reference, 3)).toBeNull();
    expect(refusal(() => modelPassBytes(micro('1GB'), reference, 3))).toBe(
      "UserError: engine.memory: 1GB is less than the 1.2 GiB of process, sandbox and the model's weights; raise it",
    );
  });
});

describe('an update', () => {
  const layout = micro('auto').train.lora;
  const { config: model } = openCheckpoint(findFile(GENERATOR, 'models.policy'));

  it('is cut by what it works with, the optimiser’s state beside it', () => {
    const { optimiser, gradients } = trainerBytes(model, layout);
    const bytes =
      updateBytes(model, layout, { batch: 4, time: 90 }, { headRows: null, recompute: false }) + optimiser + gradients;
    const fits = updateFits(micro('2GB').engine, model, layout, bytes)!;
    const shapes = [[4, 90] as const, [5, 90] as const, [4, 91] as const];
    expect(shapes.map(([batch, time]) => fits({ batch, time }))).toEqual([true, false, false]);
    // What is common counts once.
    expect(fits({ batch: 6, time: 45, prefix: 45 })).toBe(true);
  });

  it('is not cut without a budget', () => {
    expect(updateFits(micro('auto').engine, model, layout, null)).toBeUndefined();
  });
});
