/** Notices that an endpoint answers nothing (labels from its attempts would all say that no task can be solved), and tells its oddities once. */
import { RunError } from '../errors.js';
import type { Attempt } from './solver.js';

/** Attempts that are judged together, and the questions that they are of at least: one odd question says nothing of the server. */
const ATTEMPTS = 24;
const QUESTIONS = 4;
const NEARLY_ALL = 0.9;
/** Oddities of a server that are told: one that never repeats itself is not listened to for ever. */
const MOST_WARNINGS = 20;

/** The endpoint answers nothing that could be graded. What it gave is worth nothing, and is not to be kept. */
export class NoAnswers extends RunError {}

/** How attempts ended that are no answers, counted. */
export function countEndings(
  attempts: readonly Pick<Attempt, 'status'>[],
): Record<'empty' | 'refused' | 'cutOff', number> {
  const count = (wanted: Attempt['status']): number => attempts.filter(({ status }) => status === wanted).length;
  return { empty: count('empty'), refused: count('refused'), cutOff: count('cut_off') };
}

/** Judges attempts in blocks, so that a server that was well for long is noticed too once it is not. */
export class AnswerWatch {
  readonly #endpoint: string;
  readonly #maxNewTokens: number;
  readonly #warn: (message: string) => void;
  readonly #warned = new Set<string>();
  readonly #questions = new Set<object>();
  #block: Pick<Attempt, 'status'>[] = [];

  constructor(
    { endpoint, maxNewTokens }: { readonly endpoint: string; readonly maxNewTokens: number },
    warn: (message: string) => void,
  ) {
    this.#endpoint = endpoint;
    this.#maxNewTokens = maxNewTokens;
    this.#warn = warn;
  }

  /**
   * @param question told apart by identity: several may have one text
   * @throws NoAnswers when these attempts make a block whole of which nearly all have no answer
   */
  judge(question: object, attempts: readonly Pick<Attempt, 'status'>[]): void {
    this.#questions.add(question);
    for (const { status } of attempts) this.#block.push({ status });
    if (this.#block.length < ATTEMPTS || this.#questions.size < QUESTIONS) return;
    const all = this.#block.length;
    const { empty, refused, cutOff } = countEndings(this.#block);
    this.#block = [];
    this.#questions.clear();
    if (empty + refused >= NEARLY_ALL * all) {
      throw new NoAnswers(
        `the solver's endpoint ${this.#endpoint} answers nothing: of ${all} attempts ${empty} are empty` +
          `${refused > 0 ? ` and ${refused} refused` : ''}. See to the server's chat template and reasoning parser, or set solver.body ` +
          `(chat_template_kwargs: {enable_thinking: false}), solver.system or solver.model, and run again`,
      );
    }
    if (cutOff < NEARLY_ALL * all) return;
    this.tellOnce(
      `attempts are cut off at ${this.#maxNewTokens} new tokens, or have no room in the context, and so fail (${cutOff} of ${all}): raise solver.maxNewTokens, or let the model think less`,
    );
  }

  tellOnce(message: string): void {
    if (this.#warned.has(message) || this.#warned.size >= MOST_WARNINGS) return;
    this.#warned.add(message);
    this.#warn(`${this.#endpoint}: ${message}`);
  }
}
