/**
 * Supervised fine-tuning on prompts and completions, on the engine of the policy update: with π for π_old and every advantage 1, the
 * update's gradient is that of the cross-entropy, −Σ log π(token) / tokens over the tokens of the completions.
 */
import { RunError } from '../errors.js';
import type { Adapter } from '../lm/adapter.js';
import type { LanguageModel, TrainerThread } from '../lm/language-model.js';
import { packByLength } from '../lm/packing.js';
import type { AdamWSettings } from '../lm/trainer.js';
import { deriveSeed, seededRandom, shuffled } from '../metrics/random.js';
import { microBatches, policyBatch } from './micro-batches.js';
import type { MicroBatchLimits, Rollout } from './micro-batches.js';

/** Token ids: what is given, and what is learnt after it, the token that ends it included. */
export interface TrainingDocument {
  readonly prompt: readonly number[];
  readonly completion: readonly number[];
}

/** Updates whose documents are sorted by length together, so that an update's are of like length and little of it is padding. */
const BUCKET = 16;

/**
 * The documents of every update, by index: `passes` shuffled passes over all, within buckets by length, the updates of a bucket in a drawn
 * order. It follows from the seed and the lengths alone. The last update of a pass may be smaller.
 */
export function trainingOrder(
  lengths: readonly number[],
  { batch, passes, seed }: { readonly batch: number; readonly passes: number; readonly seed: number },
): number[][] {
  return Array.from({ length: passes }, (_, pass) => {
    const random = seededRandom(deriveSeed(seed, 'order of documents', pass));
    const order = shuffled([...lengths.keys()], random);
    const updates: number[][] = [];
    for (let from = 0; from < order.length; from += BUCKET * batch) {
      const bucket = order.slice(from, from + BUCKET * batch).sort((a, b) => lengths[a]! - lengths[b]! || a - b);
      const cut: number[][] = [];
      for (let at = 0; at < bucket.length; at += batch) cut.push(bucket.slice(at, at + batch));
      for (const one of shuffled(cut, random)) updates.push(one);
    }
    return updates;
  }).flat();
}

/** Of the peak that is reached after the warm-up, what is left at the end. */
const LAST_SHARE = 0.05;

/** Linear warm-up to the peak over `warmUp` updates, under a half cosine from the peak to a twentieth of it. @param update from 0 */
export function learningRateAt(
  update: number,
  { peak, warmUp, updates }: { readonly peak: number; readonly warmUp: number; readonly updates: number },
): number {
  const risen = Math.min(1, (update + 1) / warmUp);
  const fallen = LAST_SHARE + (1 - LAST_SHARE) * 0.5 * (1 + Math.cos((Math.PI * update) / updates));
  return peak * risen * fallen;
}

/** One optimiser step. @returns nats a token before it. @throws RunError when training has diverged */
export async function supervisedUpdate(
  trainer: Pick<TrainerThread, 'accumulate' | 'step'>,
  documents: readonly TrainingDocument[],
  limits: MicroBatchLimits,
  optimiser: AdamWSettings,
): Promise<number> {
  const tokens = documents.reduce((sum, { completion }) => sum + completion.length, 0);
  let surprise = 0;
  for (const batch of microBatches(documents.map(asRollout), limits)) {
    const supervised = { ...batch, oldLogProbs: null, referenceLogProbs: null };
    const { logProbs } = await trainer.accumulate(supervised, { tokens, clip: 1, kl: 0, entropy: 0 });
    surprise -= logProbs.reduce((sum, logProb, i) => sum + logProb * batch.mask[i]!, 0);
  }
  const { gradientNorm } = await trainer.step(optimiser);
  if (!Number.isFinite(surprise) || !Number.isFinite(gradientNorm))
    throw new RunError(`training diverged: the loss is ${surprise / tokens}; start over with a lower learning rate`);
  return surprise / tokens;
}

export interface DocumentLoss {
  /** −log π of the completion. */
  readonly nats: number;
  readonly tokens: number;
}

/** Of each document, in order. */
export async function documentLosses(
  model: Pick<LanguageModel, 'logProbs'>,
  adapter: Adapter | null,
  documents: readonly TrainingDocument[],
  { rows, tokens, fits }: MicroBatchLimits,
): Promise<DocumentLoss[]> {
  const lengths = documents.map(({ prompt, completion }) => prompt.length + completion.length - 1);
  const losses: DocumentLoss[] = documents.map(({ completion }) => ({ nats: 0, tokens: completion.length }));
  const fitsRows = fits && ((batch: number, time: number) => fits({ batch, time }));
  for (const part of packByLength(lengths, { rows, tokens, fits: fitsRows })) {
    const batch = policyBatch(part.map((i) => asRollout(documents[i]!)));
    const logProbs = await model.logProbs(batch, adapter);
    part.forEach((document, row) => {
      let nats = 0;
      for (let t = row * batch.time; t < (row + 1) * batch.time; t++) nats -= logProbs[t]! * batch.mask[t]!;
      losses[document] = { nats, tokens: losses[document]!.tokens };
    });
  }
  return losses;
}

function asRollout({ prompt, completion }: TrainingDocument): Rollout {
  return { prompt, tokens: completion, logProbs: new Float32Array(completion.length), advantage: 1 };
}
