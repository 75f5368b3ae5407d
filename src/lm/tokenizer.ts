/** A checkpoint's tokenizer, by @huggingface/transformers, from local files only. */
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { PreTrainedTokenizer } from '@huggingface/transformers';
import { z } from 'zod';
import { UserError } from '../errors.js';
import { readEndTokens } from './end-tokens.js';
import { requireOneRuntime } from './one-runtime.js';

/** How a model is asked: `auto` puts the text into a user's turn where the model has a chat template, `never` leaves it as it is. */
export const CHAT_SETTINGS = ['auto', 'never'] as const;
export type ChatSetting = (typeof CHAT_SETTINGS)[number];

/** A code point that no text may hold: it marks where a special token's text is cut. */
const CUT = '\uFDD0';

/** Llama 3's templates write today's date unless given one, and the same prompt must have the same tokens tomorrow. */
const TEMPLATE_VALUES = { date_string: '26 Jul 2024' };

const addedTokens = z
  .array(z.looseObject({ id: z.int().optional(), content: z.string(), special: z.boolean().optional() }))
  .default([]);

export class Tokenizer {
  readonly #tokenizer: PreTrainedTokenizer;
  /** The texts of special tokens; null where there are none. */
  readonly #special: RegExp | null;
  /** One more than the largest token id. */
  readonly vocabulary: number;
  /** Begin-of-sequence token; null where the family has none. */
  readonly bos: number | null;
  readonly eos: number;
  /** Every token that ends a text or a turn; `eos` is the first. */
  readonly ends: readonly number[];
  /** Texts of the special tokens, and of others that end a text or a turn, of more than one character. */
  readonly specialTexts: readonly string[];

  private constructor(
    tokenizer: PreTrainedTokenizer,
    added: z.output<typeof addedTokens>,
    vocabulary: number,
    bos: number | null,
    ends: readonly [number, ...number[]],
  ) {
    this.#tokenizer = tokenizer;
    this.#special = anyOf(textsOf(added.filter(({ special }) => special)));
    this.vocabulary = vocabulary;
    this.bos = bos;
    this.eos = ends[0];
    this.ends = ends;
    this.specialTexts = textsOf(added.filter(({ special, id }) => special || ends.includes(id ?? -1)));
  }

  /** @throws UserError naming the file that is missing or unusable. */
  static async open(folder: string): Promise<Tokenizer> {
    const path = resolve(folder);
    const files = z.looseObject({ added_tokens: addedTokens }).safeParse(readJson(join(path, 'tokenizer.json')));
    const settings = z
      .looseObject({ add_bos_token: z.unknown() })
      .safeParse(readJson(join(path, 'tokenizer_config.json')));
    // Loaded here, because loading it takes as long as everything else that a command starts with.
    requireOneRuntime();
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
    const hasBos = settings.data?.add_bos_token !== false;
    const bos = hasBos ? idOf(tokenizer, tokenizer.bos_token) : null;
    return new Tokenizer(tokenizer, files.data?.added_tokens ?? [], largest + 1, bos, ends);
  }

  /**
   * Token ids of a text, no special tokens added. What reads like one is text too: a generator could else write the end of the turn that
   * its task is asked in.
   */
  encode(text: string): number[] {
    return this.#encodeCut(this.#cut(text));
  }

  /** A text with a cut behind the first character of whatever reads like a special token. */
  #cut(text: string): string {
    if (this.#special === null) return text;
    return text.replaceAll(this.#special, (special) => `${special[0]}${CUT}${special.slice(1)}`);
  }

  /** The pieces of a cut text, one by one, special tokens as such. */
  #encodeCut(text: string): number[] {
    const pieces = text.includes(CUT) ? text.split(CUT) : [text];
    return pieces.flatMap((piece) => this.#tokenizer.encode(piece, { add_special_tokens: false }));
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
    const turns = [{ role: 'user', content: this.#cut(text) }];
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
    return this.#encodeCut(filled);
  }

  /** The id of a text that is one token, such as a stop. @throws UserError when it is not. */
  singleToken(text: string): number {
    const ids = this.#encodeCut(text);
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

/** @throws UserError naming the file that is missing or no JSON. */
function readJson(file: string): unknown {
  if (!existsSync(file)) throw new UserError(`${file} is missing: a checkpoint needs its tokenizer's files`);
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    throw new UserError(`${file} is not valid JSON: ${(cause as Error).message}`, { cause });
  }
}

function textsOf(tokens: z.output<typeof addedTokens>): string[] {
  return tokens.map(({ content }) => content).filter(({ length }) => length > 1);
}

/** What matches any of the texts; null where there are none. */
function anyOf(texts: readonly string[]): RegExp | null {
  const escaped = texts.map((text) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  return texts.length === 0 ? null : new RegExp(escaped.join('|'), 'g');
}

function idOf(tokenizer: PreTrainedTokenizer, token: string | null | undefined): number | null {
  if (!token) return null;
  return tokenizer.get_vocab().get(token) ?? null;
}
