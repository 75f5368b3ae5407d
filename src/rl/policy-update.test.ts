import { describe, expect, it } from 'vitest';
import { RunError } from '../errors.js';
import type { UpdateShape } from '../lm/footprint.js';
import { updatePolicy } from './policy-update.js';
import type { UpdateSettings } from './policy-update.js';

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

  it('gives the loss its terms and the whole batch’s tokens, and the optimiser its settings', async () => {
    const [losses, steps]: [unknown[], unknown[]] = [[], []];
    await updatePolicy(
      { logProbs: async ({ batch, time }) => new Float32Array(batch * time) },
      {
        accumulate: async (_, loss) => {
          losses.push(loss);
          return { loss: 0, klSum: 0, entropySum: 0, clipped: 0, logProbs: new Float32Array(0) };
        },
        step: async (given) => {
          steps.push(given);
          return { gradientNorm: 1 };
        },
      },
      rollouts,
      { ...settings, clip: 0.3, kl: 0.05, entropy: 0.01 },
    );
    const loss = { tokens: 4, clip: 0.3, kl: 0.05, entropy: 0.01 };
    expect(losses).toEqual([loss, loss]);
    expect(steps).toEqual([optimiser]);
  });

  it('takes so many steps on the same batches: figures are of the first, clipping is of the last', async () => {
    let steps = 0;
    const seen: unknown[] = [];
    const report = await updatePolicy(
      { logProbs: async ({ batch, time }) => new Float32Array(batch * time) },
      {
        accumulate: async ({ ids }) => {
          seen.push(ids);
          return { loss: steps, klSum: steps, entropySum: steps, clipped: steps, logProbs: new Float32Array(0) };
        },
        step: async () => ({ gradientNorm: 7 + steps++ }),
      },
      rollouts,
      { ...settings, updates: 3 },
    );
    expect(steps).toBe(3);
    expect(seen).toEqual([...seen.slice(0, 2), ...seen.slice(0, 2), ...seen.slice(0, 2)]);
    // Two micro-batches with two clipped tokens each, of four.
    expect(report).toEqual({ loss: 0, klPerSequence: 0, entropy: 0, gradientNorm: 7, clippedShare: 1 });
  });

  describe('cuts micro-batches by length', () => {
    const written = [4, 1, 2, 3, 9].map((n) => ({
      prompt: [1],
      tokens: Array<number>(n).fill(3),
      logProbs: new Float32Array(n),
      advantage: 1,
    }));
    /** [sequences, time] of the passes that gradients are gathered in, and of those for the reference. */
    const passes = async (limits: Partial<UpdateSettings>) => {
      const shapes = { update: [] as number[][], reference: [] as number[][] };
      await updatePolicy(
        {
          logProbs: async ({ batch, time }) => {
            shapes.reference.push([batch, time]);
            return new Float32Array(batch * time);
          },
        },
        {
          accumulate: async ({ batch, time }) => {
            shapes.update.push([batch, time]);
            return { loss: 0, klSum: 0, entropySum: 0, clipped: 0, logProbs: new Float32Array(0) };
          },
          step: async () => ({ gradientNorm: 1 }),
        },
        written,
        { ...settings, ...limits },
      );
      expect(shapes.reference).toEqual(shapes.update);
      return shapes.update;
    };

    it('within sequences and tokens', async () => {
      expect(await passes({ microBatch: 3, microBatchTokens: 10 })).toEqual([
        [3, 3],
        [1, 4],
        [1, 9],
      ]);
    });

    it('within what fits into memory', async () => {
      const fits = ({ batch, time }: UpdateShape) => batch * time <= 4;
      expect(await passes({ microBatch: 8, fits })).toEqual([
        [2, 2],
        [1, 3],
        [1, 4],
        [1, 9],
      ]);
    });
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
