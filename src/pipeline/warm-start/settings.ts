/** What a warm start is told, and what it measures. */
import type { Interval } from '../../metrics/interval.js';

export interface WarmStartSettings {
  /** Times that every document is learnt from. */
  readonly passes: number;
  /** Documents an update. */
  readonly batch: number;
  /** The peak. */
  readonly learningRate: number;
  /** Updates until the peak. */
  readonly warmUp: number;
  readonly rank: number;
  readonly alpha: number;
}

export const WARM_START_DEFAULTS: WarmStartSettings = {
  passes: 1,
  batch: 16,
  learningRate: 4e-4,
  warmUp: 10,
  rank: 16,
  alpha: 32,
};

export type DocumentSource = { readonly file: string } | { readonly microWorld: number };

/** The loss on documents that were not trained on, in nats a token of a completion, with its 95% interval over documents. */
export interface HeldOutLoss {
  readonly nats: number;
  readonly interval: Interval;
}
