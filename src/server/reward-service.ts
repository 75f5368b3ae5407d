/**
 * Rewards of completions, for many requests at once. Every item ends as one of three: valid with a reward, invalid with the penalty,
 * or error, which says nothing of the completion and has no reward. No item waits for another's time limit.
 */
import { Dropped, FairQueue } from './fair-queue.js';
import type { Checked, RewardScorer } from './scorer.js';
import type { Asker, Repeats } from './repeats.js';
import { ScoreBatcher } from './score-batcher.js';
import { VerdictCache } from './verdict-cache.js';

export interface RewardItem {
  readonly kind: string;
  readonly completion: string;
  /** Whether it reached its greatest length without an end, so that what is written is not all of it. */
  readonly isCut: boolean;
}

export interface Judged {
  /** One an item, in order. */
  readonly results: readonly ItemResult[];
  /** To be called when they do not arrive: their tasks are then no repeats when they are sent again. */
  readonly withdraw: () => void;
}

/** A result that no session changes, and the text of a valid task. */
interface Verdict {
  readonly result: ItemResult;
  readonly task: string | null;
}

export type ItemResult =
  | {
      readonly status: 'valid';
      readonly reward: number;
      readonly outcome: 'ok';
      readonly detail: '';
      /** Probe → band logit. */
      readonly logits: Readonly<Record<string, number>>;
      /** Of the band, by the least sure probe. */
      readonly probability: number;
    }
  | {
      readonly status: 'invalid';
      readonly reward: number;
      readonly outcome: string;
      readonly detail: string;
      readonly logits: null;
      readonly probability: null;
    }
  | ItemError;

export interface ItemError {
  readonly status: 'error';
  readonly reward: null;
  readonly outcome: ErrorOutcome;
  readonly detail: string;
  readonly logits: null;
  readonly probability: null;
}

/**
 * `deadline`: not done by the request's; `item_timeout`: its own check took too long, by the clock; `shutting_down`; `failure`: the
 * sandbox or the reference model failed.
 */
export type ErrorOutcome = 'deadline' | 'item_timeout' | 'shutting_down' | 'failure';

export interface ServiceLimits {
  /** Milliseconds that one item's check may take once it has begun, whatever its program does. */
  readonly itemTimeoutMs: number;
  /** Items that may wait; a request that would exceed it is refused. */
  readonly maxWaiting: number;
}

/** Called as items move, for metrics. */
export interface ServiceObserver {
  readonly checked: (seconds: number) => void;
  readonly scored: (batch: number) => void;
}

/** A longer completion is invalid unread: no task is that long. */
export const MAX_COMPLETION = 1 << 18;
const LARGEST_BATCH = 64;
const CACHED_VERDICTS = 16_384;
/** Checks under way for each that can run: the next one is there when a worker is free. */
const CHECKS_PER_WORKER = 2;

type InTurn = (job: () => Promise<void>) => Promise<void>;

const STOPPED = 'the server is shutting down';

/** Too much waits already. */
export class Overloaded extends Error {
  override readonly name = 'Overloaded';
}

export class RewardService {
  readonly #scorer: RewardScorer;
  readonly #limits: ServiceLimits;
  readonly #observer: ServiceObserver;
  readonly #queue: FairQueue;
  readonly #batcher: ScoreBatcher<readonly number[]>;
  readonly #cache = new VerdictCache<Verdict>(CACHED_VERDICTS);
  readonly #repeats: Repeats;
  #isStopped = false;
  readonly #stops = new Set<(outcome: ErrorOutcome, detail: string) => void>();

  constructor(scorer: RewardScorer, limits: ServiceLimits, observer: ServiceObserver, repeats: Repeats) {
    this.#repeats = repeats;
    this.#scorer = scorer;
    this.#limits = limits;
    this.#observer = observer;
    this.#queue = new FairQueue(scorer.parallel * CHECKS_PER_WORKER);
    this.#batcher = new ScoreBatcher((texts) => scorer.score(texts), LARGEST_BATCH, observer.scored);
  }

  get queue(): { readonly running: number; readonly waiting: number } {
    return this.#queue.size;
  }

  /**
   * One result an item, in order, within `deadlineMs`. What is not done by then, or when `gone` is aborted, is an error; a task that the
   * asker's session was paid for before is invalid, a `repeat`.
   * @throws Overloaded
   */
  async judge(items: readonly RewardItem[], asker: Asker, deadlineMs: number, gone: AbortSignal): Promise<Judged> {
    const verdicts = await this.#verdicts(items, deadlineMs, gone);
    const { repeats, withdraw } = this.#repeats.admit(
      asker,
      verdicts.map(({ task }) => task),
    );
    const results = verdicts.map(({ result }, i) =>
      repeats[i] ? this.#invalid('repeat', 'the session was paid for this task before') : result,
    );
    return { results, withdraw };
  }

  async #verdicts(items: readonly RewardItem[], deadlineMs: number, gone: AbortSignal): Promise<Verdict[]> {
    if (this.#isStopped) return items.map(() => withoutTask(itemError('shutting_down', STOPPED)));
    const verdicts = new Map<string, Verdict>();
    const keys = items.map(({ kind, completion, isCut }) => VerdictCache.key(kind, completion, isCut));
    const pending = new Map<string, RewardItem>();
    for (const [i, key] of keys.entries()) {
      const known = this.#cache.get(key);
      if (known === undefined) pending.set(key, items[i]!);
      else verdicts.set(key, known);
    }
    if (this.#queue.size.waiting + pending.size > this.#limits.maxWaiting) {
      throw new Overloaded(`${this.#queue.size.waiting} items wait already`);
    }
    const lane = this.#queue.lane();
    const work = Promise.all(
      [...pending].map(async ([key, item]) => {
        const verdict = await this.#judgeOne(item, (job) => lane.run(job));
        verdicts.set(key, verdict);
        if (verdict.result.status !== 'error') this.#cache.set(key, verdict);
      }),
    );
    const late = await this.#within(work, deadlineMs, gone);
    if (late !== null) lane.drop(late.detail);
    return keys.map((key) => verdicts.get(key) ?? withoutTask(late!));
  }

  /** Errors for all that is not done. */
  stop(): void {
    this.#isStopped = true;
    for (const stop of this.#stops) stop('shutting_down', STOPPED);
  }

  /** Null when the work is done in time, else the error for what is not. */
  #within(work: Promise<unknown>, deadlineMs: number, gone: AbortSignal): Promise<ItemError | null> {
    return new Promise((resolve, reject) => {
      const end = (late: ItemError | null): void => {
        clearTimeout(timer);
        gone.removeEventListener('abort', left);
        this.#stops.delete(stop);
        resolve(late);
      };
      const stop = (outcome: ErrorOutcome, detail: string): void => end(itemError(outcome, detail));
      const left = (): void => stop('deadline', 'the client has left');
      const timer = setTimeout(
        () => stop('deadline', `not done within the request's ${deadlineMs / 1000} s`),
        deadlineMs,
      );
      gone.addEventListener('abort', left, { once: true });
      this.#stops.add(stop);
      work.then(() => end(null), reject);
    });
  }

  async #judgeOne({ kind, completion, isCut }: RewardItem, inTurn: InTurn): Promise<Verdict> {
    if (isCut) return withoutTask(this.#invalid('cut_off', 'no end within the greatest length'));
    if (completion.length > MAX_COMPLETION) {
      return withoutTask(this.#invalid('too_long', `more than ${MAX_COMPLETION} characters`));
    }
    try {
      const checked = await this.#check(kind, completion, inTurn);
      if (checked === null) {
        const seconds = this.#limits.itemTimeoutMs / 1000;
        return withoutTask(itemError('item_timeout', `its check took longer than ${seconds} s`));
      }
      const { valid, outcome, detail, text } = checked;
      if (!valid || text === null) return withoutTask(this.#invalid(outcome, detail));
      return { result: this.#valid(await this.#batcher.add(text)), task: text };
    } catch (error) {
      const outcome = error instanceof Dropped ? 'deadline' : 'failure';
      return withoutTask(itemError(outcome, messageOf(error)));
    }
  }

  #valid(logits: readonly number[]): ItemResult {
    return {
      status: 'valid',
      reward: this.#scorer.reward(logits),
      outcome: 'ok',
      detail: '',
      logits: Object.fromEntries(this.#scorer.probes.map((name, j) => [name, logits[j]!])),
      probability: this.#scorer.bandProbability(logits),
    };
  }

  /**
   * Null when it takes too long. Its slot is held to its real end all the same, so that what hangs cannot pile up in the sandbox.
   * @throws Dropped, or what the scorer throws
   */
  #check(kind: string, completion: string, inTurn: InTurn): Promise<Checked | null> {
    return new Promise((resolve, reject) => {
      const job = async (): Promise<void> => {
        const began = performance.now();
        const timer = setTimeout(resolve, this.#limits.itemTimeoutMs, null);
        try {
          resolve(await this.#scorer.check(kind, completion));
        } finally {
          clearTimeout(timer);
          this.#observer.checked((performance.now() - began) / 1000);
        }
      };
      inTurn(job).catch(reject);
    });
  }

  #invalid(outcome: string, detail: string): ItemResult {
    return { status: 'invalid', reward: this.#scorer.reward(null), outcome, detail, logits: null, probability: null };
  }
}

function withoutTask(result: ItemResult): Verdict {
  return { result, task: null };
}

function itemError(outcome: ErrorOutcome, detail: string): ItemError {
  return { status: 'error', reward: null, outcome, detail, logits: null, probability: null };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
