/**
 * Control tokens and texts that read like them. A tokenizer is told a control token by an alias that no text holds: what reads like one is then
 * cut, spaced and merged as any other text, and a control token is asked for by its alias.
 */
import { randomBytes } from 'node:crypto';
import { mergeParts } from './tokenizer-vocabulary.js';
import type { VocabularyModel } from './tokenizer-vocabulary.js';
import type { AddedToken, TokenizerJson } from './tokenizer-file.js';

export class SpecialTexts {
  /** Text → alias. */
  readonly #aliases: ReadonlyMap<string, string>;
  /**
   * What every alias begins with. Letters alone: no normalizer changes them. Drawn anew, so that nobody can write them; no token id depends
   * on them.
   */
  readonly #nonce = letters(randomBytes(24));
  /** Stands before what is text in a filled template. */
  readonly #mark = `${this.#nonce}text`;
  /** Control tokens to which white space beside them belongs. */
  readonly #greedy: readonly AddedToken[];
  /** What control tokens begin with, and how long they are, the longest first. */
  readonly #firsts: ReadonlySet<string>;
  readonly #lengths: readonly number[];

  /** @param tokens the control tokens; one of a single character is a character like any other, which a text has no other way to write. */
  constructor(tokens: readonly AddedToken[]) {
    const hidden = tokens.filter(({ content }) => content.length > 2 || [...content].length > 1);
    this.#aliases = new Map(hidden.map(({ id, content }) => [content, `${this.#nonce}${letters(idBytes(id))}`]));
    this.#greedy = hidden.filter(({ lstrip, rstrip }) => lstrip === true || rstrip === true);
    this.#firsts = new Set(hidden.map(({ content }) => content[0]!));
    this.#lengths = [...new Set(hidden.map(({ content }) => content.length))].toSorted((x, y) => y - x);
  }

  /** A tokenizer that knows the control tokens by their aliases alone. */
  hide(json: TokenizerJson): TokenizerJson {
    const added_tokens = json.added_tokens.map((token) => {
      const alias = this.#aliases.get(token.content);
      return alias === undefined
        ? token
        : { ...token, content: alias, normalized: false, lstrip: false, rstrip: false };
    });
    return { ...json, added_tokens, model: this.#hideInModel(json.model) };
  }

  #hideInModel(model: VocabularyModel): VocabularyModel {
    const aliases = this.#aliases;
    const named = (text: string): string => aliases.get(text) ?? text;
    const { vocab, merges, unk_token } = model;
    if (Array.isArray(vocab)) {
      return { ...model, vocab: (vocab as [string, number][]).map(([text, score]) => [named(text), score]) };
    }
    const known = vocab as Readonly<Record<string, number>>;
    const hidden = [...aliases].filter(([text]) => Object.hasOwn(known, text));
    if (hidden.length === 0) return model;
    const renamed = { ...known };
    for (const [text, alias] of hidden) {
      renamed[alias] = known[text]!;
      delete renamed[text];
    }
    return {
      ...model,
      vocab: renamed,
      ...(typeof unk_token === 'string' ? { unk_token: named(unk_token) } : {}),
      ...(merges ? { merges: merges.filter((merge) => !aliases.has(mergeParts(merge).join(''))) } : {}),
    };
  }

  /** A text to fill a template with: what reads like a control token is marked as text. */
  markText(text: string): string {
    return this.#replaceTokens(text, (special) => `${this.#mark}${special}`);
  }

  /** A text whose control tokens are meant as such, but for those that `markText` has marked: these by their aliases. */
  aliasTokens(text: string): string {
    const [start = '', ...marked] = text.split(this.#mark);
    const alias = (part: string): string => this.#replaceTokens(part, (special) => this.#aliases.get(special)!);
    const aliased =
      alias(start) +
      marked
        .map((part) => {
          const length = this.#tokenAt(part, 0);
          return part.slice(0, length) + alias(part.slice(length));
        })
        .join('');
    return this.#greedy.reduce((all, token) => withoutSpace(all, this.#aliases.get(token.content)!, token), aliased);
  }

  /** A text in which tokens have their own names again. */
  reveal(text: string): string {
    if (!text.includes(this.#nonce)) return text;
    const texts = new Map([...this.#aliases].map(([special, alias]) => [alias, special]));
    const anyAlias = new RegExp(`${this.#nonce}[a-p]{${letters(idBytes(0)).length}}`, 'g');
    return text.replaceAll(anyAlias, (alias) => texts.get(alias) ?? alias);
  }

  #replaceTokens(text: string, by: (special: string) => string): string {
    const pieces: string[] = [];
    let start = 0;
    for (let at = 0; at < text.length;) {
      const length = this.#tokenAt(text, at);
      if (length > 0) {
        pieces.push(text.slice(start, at), by(text.slice(at, at + length)));
        start = at + length;
      }
      at += length || 1;
    }
    return start === 0 ? text : pieces.join('') + text.slice(start);
  }

  /** The length of the longest control token that is written at a place; 0 where there is none. */
  #tokenAt(text: string, at: number): number {
    if (!this.#firsts.has(text[at]!)) return 0;
    return this.#lengths.find((length) => this.#aliases.has(text.slice(at, at + length))) ?? 0;
  }
}

/** Unicode's white space, which JavaScript's is not. */
const SPACE = /[\t-\r\u0085\p{Z}]/u;

/** A text without the white space on the sides of an alias that its token takes. */
function withoutSpace(text: string, alias: string, { lstrip, rstrip }: AddedToken): string {
  const trimmed = text.split(alias).map((piece, i, all) => {
    let [start, end] = [0, piece.length];
    if (rstrip === true && i > 0) while (start < end && SPACE.test(piece[start]!)) start++;
    if (lstrip === true && i < all.length - 1) while (end > start && SPACE.test(piece[end - 1]!)) end--;
    return piece.slice(start, end);
  });
  return trimmed.join(alias);
}

/** Bytes as lower-case letters, two a byte: of one length for one number of bytes. */
function letters(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => String.fromCharCode(97 + (byte >> 4), 97 + (byte & 15))).join('');
}

function idBytes(id: number): Uint8Array {
  return Uint8Array.of(id >> 16, (id >> 8) & 255, id & 255);
}
