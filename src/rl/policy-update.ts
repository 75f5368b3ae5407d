/** The policy update: rollouts with an advantage each → one or more clipped policy-gradient steps. It does not know what was rewarded. */
import { RunError } from '../errors.js';
import type { LanguageModel, TrainerThread } from '../lm/language-model.js';
import { packByLength } from '../lm/packing.js';
import type { BatchLimits } from '../lm/packing.js';
import type { AdamWSettings, PolicyBatch } from '../lm/trainer.js';

/** One sampled sequence: its prompt, what was written, and what the sampler said of each written token. */
export interface Rollout {
  readonly prompt: readonly number[];
  readonly tokens: readonly number[];
  /** log π_old of each token, from the rollout itself. */
  readonly logProbs: Float32Array;
  readonly advantage: number;
}

export interface UpdateSettings {
  /** Optimiser steps on the same rollouts. */
  readonly updates: number;
  /** Sequences in one forward and backward pass; gradients add up, so it changes only memory and time. */
  readonly microBatch: number;
  /** Tokens in one such pass at most, padding included. */
  readonly microBatchTokens: number;
  /** Whether one of so many sequences fits into memory at the length of the longest. */
  readonly fits?: BatchLimits['fits'];
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
 * The reference of the KL term is the policy's own checkpoint without an adapter.
 * @throws RunError when training has diverged
 */
export async function updatePolicy(
  policy: Pick<LanguageModel, 'logProbs'>,
  trainer: Pick<TrainerThread, 'accumulate' | 'step'>,
  rollouts: readonly Rollout[],
  settings: UpdateSettings,
): Promise<UpdateReport> {
  const batches = await microBatches(policy, rollouts, {
    rows: settings.microBatch,
    tokens: settings.microBatchTokens,
    fits: settings.fits,
  });
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

/** Padded batches of like length, with the reference's log-probabilities. */
async function microBatches(
  policy: Pick<LanguageModel, 'logProbs'>,
  rollouts: readonly Rollout[],
  limits: BatchLimits,
): Promise<PolicyBatch[]> {
  // The last token of a sequence is only a label.
  const lengths = rollouts.map((r) => r.prompt.length + r.tokens.length - 1);
  const batches: PolicyBatch[] = [];
  for (const rows of packByLength(lengths, limits)) {
    const batch = policyBatch(rows.map((i) => rollouts[i]!));
    batches.push({ ...batch, referenceLogProbs: await policy.logProbs(batch, null) });
  }
  return batches;
}

/** Sequences as next-token predictions: column t reads token t and is scored on token t + 1, where that was written by the policy. */
export function policyBatch(rollouts: readonly Rollout[]): PolicyBatch {
  const time = Math.max(...rollouts.map((r) => r.prompt.length + r.tokens.length)) - 1;
  const size = rollouts.length * time;
  const ids = new BigInt64Array(size);
  const labels = new BigInt64Array(size);
  const mask = new Float32Array(size);
  const advantages = new Float32Array(size);
  const oldLogProbs = new Float32Array(size);
  rollouts.forEach((rollout, row) => {
    const sequence = [...rollout.prompt, ...rollout.tokens];
    for (let t = 0; t + 1 < sequence.length; t++) {
      const at = row * time + t;
      ids[at] = BigInt(sequence[t]!);
      labels[at] = BigInt(sequence[t + 1]!);
      const written = t + 1 - rollout.prompt.length;
      if (written < 0) continue;
      mask[at] = 1;
      advantages[at] = rollout.advantage;
      oldLogProbs[at] = rollout.logProbs[written]!;
    }
  });
  return { batch: rollouts.length, time, ids, labels, mask, advantages, oldLogProbs, referenceLogProbs: null };
}
