/** A model's own step as what a provider is chosen by. */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { TINY_LLAMA, tinyCheckpoint } from '../../tests/tiny-checkpoint.js';
import { countPlacements } from '../onnx/placements.js';
import { chooseEngineProvider, isRight, ModelTrial } from './provider-trial.js';

const settings = { threads: 1 };

describe('a trial of cpu', () => {
  it.each(['llama', 'phi3'])(
    'is right on a small %s, gradients and rollout, and says where its nodes ran',
    async (family) => {
      const trial = await ModelTrial.open(fileURLToPath(new URL(`fixtures/${family}`, import.meta.url)), 1);
      const step = await trial.try('cpu', 'auto', true);
      await trial.release();
      expect(step.gradientError).toBe(0);
      expect(step.logProbError).toBeLessThan(1e-4);
      expect(step.milliseconds).toBeGreaterThan(0);
      expect([...countPlacements(step.placements).keys()]).toEqual(['CPUExecutionProvider']);
    },
  );

  it('takes of a deep model the first layers', async () => {
    const folder = tinyCheckpoint({ ...TINY_LLAMA, layers: 6 });
    const nodes = async (of: string) => {
      const trial = await ModelTrial.open(of, 1);
      const { placements } = await trial.try('cpu', 'auto', true);
      await trial.release();
      return placements.length;
    };
    expect(await nodes(folder)).toBe(await nodes(tinyCheckpoint({ ...TINY_LLAMA, layers: 4 })));
  });
});

describe('a step is right', () => {
  const step = {
    provider: 'webgpu',
    dtype: 'float32',
    milliseconds: 1,
    placements: [],
    gradientError: 0,
    logProbError: 0,
  } as const;
  it.each([
    ['with cpu’s gradients and log-probabilities', {}, true],
    ['not with a gradient off by 1%', { gradientError: 0.01 }, false],
    ['not with a rollout off by 0.01 nats', { logProbError: 0.01 }, false],
    ['not with gradients that are no numbers', { gradientError: Number.NaN }, false],
  ])('%s', (_, change, right) => {
    expect(isRight({ ...step, ...change })).toBe(right);
  });
});

describe('an engine’s provider', () => {
  it('that is named is taken without trying the model', async () => {
    const { provider } = await chooseEngineProvider({ ...settings, provider: 'cpu', model: '/no/such/folder' });
    expect(provider).toBe('cpu');
  });
});
