/** Exact and near duplicates among tasks, and novelty against tasks that are known. */
import { type Interval, wilsonInterval } from './interval.js';
import { skeleton } from './python-tokens.js';

/** A task as far as duplicates go. */
export interface TaskText {
  /** Tasks of different types are never duplicates. */
  readonly type: string;
  /** Program and call, as Python source. */
  readonly text: string;
}

/** Tokens in a shingle. */
const SHINGLE = 3;

/** Two tasks whose similarity is at least this are near duplicates. */
export const NEAR_DUPLICATE = 0.8;

/**
 * Known tasks, to find the nearest one in. The similarity of two tasks of one type is the Jaccard index |A ∩ B| / |A ∪ B| of their sets of
 * token 3-grams, over skeletons: tokens with variables renamed by order of appearance and constants masked. So tasks that differ
 * in names, constants, layout or the length of a list have similarity 1 (type-2 clones), and one change within a program of about 30 tokens
 * leaves 0.8 or more (type-3 clones); in a shorter one a changed operator makes another task. Exact, by an inverted index: no hashing, no
 * sampling. The threshold 0.8 on Jaccard indices is that of the literature on duplicates in corpora.
 *
 * Sources: A. Broder, "On the resemblance and containment of documents" (1997); M. Allamanis, "The adverse effects of code
 * duplication in machine learning models of code" (2019); K. Lee et al., arXiv 2107.06499.
 */
export class TaskIndex {
  readonly #shingleIds = new Map<string, number>();
  /** Shingle → which distinct shingle sets have it. */
  readonly #holders: number[][] = [];
  readonly #sizes: number[] = [];
  readonly #setIds = new Map<string, number>();
  readonly #texts = new Set<string>();
  /** Shingles in common with the task that is looked up; zeros between look-ups. */
  #common: number[] = [];

  constructor(tasks: Iterable<TaskText> = []) {
    for (const task of tasks) this.add(task);
  }

  add(task: TaskText): void {
    this.#texts.add(taskKey(task));
    const shingles = this.#shingles(task);
    const key = shingles.toSorted((a, b) => a - b).join();
    if (this.#setIds.has(key)) return;
    const set = this.#setIds.size;
    this.#setIds.set(key, set);
    this.#sizes.push(shingles.length);
    this.#common.push(0);
    for (const shingle of shingles) this.#holders[shingle]!.push(set);
  }

  /** Whether a task of this type with this very text is known. */
  has(task: TaskText): boolean {
    return this.#texts.has(taskKey(task));
  }

  /** Largest similarity to a known task, 0 to 1; 0 when none shares a shingle. */
  nearest(task: TaskText): number {
    const shingles = this.#shingles(task);
    const touched: number[] = [];
    for (const shingle of shingles) {
      for (const set of this.#holders[shingle]!) {
        if (this.#common[set]!++ === 0) touched.push(set);
      }
    }
    let nearest = 0;
    for (const set of touched) {
      const common = this.#common[set]!;
      nearest = Math.max(nearest, common / (shingles.length + this.#sizes[set]! - common));
      this.#common[set] = 0;
    }
    return nearest;
  }

  /** Numbers of the task's distinct shingles; a task of fewer tokens than a shingle has is one shingle. */
  #shingles({ type, text }: TaskText): number[] {
    const tokens = skeleton(text);
    const ids = new Set<number>();
    for (let start = 0; start === 0 || start + SHINGLE <= tokens.length; start++) {
      const shingle = [type, ...tokens.slice(start, start + SHINGLE)].join(' ');
      let id = this.#shingleIds.get(shingle);
      if (id === undefined) {
        this.#shingleIds.set(shingle, (id = this.#shingleIds.size));
        this.#holders.push([]);
      }
      ids.add(id);
    }
    return [...ids];
  }
}

/** Equal for tasks of one type with the same text, and for no others. */
export function taskKey({ type, text }: TaskText): string {
  return `${type}\n${text}`;
}

export interface DuplicateShares {
  /** Tasks whose text an earlier one has / all. */
  readonly exact: number;
  /** Tasks that are near duplicates of an earlier one, exact ones included / all. */
  readonly near: number;
}

/**
 * Shares of tasks that repeat an earlier one. They grow with the number of tasks, so sets compare only at equal numbers. Null for no task.
 */
export function duplicateShares(tasks: readonly TaskText[]): DuplicateShares | null {
  if (tasks.length === 0) return null;
  const earlier = new TaskIndex();
  let exact = 0;
  let near = 0;
  for (const task of tasks) {
    if (earlier.has(task)) exact++;
    if (earlier.nearest(task) >= NEAR_DUPLICATE) near++;
    earlier.add(task);
  }
  return { exact: exact / tasks.length, near: near / tasks.length };
}

export interface Novelty {
  /** Tasks that are neither exact nor near duplicates of a known one / all, with its Wilson 95% interval. */
  readonly share: number;
  readonly interval: Interval;
  /** Mean over the tasks of 1 − similarity to the nearest known task: 0 all known, 1 nothing in common. */
  readonly meanDistance: number;
}

/** How far tasks lie from known ones; does not depend on their number. Null for no task. */
export function novelty(tasks: readonly TaskText[], known: TaskIndex): Novelty | null {
  if (tasks.length === 0) return null;
  const similarities = tasks.map((task) => known.nearest(task));
  const novel = similarities.filter((similarity) => similarity < NEAR_DUPLICATE).length;
  return {
    share: novel / tasks.length,
    interval: wilsonInterval(novel, tasks.length),
    meanDistance: similarities.reduce((sum, similarity) => sum + 1 - similarity, 0) / tasks.length,
  };
}
