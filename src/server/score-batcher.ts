/** Texts of many requests scored together: what arrives while one pass runs goes into the next. */

interface Waiting<Score> {
  readonly text: string;
  readonly resolve: (score: Score) => void;
  readonly reject: (error: unknown) => void;
}

export class ScoreBatcher<Score> {
  readonly #score: (texts: readonly string[]) => Promise<readonly Score[]>;
  readonly #largest: number;
  readonly #onBatch: (size: number) => void;
  #waiting: Waiting<Score>[] = [];
  #isRunning = false;

  constructor(
    score: (texts: readonly string[]) => Promise<readonly Score[]>,
    largest: number,
    onBatch: (size: number) => void = () => {},
  ) {
    this.#score = score;
    this.#largest = largest;
    this.#onBatch = onBatch;
  }

  add(text: string): Promise<Score> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ text, resolve, reject });
      if (this.#isRunning) return;
      this.#isRunning = true;
      // Let those that are ready at the same moment come along.
      setImmediate(() => void this.#drain());
    });
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, this.#largest);
      this.#waiting = this.#waiting.slice(this.#largest);
      await this.#scoreBatch(batch);
    }
    this.#isRunning = false;
  }

  /** A text that cannot be scored fails alone: the others of its batch are scored again without it. */
  async #scoreBatch(batch: readonly Waiting<Score>[]): Promise<void> {
    this.#onBatch(batch.length);
    try {
      const scores = await this.#score(batch.map(({ text }) => text));
      for (const [i, { resolve }] of batch.entries()) resolve(scores[i]!);
    } catch (error) {
      if (batch.length === 1) return batch[0]!.reject(error);
      for (const each of batch) await this.#scoreBatch([each]);
    }
  }
}
