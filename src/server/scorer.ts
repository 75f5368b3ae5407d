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

/** How a generator is asked, how its completions end, and what they earn. */
export interface TaskInfo {
  /** Type of task → what the generator is asked for one; where it varies, an example. */
  readonly prompts: Readonly<Record<string, string>>;
  /** auto: the prompt is a user's turn where the generator has a chat template; always; never: it is put as it is. */
  readonly chat: string;
  /** Texts that end a completion, beside the generator's end of sequence and what the notation calls a complete task. */
  readonly stops: readonly string[];
  readonly maxNewTokens: number;
  /** Of sampling in reinforcement learning. */
  readonly temperature: number;
  readonly band: Readonly<Record<'min' | 'max' | 'of', number>>;
  /** A valid task earns a logit within ± clip. */
  readonly reward: { readonly clip: number; readonly invalid: number };
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
  /** What a trainer must know to have a generator rewarded by it, for `/v1/info`. */
  readonly task: TaskInfo;
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
