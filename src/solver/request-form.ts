/**
 * The body that every request of a solver has. Sampling is plain: nothing but the temperature shapes it, as with a local solver. What a request
 * leaves out takes the server's defaults (llama.cpp: top_k 40, top_p 0.95, min_p 0.05) or the model's (`generation_config.json` under vLLM),
 * so each such field is sent with the value by which it does nothing.
 */
import { requestBody, routeOf, type ChatSettings, type Prompt, type Request } from './chat-protocol.js';
import { NoRoom, type RefusedRequest } from './endpoint-client.js';
import { FIELD_STATUSES, givenFields } from './refused-settings.js';
import { refusedField } from './server-words.js';

/** vLLM, SGLang and llama.cpp take all of them, or let those be that they do not know; −1 lets every token be in each. */
const PLAIN_SAMPLING: Readonly<Record<string, number>> = {
  top_p: 1,
  top_k: -1,
  min_p: 0,
  presence_penalty: 0,
  frequency_penalty: 0,
  repetition_penalty: 1,
  /** llama.cpp's name for it. */
  repeat_penalty: 1,
};

/** How a question is put to the model; null where it cannot be. */
export type PromptOf = (question: string) => Prompt | null;

export interface Asking {
  readonly question: string;
  readonly n: number;
  readonly seed: number;
  readonly maxNewTokens?: number;
}

export class RequestForm {
  readonly #settings: ChatSettings;
  readonly #promptOf: PromptOf;
  readonly #plain: Map<string, number>;

  constructor(settings: ChatSettings, promptOf: PromptOf) {
    this.#settings = settings;
    this.#promptOf = promptOf;
    this.#plain = new Map(Object.entries(PLAIN_SAMPLING).filter(([name]) => !Object.hasOwn(settings.body, name)));
  }

  /** @throws RangeError for a question that cannot be asked */
  request({ question, n, seed, maxNewTokens = this.#settings.maxNewTokens }: Asking): Request {
    const prompt = this.#promptOf(question);
    if (prompt === null) throw new RangeError('the question cannot be asked');
    const body = { ...Object.fromEntries(this.#plain), ...this.#settings.body };
    return { route: routeOf(prompt), body: requestBody({ ...this.#settings, maxNewTokens, body }, prompt, n, seed) };
  }

  /** Whether a question can be asked. */
  takes(question: string): boolean {
    return this.#promptOf(question) !== null;
  }

  /** Fields that make sampling plain and that the server refuses. */
  get refused(): string[] {
    const { body } = this.#settings;
    return Object.keys(PLAIN_SAMPLING).filter((name) => !this.#plain.has(name) && !Object.hasOwn(body, name));
  }

  /** Send a field of plain sampling no more, where a refusal names one. @returns its name; null where it names none */
  leaveOut(refusal: RefusedRequest): string | null {
    if (refusal instanceof NoRoom || !FIELD_STATUSES.has(refusal.status)) return null;
    const field = refusedField(refusal.said, [...Object.keys(PLAIN_SAMPLING), ...givenFields(this.#settings)]);
    if (field === null || !Object.hasOwn(PLAIN_SAMPLING, field) || Object.hasOwn(this.#settings.body, field))
      return null;
    this.#plain.delete(field);
    return field;
  }
}
