/** What ends a model's completions, and the text of one that has ended. */
import { endsAtText, untilEnd } from '../text-end.js';
import type { TextEnd } from '../text-end.js';
import type { RolloutRequest } from './request-checks.js';
import { tokenEnds } from './token-ends.js';
import type { TokenEnds } from './token-ends.js';
import type { Tokenizer } from './tokenizer.js';

/** What is asked of a tokenizer for it. */
export type EndingTokenizer = Pick<Tokenizer, 'ends' | 'controlToken' | 'tokenBytes' | 'decode'>;

export class CompletionEnd {
  /** Tokens that end a completion: the model's own, and those that a stop names. */
  readonly stops: readonly number[];
  readonly #tokenizer: EndingTokenizer;
  readonly #texts: readonly TextEnd[];
  #tokens: TokenEnds | null = null;

  /**
   * @param stops texts that end a completion, wherever tokens begin and end; that of a control token stands for the token
   * @param end where a notation says that a text is complete
   */
  constructor(tokenizer: EndingTokenizer, stops: readonly string[], end: TextEnd | null) {
    this.#tokenizer = tokenizer;
    const control = stops.flatMap((stop) => tokenizer.controlToken(stop) ?? []);
    this.stops = [...new Set([...tokenizer.ends, ...control])];
    const texts = stops.filter((stop) => tokenizer.controlToken(stop) === undefined);
    this.#texts = [...texts.map(endsAtText), ...(end === null ? [] : [end])];
  }

  /** As a rollout is told. */
  get request(): Pick<RolloutRequest, 'stops' | 'ends'> {
    if (this.#texts.length === 0) return { stops: this.stops };
    this.#tokens ??= tokenEnds(this.#tokenizer.tokenBytes(), this.#texts);
    return { stops: this.stops, ends: this.#tokens };
  }

  /** What a completion says: what its last token says beyond the end is cut off. */
  textOf(tokens: readonly number[]): string {
    return untilEnd(this.#tokenizer.decode(tokens), this.#texts);
  }
}
