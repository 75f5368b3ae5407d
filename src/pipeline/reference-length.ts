/** Tasks that the reference model cannot read in whole are invalid: scored by a part, what follows it would be free to write. */
import type { Check } from '../domain/domain.js';
import { openModelFiles } from '../lm/language-model.js';
import type { ModelFiles } from '../lm/language-model.js';
import { readConfig } from '../lm/config.js';

/** Tokens at most that begin or end any text. */
const MOST_AROUND = 8;

export class ReferenceLength {
  readonly #folder: string;
  #positions: number | null = null;
  #files: Promise<ModelFiles> | null = null;

  /** @param folder the reference model's */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The checks, `too_long` where a valid task's text has more tokens than the model has positions. */
  limit<Task>(checks: readonly Check<Task>[], render: (task: Task) => string): Promise<Check<Task>[]> {
    return Promise.all(
      checks.map(async (check) => {
        const tokens = check.task === null ? 0 : await this.#tokensBeyond(render(check.task));
        if (tokens === 0) return check;
        const detail = `a task of ${tokens} tokens, the reference model reads ${this.#positions}`;
        return { ...check, valid: false, outcome: 'too_long', detail, task: null };
      }),
    );
  }

  /** Tokens of a text that has too many; 0 of others. */
  async #tokensBeyond(text: string): Promise<number> {
    const positions = (this.#positions ??= readConfig(this.#folder).maxPositions);
    // No token is less than a byte, once letters are as far apart as any tokenizer takes them, but for those around a text.
    if (Buffer.byteLength(text.normalize('NFKD')) + MOST_AROUND <= positions) return 0;
    const { tokenizer } = await (this.#files ??= openModelFiles(this.#folder));
    const tokens = tokenizer.prompt(text).length;
    return tokens > positions ? tokens : 0;
  }
}
