/** Verdicts on completions that were judged before: a request that is sent again, since part of it failed, costs only that part. */
import { createHash } from 'node:crypto';

export class VerdictCache<Verdict> {
  readonly #capacity: number;
  /** Least recently used first. */
  readonly #verdicts = new Map<string, Verdict>();

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  static key(kind: string, completion: string, isCut: boolean): string {
    return createHash('sha256').update(`${kind} ${isCut}\n`).update(completion).digest('base64');
  }

  get(key: string): Verdict | undefined {
    const verdict = this.#verdicts.get(key);
    if (verdict === undefined) return undefined;
    this.#verdicts.delete(key);
    this.#verdicts.set(key, verdict);
    return verdict;
  }

  set(key: string, verdict: Verdict): void {
    this.#verdicts.delete(key);
    this.#verdicts.set(key, verdict);
    if (this.#verdicts.size <= this.#capacity) return;
    const [oldest] = this.#verdicts.keys();
    this.#verdicts.delete(oldest!);
  }
}
