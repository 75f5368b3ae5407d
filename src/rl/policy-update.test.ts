import { describe, expect, it } from 'vitest';
import { RunError } from '../errors.js';
import { updatePolicy } from './policy-update.js';

describe('updatePolicy', () => {
  const rollouts = [
    { prompt: [1], tokens: [7, 8, 3], logProbs: new Float32Array(3), advantage: 1 },
    { prompt: [1], tokens: [3], logProbs: new Float32Array(1), advantage: -1 },
  ];
  const optimiser = { learningRate: 1, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0, maxNorm: 1 };
  const settings = { updates: 1, microBatch: 1, microBatchTokens: 1000, clip: 0.2, kl: 0.1, entropy: 0, optimiser };
  const update = (loss: number, gradientNorm: number) =>
    updatePolicy(
      { logProbs: async ({ batch, time }) => new Float32Array(batch * time) },
      {
        accumulate: async () => ({ loss, klSum: 3, entropySum: 2, clipped: 1, logProbs: new Float32Array(0) }),
        step: async () => ({ gradientNorm }),
      },
      rollouts,
      settings,
    );

  it('adds micro-batches up: KL a sequence, entropy and clipped share a token', async () => {
    expect(await update(0.5, 2)).toEqual({ loss: 1, klPerSequence: 3, entropy: 1, gradientNorm: 2, clippedShare: 0.5 });
  });

  it('cuts micro-batches by length, within sequences and tokens', async () => {
    const lengths = [4, 1, 2, 3, 9];
    const written = lengths.map((n) => ({
      prompt: [1],
      tokens: Array<number>(n).fill(3),
      logProbs: new Float32Array(n),
      advantage: 1,
    }));
    const shapes: [number, number][] = [];
    await updatePolicy(
      { logProbs: async ({ batch, time }) => new Float32Array(batch * time) },
      {
        accumulate: async ({ batch, time }) => {
          shapes.push([batch, time]);
          return { loss: 0, klSum: 0, entropySum: 0, clipped: 0, logProbs: new Float32Array(0) };
        },
        step: async () => ({ gradientNorm: 1 }),
      },
      written,
      { ...settings, microBatch: 3, microBatchTokens: 10 },
    );
    expect(shapes).toEqual([
      [3, 3],
      [1, 4],
      [1, 9],
    ]);
  });

  it('gives the reference and the trainer batches of one prompt with the prompt apart', async () => {
    const prompt = Array.from({ length: 40 }, (_, i) => i);
    const written = [3, 5].map((n) => ({
      prompt,
      tokens: Array<number>(n).fill(7),
      logProbs: new Float32Array(n),
      advantage: 1,
    }));
    const seen: (number | undefined)[][] = [];
    await updatePolicy(
      {
        logProbs: async ({ batch, time, prefix }) => {
          seen.push([batch, time, prefix?.length]);
          return new Float32Array(batch * time).fill(-2);
        },
      },
      {
        accumulate: async ({ batch, time, prefix, referenceLogProbs }) => {
          seen.push([batch, time, prefix?.length, referenceLogProbs![0]]);
          return { loss: 0, klSum: 0, entropySum: 0, clipped: 0, logProbs: new Float32Array(0) };
        },
        step: async () => ({ gradientNorm: 1 }),
      },
      written,
      { ...settings, microBatch: 8 },
    );
    expect(seen).toEqual([
      [2, 5, 39],
      [2, 5, 39, -2],
    ]);
  });

  it('stops when training has diverged, and says what to do', async () => {
    await expect(update(Number.NaN, 2)).rejects.toThrow(RunError);
    await expect(update(0.5, Infinity)).rejects.toThrow(
      /^training diverged: the gradient norm is Infinity; start over with .* a lower train\.learningRate/,
    );
  });
});
