/** What the reward server needs of whoever checks and scores tasks. */

/** What the validity gate says of one completion. */
export interface Checked {
  readonly valid: boolean;
  /** `ok`, or why the task is invalid. */
  readonly outcome: string;
  readonly detail: string;
  /** The one text that the probe reads; null unless valid. */
  readonly text: string | null;
}

export interface RewardScorer {
  /** Types of task that it takes. */
  readonly kinds: readonly string[];
  /** Names of the probes, in the order of their logits. */
  readonly probes: readonly string[];
  /** Texts of special tokens that samples may begin and end with, beside the usual ones. */
  readonly specialTokens: readonly string[];
  /** What it is, for `/health`. */
  readonly about: Readonly<Record<string, string>>;
  /** Checks that can usefully be under way at once. */
  readonly parallel: number;
  /** @throws when the sandbox fails: that says nothing of the completion */
  check(kind: string, completion: string): Promise<Checked>;
  /** One list a text: its band logit by each probe. */
  score(texts: readonly string[]): Promise<readonly (readonly number[])[]>;
  /** The reward of a task with these logits; of an invalid one (null) the penalty. */
  reward(logits: readonly number[] | null): number;
  /** Probability of the band by the least sure probe. */
  bandProbability(logits: readonly number[]): number;
  close(): Promise<void>;
}
