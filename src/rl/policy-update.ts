/** The policy update: rollouts with an advantage each → one or more clipped policy-gradient steps. It does not know what was rewarded. */
import { RunError } from '../errors.js';
import type { LanguageModel, TrainerThread } from '../lm/language-model.js';
import type { AdamWSettings, PolicyBatch } from '../lm/trainer.js';
import { microBatches } from './micro-batches.js';
import type { MicroBatchLimits, Rollout } from './micro-batches.js';

export interface UpdateSettings {
  /** Optimiser steps on the same rollouts. */
  readonly updates: number;
  /** Sequences in one forward and backward pass; gradients add up, so it changes only memory and time. */
  readonly microBatch: number;
  /** Tokens in one such pass at most, padding included, a prompt that its sequences share once. */
  readonly microBatchTokens: number;
  /** Whether such a pass fits into memory. */
  readonly fits?: MicroBatchLimits['fits'];
  /** ε of the clipped ratio, β of the KL term, c of the entropy bonus. */
  readonly clip: number;
  readonly kl: number;
  readonly entropy: number;
  readonly optimiser: AdamWSettings;
}

export interface UpdateReport {
  /** Of the first optimiser step, when π was still π_old. */
  readonly loss: number;
  /** k1 estimate of the KL to the policy's start: Σ log π − log π_ref over a sequence, mean over sequences, nats. */
  readonly klPerSequence: number;
  /** Nats a token. */
  readonly entropy: number;
  /** Share of tokens that the clip moved, over the last optimiser step. */
  readonly clippedShare: number;
  /** Global norm before clipping, of the first optimiser step. */
  readonly gradientNorm: number;
}

/**
 * The reference of the KL term is the policy as it was before training: its checkpoint, with the adapter that it was opened with.
 * @throws RunError when training has diverged
 */
export async function updatePolicy(
  policy: Pick<LanguageModel, 'logProbs'>,
  trainer: Pick<TrainerThread, 'accumulate' | 'step'>,
  rollouts: readonly Rollout[],
  settings: UpdateSettings,
): Promise<UpdateReport> {
  const { microBatch: most, microBatchTokens, fits } = settings;
  const batches: PolicyBatch[] = [];
  for (const batch of microBatches(rollouts, { rows: most, tokens: microBatchTokens, fits })) {
    batches.push({ ...batch, referenceLogProbs: await policy.logProbs(batch, null) });
  }
  const tokens = rollouts.reduce((sum, r) => sum + r.tokens.length, 0);
  const loss = { tokens, clip: settings.clip, kl: settings.kl, entropy: settings.entropy };
  let report: UpdateReport | null = null;
  for (let update = 0; update < settings.updates; update++) {
    const sums = { loss: 0, kl: 0, entropy: 0, clipped: 0 };
    for (const batch of batches) {
      const part = await trainer.accumulate(batch, loss);
      sums.loss += part.loss;
      sums.kl += part.klSum;
      sums.entropy += part.entropySum;
      sums.clipped += part.clipped;
    }
    const { gradientNorm } = await trainer.step(settings.optimiser);
    requireFinite({ loss: sums.loss, KL: sums.kl, entropy: sums.entropy, 'gradient norm': gradientNorm });
    report = {
      ...(report ?? {
        loss: sums.loss,
        klPerSequence: sums.kl / rollouts.length,
        entropy: sums.entropy / tokens,
        gradientNorm,
      }),
      clippedShare: sums.clipped / tokens,
    };
  }
  return report!;
}

/** @throws RunError when a figure has left float32's range: what would be learnt from it means nothing. */
function requireFinite(figures: Readonly<Record<string, number>>): void {
  const lost = Object.entries(figures).find(([, figure]) => !Number.isFinite(figure));
  if (lost === undefined) return;
  throw new RunError(
    `training diverged: the ${lost[0]} is ${lost[1]}; start over with 'propel train-generator --fresh' and a lower train.learningRate, or with train.klStop set`,
  );
}
