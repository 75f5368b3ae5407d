/** Rollouts as the batches of a policy update: sequences of one prompt together, of like length, as many as fit. */
import type { UpdateShape } from '../lm/footprint.js';
import { packByLength } from '../lm/packing.js';
import type { BatchLimits } from '../lm/packing.js';
import type { PolicyBatch } from '../lm/trainer.js';
import { largest } from '../metrics/extremes.js';

/** One sampled sequence: its prompt, what was written, and what the sampler said of each written token. */
export interface Rollout {
  readonly prompt: readonly number[];
  readonly tokens: readonly number[];
  /** log π_old of each token, from the rollout itself. */
  readonly logProbs: Float32Array;
  readonly advantage: number;
}

/**
 * Prompt tokens, the last one aside, from which sequences share them. Sharing fewer would pay too, but less than it does that the short
 * openings of small models' task types fill batches together.
 */
const LEAST_SHARED = 32;

export interface MicroBatchLimits extends Pick<BatchLimits, 'rows' | 'tokens'> {
  /** Whether a batch fits into memory, its sequences as long as the longest. */
  readonly fits?: ((shape: UpdateShape) => boolean) | undefined;
}

/** Tokens of a prompt that its sequences share in an update. */
export const sharedTokens = (prompt: number): number => (prompt > LEAST_SHARED ? prompt - 1 : 0);

/**
 * Two or more sequences of one prompt of more than 32 tokens have batches of their own, which compute the prompt once; the others go
 * together, whatever their prompts. In the limit on tokens a shared prompt counts once, beside the sequences with their padding. What goes
 * where follows from the prompts and the lengths alone.
 */
export function microBatches(rollouts: readonly Rollout[], limits: MicroBatchLimits): PolicyBatch[] {
  const byPrompt = new Map<string, Rollout[]>();
  for (const rollout of rollouts) {
    const key = rollout.prompt.join();
    const group = byPrompt.get(key);
    if (group) group.push(rollout);
    else byPrompt.set(key, [rollout]);
  }
  const sharedBy = ([first]: readonly Rollout[]): number => sharedTokens(first!.prompt.length);
  const sharing = [...byPrompt.values()].filter((group) => group.length > 1 && sharedBy(group) > 0);
  const shared = new Set(sharing.flat());
  return [
    ...sharing.flatMap((group) => pack(group, sharedBy(group), limits)),
    ...pack(
      rollouts.filter((rollout) => !shared.has(rollout)),
      0,
      limits,
    ),
  ];
}

/** Batches of sequences whose first `shared` tokens are the same. */
function pack(rollouts: readonly Rollout[], shared: number, { rows, tokens, fits }: MicroBatchLimits): PolicyBatch[] {
  // The last token of a sequence is only a label.
  const lengths = rollouts.map((r) => r.prompt.length + r.tokens.length - 1 - shared);
  const limits = {
    rows,
    tokens: tokens - shared,
    fits: fits && ((batch: number, time: number) => fits({ batch, time, prefix: shared })),
  };
  return packByLength(lengths, limits).map((batch) =>
    policyBatch(
      batch.map((i) => rollouts[i]!),
      batch.length > 1 ? shared : 0,
    ),
  );
}

/**
 * Sequences as next-token predictions: column t reads token t and is scored on token t + 1, where that was written by the policy. The first
 * `shared` tokens of their prompt, which they have in common, come before all columns.
 */
export function policyBatch(rollouts: readonly Rollout[], shared = 0): PolicyBatch {
  const time = largest(rollouts.map((r) => r.prompt.length + r.tokens.length)) - 1 - shared;
  const size = rollouts.length * time;
  const ids = new BigInt64Array(size);
  const labels = new BigInt64Array(size);
  const mask = new Float32Array(size);
  const advantages = new Float32Array(size);
  const oldLogProbs = new Float32Array(size);
  rollouts.forEach((rollout, row) => {
    const sequence = [...rollout.prompt.slice(shared), ...rollout.tokens];
    for (let t = 0; t + 1 < sequence.length; t++) {
      const at = row * time + t;
      ids[at] = BigInt(sequence[t]!);
      labels[at] = BigInt(sequence[t + 1]!);
      const written = shared + t + 1 - rollout.prompt.length;
      if (written < 0) continue;
      mask[at] = 1;
      advantages[at] = rollout.advantage;
      oldLogProbs[at] = rollout.logProbs[written]!;
    }
  });
  const prefix = shared === 0 ? {} : { prefix: BigInt64Array.from(rollouts[0]!.prompt.slice(0, shared), BigInt) };
  const terms = { advantages, oldLogProbs, referenceLogProbs: null };
  return { batch: rollouts.length, time, ...prefix, ids, labels, mask, ...terms };
}
