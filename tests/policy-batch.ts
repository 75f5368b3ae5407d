/** The batches of `src/lm/fixtures/<family>/expected.json`: padded rows of a policy update, off-policy and with a reference. */
import type { LossSettings, PolicyBatch } from '../src/lm/trainer.js';

export interface ExpectedBatches {
  readonly lengths: readonly number[];
  readonly loss: Omit<LossSettings, 'tokens'>;
  readonly updates: Readonly<Record<'weights' | 'adapter', { readonly batch: Readonly<Record<string, number[]>> }>>;
}

export function policyBatch({ lengths, updates }: ExpectedBatches, kind: 'weights' | 'adapter'): PolicyBatch {
  const { batch } = updates[kind];
  const numbers = (name: string) => Float32Array.from(batch[name]!);
  return {
    batch: lengths.length,
    time: Math.max(...lengths),
    ids: BigInt64Array.from(batch['ids']!, BigInt),
    labels: BigInt64Array.from(batch['labels']!, BigInt),
    mask: numbers('mask'),
    advantages: numbers('advantages'),
    oldLogProbs: numbers('oldLogProbs'),
    referenceLogProbs: numbers('referenceLogProbs'),
  };
}
