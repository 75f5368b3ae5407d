/** A checkpoint's tokenizer, by @huggingface/transformers, from local files only. */
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { PreTrainedTokenizer } from '@huggingface/transformers';
import { UserError } from '../errors.js';
import { readEndTokens } from './end-tokens.js';

/** How a model is asked: `auto` puts the text into a user's turn where the model has a chat template, `never` leaves it as it is. */
export const CHAT_SETTINGS = ['auto', 'never'] as const;
export type ChatSetting = (typeof CHAT_SETTINGS)[number];

/** Llama 3's templates write today's date unless given one, and the same prompt must have the same tokens tomorrow. */
const TEMPLATE_VALUES = { date_string: '26 Jul 2024' };

export class Tokenizer {
  readonly #tokenizer: PreTrainedTokenizer;
  /** One more than the largest token id. */
  readonly vocabulary: number;
  /** Begin-of-sequence token; null where the family has none. */
  readonly bos: number | null;
  readonly eos: number;
  /** Every token that ends a text or a turn; `eos` is the first. */
  readonly ends: readonly number[];

  private constructor(
    tokenizer: PreTrainedTokenizer,
    vocabulary: number,
    bos: number | null,
    ends: readonly [number, ...number[]],
  ) {
    this.#tokenizer = tokenizer;
    this.vocabulary = vocabulary;
    this.bos = bos;
    this.eos = ends[0];
    this.ends = ends;
  }

  /** @throws UserError naming the file that is missing or unusable. */
  static async open(folder: string): Promise<Tokenizer> {
    const path = resolve(folder);
    for (const file of ['tokenizer.json', 'tokenizer_config.json']) {
      const full = join(path, file);
      if (!existsSync(full)) throw new UserError(`${full} is missing: a checkpoint needs its tokenizer's files`);
      try {
        JSON.parse(readFileSync(full, 'utf8'));
      } catch (cause) {
        throw new UserError(`${full} is not valid JSON: ${(cause as Error).message}`, { cause });
      }
    }
    // Loaded here, because loading it takes as long as everything else that a command starts with.
    const { AutoTokenizer, env } = await import('@huggingface/transformers');
    env.allowRemoteModels = false;
    env.localModelPath = dirname(path);
    let tokenizer: PreTrainedTokenizer;
    try {
      tokenizer = await AutoTokenizer.from_pretrained(basename(path), { local_files_only: true });
    } catch (cause) {
      throw new UserError(`${path}: the tokenizer cannot be loaded: ${(cause as Error).message}`, { cause });
    }
    const largest = Math.max(...tokenizer.get_vocab().values());
    const eos = idOf(tokenizer, tokenizer.eos_token);
    if (eos === null) throw new UserError(`${join(path, 'tokenizer_config.json')} names no eos_token`);
    const template = join(path, 'chat_template.jinja');
    if (existsSync(template)) tokenizer.chat_template = readFileSync(template, 'utf8');
    const ends = [...new Set([eos, ...readEndTokens(path)])] as [number, ...number[]];
    return new Tokenizer(tokenizer, largest + 1, idOf(tokenizer, tokenizer.bos_token), ends);
  }

  /** Token ids of a text, no special tokens added. */
  encode(text: string): number[] {
    return this.#tokenizer.encode(text, { add_special_tokens: false });
  }

  /** A prompt's token ids: the begin-of-sequence token, where there is one, and the text's. */
  prompt(text: string): number[] {
    return [...(this.bos === null ? [] : [this.bos]), ...(text ? this.encode(text) : [])];
  }

  /** Whether the model has a chat template. */
  get hasChat(): boolean {
    const template = this.#tokenizer.chat_template as unknown;
    return template !== null && template !== undefined;
  }

  /**
   * What a model is asked, as token ids: a user's turn and the beginning of the answer where the model has a chat template and `chat`
   * lets it be used, else the prompt. @throws UserError when the template cannot be filled in.
   */
  question(text: string, chat: ChatSetting): number[] {
    if (chat === 'never' || !this.hasChat) return this.prompt(text);
    const turns = [{ role: 'user', content: text }];
    let filled: string;
    try {
      filled = this.#tokenizer.apply_chat_template<false>(turns, {
        tokenize: false,
        add_generation_prompt: true,
        ...TEMPLATE_VALUES,
      });
    } catch (cause) {
      throw new UserError(
        `the model's chat template cannot be filled in: ${(cause as Error).message}; set chat: never to do without`,
        { cause },
      );
    }
    return this.encode(filled);
  }

  /** The id of a text that is one token, such as a stop. @throws UserError when it is not. */
  singleToken(text: string): number {
    const ids = this.encode(text);
    if (ids.length !== 1)
      throw new UserError(`${JSON.stringify(text)} is ${ids.length} tokens of this model: a stop must be one`);
    return ids[0]!;
  }

  /** The text of token ids, special tokens left out. */
  decode(ids: readonly number[]): string {
    return ids.length
      ? this.#tokenizer.decode([...ids], { skip_special_tokens: true, clean_up_tokenization_spaces: false })
      : '';
  }
}

function idOf(tokenizer: PreTrainedTokenizer, token: string | null | undefined): number | null {
  if (!token) return null;
  return tokenizer.get_vocab().get(token) ?? null;
}
