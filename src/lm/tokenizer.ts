/** A checkpoint's tokenizer, by @huggingface/transformers from local files only, and its chat template. */
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { PreTrainedTokenizer } from '@huggingface/transformers';
import { inOneLine, UserError } from '../errors.js';
import { ChatTemplate } from './chat-template.js';
import { readEndTokens } from './end-tokens.js';
import { quoted, readJsonFile } from './json-file.js';
import { requireOneRuntime } from './one-runtime.js';
import { SpecialTexts } from './special-texts.js';
import { readTokenizerConfig, TOKENIZER_ABSENT } from './tokenizer-config.js';
import type { TokenizerConfig } from './tokenizer-config.js';
import type { TokenBytes } from './token-bytes.js';
import type { TokenDecoder } from './token-decoder.js';
import { parseTokenizer } from './tokenizer-file.js';
import type { AddedToken, TokenizerFile } from './tokenizer-file.js';
import { unigramModel } from './unigram.js';
import { checkVisibleTokens } from './tokenizer-parts.js';

/**
 * Whether a model is asked in a user's turn of its chat template. `auto`: where the text is meant to be said and the model has a template;
 * `always`: whatever the text is; `never`: the text is left as it is.
 */
export const CHAT_SETTINGS = ['auto', 'always', 'never'] as const;
export type ChatSetting = (typeof CHAT_SETTINGS)[number];

/** A text that every tokenizer can be tried on. */
const TRIAL = 'a B\n 1';

/** What transformers.js does its work by: ids and tokens of texts, without the clean-up and the chat templates around it. */
type LibraryTokenizer = PreTrainedTokenizer['_tokenizer'];

interface Parts {
  readonly tokenizer: LibraryTokenizer;
  readonly chat: ChatTemplate | UserError | null;
  readonly special: SpecialTexts;
  readonly control: readonly AddedToken[];
  readonly file: TokenizerFile;
  readonly ends: readonly [number, ...number[]];
}

export class Tokenizer {
  readonly #tokenizer: LibraryTokenizer;
  /** The model's chat template, or what in it cannot be filled in. */
  readonly #chat: ChatTemplate | UserError | null;
  readonly #special: SpecialTexts;
  readonly #isToken: (id: number) => boolean;
  readonly #decoder: TokenDecoder;
  readonly #bytesOf: TokenBytes;
  #tokenBytes: readonly (Uint8Array | null)[] | null = null;
  /** Tokens without a text. */
  readonly #hasNoText: ReadonlySet<number>;
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

  private constructor({ tokenizer, chat, special, control, file, ends }: Parts) {
    this.#tokenizer = tokenizer;
    this.#chat = chat;
    this.#special = special;
    this.#isToken = file.isToken;
    this.#decoder = file.decode;
    this.#bytesOf = file.bytesOf;
    this.#hasNoText = new Set(file.json.added_tokens.filter((token) => token.special).map(({ id }) => id));
    this.#control = new Map(control.map(({ content, id }) => [content, id]));
    this.vocabulary = file.largestId + 1;
    this.prefix = file.prefix;
    this.eos = ends[0];
    this.ends = ends;
    const isEnd = new Set(ends);
    const ending = control.filter((token) => token.special || isEnd.has(token.id));
    this.specialTexts = ending.map(({ content }) => content).filter(({ length }) => length > 1);
  }

  /** @throws UserError naming the file that is missing or unusable. */
  static async open(folder: string): Promise<Tokenizer> {
    const path = resolve(folder);
    const name = join(path, 'tokenizer.json');
    const content = readJsonFile(name, TOKENIZER_ABSENT);
    const config = readTokenizerConfig(path);
    const file = parseTokenizer(content, name, config);
    const ends = endsOf(path, config, file);
    const template = templateOf(path, config);
    const chat = template === null ? null : openTemplate(template, config);
    const isControl = controlRule(ends, template, chat);
    const control = file.json.added_tokens.filter(isControl);
    const special = new SpecialTexts(control);
    // Loaded here, because loading it takes as long as everything else that a command starts with.
    requireOneRuntime();
    const { PreTrainedTokenizer } = await import('@huggingface/transformers');
    let tokenizer: LibraryTokenizer;
    try {
      // Without settings: the library would change texts by them, transformers does not.
      const hiding = special.hide(file.json);
      ({ _tokenizer: tokenizer } = new PreTrainedTokenizer(hiding, {}));
      const { vocab, unk_id: unknown } = hiding.model;
      if (Array.isArray(vocab)) {
        const scored = vocab as readonly (readonly [string, number])[];
        const segment = unigramModel(scored, typeof unknown === 'number' ? scored[unknown]![0] : null);
        tokenizer.model.encode = (pieces: string[]) => pieces.flatMap(segment);
      }
      // Parts that are malformed often fail only when they are used.
      tokenizer.encode(TRIAL, { add_special_tokens: false });
    } catch (cause) {
      const why = inOneLine((cause as Error).message);
      throw new UserError(`${path}: the tokenizer cannot be loaded: ${why}`, { cause });
    }
    const { normalizer } = tokenizer;
    const hidden = new Set(control);
    const visible = file.json.added_tokens.filter((token) => !hidden.has(token));
    const normalize = normalizer && ((text: string) => normalizer.normalize(text));
    checkVisibleTokens(visible, normalize, file.json.pre_tokenizer, (what) => {
      throw new UserError(`${name}: ${what}`);
    });
    return new Tokenizer({ tokenizer, chat, special, control, file, ends });
  }

  /**
   * Token ids of a text, no special tokens added. What reads like one is text too: a generator could else write the end of the turn that
   * its task is asked in.
   */
  encode(text: string): number[] {
    if (!text) return [];
    const { ids }: { ids: number[] } = this.#tokenizer.encode(text, { add_special_tokens: false });
    // A model of words without an unknown one has no id for others.
    const nothing = (ids as (number | undefined)[]).indexOf(undefined);
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
    return this.#chat !== null;
  }

  /**
   * What a model is asked, as token ids: a user's turn and the beginning of the answer where the model has a chat template and `chat`
   * lets it be used, else the prompt. @throws UserError when there must be a template and is none, or it cannot be filled in.
   */
  question(text: string, chat: ChatSetting): number[] {
    if (chat === 'never' || (chat === 'auto' && this.#chat === null)) return this.prompt(text);
    if (this.#chat === null) throw new UserError('the model has no chat template to be asked by; set chat: never');
    if (this.#chat instanceof UserError) throw this.#chat;
    const filled = this.#chat.render([{ role: 'user', content: this.#special.markText(text) }]);
    return this.encode(this.#special.aliasTokens(filled));
  }

  /** The id of a token that is no text but a sign, by its name; undefined for any text. */
  controlToken(text: string): number | undefined {
    return this.#control.get(text);
  }

  /** What each token adds to a text, by its id; null for one that adds nothing. */
  tokenBytes(): readonly (Uint8Array | null)[] {
    const control = new Set(this.#control.values());
    return (this.#tokenBytes ??= Array.from({ length: this.vocabulary }, (_, id) =>
      control.has(id) || !this.#isToken(id) ? null : this.#bytesOf(this.#tokenizer.id_to_token(id)),
    ));
  }

  /** The text of token ids; special tokens have none, and neither have ids of which the tokenizer knows nothing. */
  decode(ids: readonly number[]): string {
    return this.show(ids.filter((id) => !this.#hasNoText.has(id)));
  }

  /** Token ids as a model gets them, for people: special tokens by their names. */
  show(ids: readonly number[]): string {
    const tokens = ids.filter(this.#isToken).map((id) => this.#tokenizer.id_to_token(id)!);
    return this.#special.reveal(this.#decoder(tokens).join(''));
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

/** The template that a model is asked by; null where it has none. */
function templateOf(folder: string, { settings }: TokenizerConfig): string | null {
  const file = join(folder, 'chat_template.jinja');
  if (existsSync(file)) return readFileSync(file, 'utf8');
  const { chat_template: template } = settings;
  if (typeof template === 'string') return template;
  return template?.find(({ name }) => name === 'default')?.template ?? null;
}

function openTemplate(template: string, { named, settings }: TokenizerConfig): ChatTemplate | UserError {
  if (settings['split_special_tokens'] === true)
    return new UserError(
      'split_special_tokens of tokenizer_config.json, with a chat template: its tokens would be texts; set chat: never',
    );
  try {
    return new ChatTemplate(template, named);
  } catch (error) {
    if (error instanceof UserError) return error;
    throw error;
  }
}

/** Turns in which a template writes all that it has to write. */
const ROLES = [['user'], ['system', 'user', 'assistant', 'user']];

/**
 * Which added tokens are control tokens: those that the tokenizer calls special, those that end a text or a turn, and those that the chat
 * template writes, be they special or not, or a text could forge a turn.
 */
function controlRule(
  ends: readonly number[],
  template: string | null,
  chat: ChatTemplate | UserError | null,
): (token: AddedToken) => boolean {
  const isEnd = new Set(ends);
  const written = [template ?? ''];
  const filled = chat instanceof ChatTemplate ? chat : null;
  for (const roles of ROLES) {
    try {
      if (filled) written.push(filled.render(roles.map((role) => ({ role, content: '' }))));
    } catch (error) {
      // Many templates take no such turns.
      if (!(error instanceof UserError)) throw error;
    }
  }
  const isMarker = ({ content }: AddedToken): boolean =>
    MARKER.test(content) && written.some((text) => text.includes(content));
  return (token) => token.special || isEnd.has(token.id) || isMarker(token);
}

/** A token in brackets of some kind: white space and words that a tokenizer adds are text. */
const MARKER = /^[\p{P}\p{S}].*[\p{P}\p{S}]$/su;
