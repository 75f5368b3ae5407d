/** A checkpoint's tokenizer, by @huggingface/transformers, from local files only. */
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { PreTrainedTokenizer } from '@huggingface/transformers';
import { inOneLine, UserError } from '../errors.js';
import { readEndTokens } from './end-tokens.js';
import { quoted, readJsonFile } from './json-file.js';
import { SpecialTexts } from './special-texts.js';
import { tokenBytes } from './token-bytes.js';
import type { TokenDecoder } from './token-bytes.js';
import { NAMED_TOKENS, readTokenizerConfig, TOKENIZER_ABSENT } from './tokenizer-config.js';
import type { TokenizerConfig } from './tokenizer-config.js';
import { parseTokenizer } from './tokenizer-file.js';
import type { AddedToken, TokenizerFile } from './tokenizer-file.js';
import { requireOneRuntime } from './one-runtime.js';

/**
 * Whether a model is asked in a user's turn of its chat template. `auto`: where the text is meant to be said and the model has a template;
 * `always`: whatever the text is; `never`: the text is left as it is.
 */
export const CHAT_SETTINGS = ['auto', 'always', 'never'] as const;
export type ChatSetting = (typeof CHAT_SETTINGS)[number];

/** Llama 3's templates write today's date unless given one, and the same prompt must have the same tokens tomorrow. */
const TEMPLATE_VALUES = { date_string: '26 Jul 2024' };

/** A text that every tokenizer can be tried on. */
const TRIAL = 'a B\n 1';

interface Parts {
  readonly tokenizer: PreTrainedTokenizer;
  readonly special: SpecialTexts;
  readonly control: readonly AddedToken[];
  readonly file: TokenizerFile;
  readonly ends: readonly [number, ...number[]];
}

export class Tokenizer {
  readonly #tokenizer: PreTrainedTokenizer;
  readonly #special: SpecialTexts;
  readonly #isToken: (id: number) => boolean;
  readonly #decoder: TokenDecoder;
  #tokenBytes: readonly (Uint8Array | null)[] | null = null;
  /** Text → id, of the tokens that are no text. */
  readonly #control: ReadonlyMap<string, number>;
  /** One more than the largest token id. */
  readonly vocabulary: number;
  /** Tokens that stand before a bare text: the begin-of-sequence token of most families, none of others. */
  readonly prefix: readonly number[];
  readonly eos: number;
  /** Every token that ends a text or a turn; `eos` is the first. */
  readonly ends: readonly number[];
  /** Texts of the special tokens, and of others that end a text or a turn, of more than one character. */
  readonly specialTexts: readonly string[];

  private constructor({ tokenizer, special, control, file, ends }: Parts) {
    this.#tokenizer = tokenizer;
    this.#special = special;
    this.#isToken = file.isToken;
    this.#decoder = file.json.decoder as TokenDecoder;
    this.#control = new Map(control.map(({ content, id }) => [content, id]));
    this.vocabulary = file.largestId + 1;
    this.prefix = file.prefix;
    this.eos = ends[0];
    this.ends = ends;
    this.specialTexts = control.map(({ content }) => content).filter(({ length }) => length > 1);
  }

  /** @throws UserError naming the file that is missing or unusable. */
  static async open(folder: string): Promise<Tokenizer> {
    const path = resolve(folder);
    const name = join(path, 'tokenizer.json');
    const content = readJsonFile(name, TOKENIZER_ABSENT);
    const config = readTokenizerConfig(path);
    const file = parseTokenizer(content, name, config);
    const ends = endsOf(path, config, file);
    const isEnd = new Set(ends);
    const control = file.json.added_tokens.filter((token) => token.special || isEnd.has(token.id));
    const special = new SpecialTexts(control);
    const eosText = config.named.eos_token ?? file.textOf(ends[0]);
    const settings = {
      ...config.settings,
      ...Object.fromEntries(NAMED_TOKENS.map((token) => [token, config.named[token] ?? null])),
      eos_token: eosText ?? null,
      // The library would leave these out of texts even where tokenizer.json calls them no special tokens.
      additional_special_tokens: [],
    };
    // Loaded here, because loading it takes as long as everything else that a command starts with.
    requireOneRuntime();
    const { PreTrainedTokenizer } = await import('@huggingface/transformers');
    let tokenizer: PreTrainedTokenizer;
    try {
      tokenizer = new PreTrainedTokenizer(special.hide(file.json), settings);
      // Parts that are malformed often fail only when they are used.
      const ids = tokenizer.encode(TRIAL, { add_special_tokens: false }).filter(file.isToken);
      if (ids.length > 0) tokenizer.decode(ids, { skip_special_tokens: true });
    } catch (cause) {
      const why = inOneLine((cause as Error).message);
      throw new UserError(`${path}: the tokenizer cannot be loaded: ${why}`, { cause });
    }
    const template = join(path, 'chat_template.jinja');
    if (existsSync(template)) tokenizer.chat_template = readFileSync(template, 'utf8');
    return new Tokenizer({ tokenizer, special, control, file, ends });
  }

  /**
   * Token ids of a text, no special tokens added. What reads like one is text too: a generator could else write the end of the turn that
   * its task is asked in.
   */
  encode(text: string): number[] {
    if (!text) return [];
    const ids = this.#tokenizer.encode(text, { add_special_tokens: false });
    // A model of words without an unknown one has no id for others.
    const nothing = ids.findIndex((id) => (id as number | undefined) === undefined);
    if (nothing < 0) return ids;
    throw new UserError(
      `the tokenizer has no token for a part of ${quoted(text)}, and no unk_token: take another tokenizer`,
    );
  }

  /** A prompt's token ids: what the tokenizer puts before a text, and the text's. */
  prompt(text: string): number[] {
    return [...this.prefix, ...this.encode(text)];
  }

  /** Whether the model has a chat template. */
  get hasChat(): boolean {
    const template = this.#tokenizer.chat_template as unknown;
    return template !== null && template !== undefined;
  }

  /**
   * What a model is asked, as token ids: a user's turn and the beginning of the answer where the model has a chat template and `chat`
   * lets it be used, else the prompt. @throws UserError when there must be a template and is none, or it cannot be filled in.
   */
  question(text: string, chat: ChatSetting): number[] {
    if (chat === 'never' || (chat === 'auto' && !this.hasChat)) return this.prompt(text);
    if (!this.hasChat) throw new UserError('the model has no chat template to be asked by; set chat: never');
    const turns = [{ role: 'user', content: this.#special.markText(text) }];
    let filled: string;
    try {
      filled = this.#tokenizer.apply_chat_template<false>(turns, {
        tokenize: false,
        add_generation_prompt: true,
        ...TEMPLATE_VALUES,
      });
    } catch (cause) {
      throw new UserError(
        `the model's chat template cannot be filled in: ${inOneLine((cause as Error).message)}; set chat: never to do without`,
        { cause },
      );
    }
    return this.encode(this.#special.aliasTokens(filled));
  }

  /** The id of a token that is no text but a sign, by its name; undefined for any text. */
  controlToken(text: string): number | undefined {
    return this.#control.get(text);
  }

  /** What each token adds to a text, by its id; null for one that adds nothing. */
  tokenBytes(): readonly (Uint8Array | null)[] {
    if (this.#tokenBytes !== null) return this.#tokenBytes;
    const bytesOf = tokenBytes(this.#decoder);
    const control = new Set(this.#control.values());
    const bytes = Array<Uint8Array | null>(this.vocabulary).fill(null);
    for (const [token, id] of this.#tokenizer.get_vocab()) if (!control.has(id)) bytes[id] = bytesOf(token);
    return (this.#tokenBytes = bytes);
  }

  /** The text of token ids; special tokens have none, and neither have ids of which the tokenizer knows nothing. */
  decode(ids: readonly number[]): string {
    const known = ids.filter(this.#isToken);
    if (known.length === 0) return '';
    const text = this.#tokenizer.decode(known, { skip_special_tokens: true, clean_up_tokenization_spaces: false });
    return this.#special.reveal(text);
  }

  /** Token ids as a model gets them, for people: special tokens by their names. */
  show(ids: readonly number[]): string {
    const known = ids.filter(this.#isToken);
    if (known.length === 0) return '';
    const text = this.#tokenizer.decode(known, { skip_special_tokens: false, clean_up_tokenization_spaces: false });
    return this.#special.reveal(text);
  }
}

/** The tokens that end a text: the one that the tokenizer names, then the configurations' own. @throws UserError where there is none */
function endsOf(folder: string, { named }: TokenizerConfig, file: TokenizerFile): [number, ...number[]] {
  const listed = readEndTokens(folder);
  const name = named.eos_token;
  const eos = name === undefined ? undefined : file.idOf(name);
  if (name !== undefined && eos === undefined)
    throw new UserError(`${folder}: eos_token ${quoted(name)} is not a token of tokenizer.json`);
  const [first, ...others] = new Set([...(eos === undefined ? [] : [eos]), ...listed]);
  if (first === undefined) {
    throw new UserError(
      `${join(folder, 'tokenizer_config.json')} names no eos_token, and special_tokens_map.json, generation_config.json and config.json ` +
        'none either; add eos_token with the token that ends a text',
    );
  }
  return [first, ...others];
}
