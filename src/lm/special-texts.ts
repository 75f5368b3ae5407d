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
  /** Stands before what is text in a filled template. */
  readonly #mark: string;
  /** What reads like a control token, marked as text or not. */
  readonly #like: RegExp | null;

  /** @param tokens the control tokens; one of a single character is a character like any other, which a text has no other way to write. */
  constructor(tokens: readonly AddedToken[]) {
    // Letters alone: no normalizer changes them. Drawn anew, so that nobody can write them; no token id depends on them.
    const nonce = letters(randomBytes(24));
    this.#mark = `${nonce}text`;
    const hidden = tokens.filter(({ content }) => [...content].length > 1);
    this.#aliases = new Map(hidden.map(({ id, content }) => [content, `${nonce}${letters(idBytes(id))}`]));
    const longestFirst = [...this.#aliases.keys()].toSorted((a, b) => b.length - a.length);
    const texts = longestFirst.map((text) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)).join('|');
    this.#like = longestFirst.length === 0 ? null : new RegExp(`${this.#mark}(${texts})?|${texts}`, 'g');
  }

  /** A tokenizer that knows the control tokens by their aliases alone. */
  hide(json: TokenizerJson): TokenizerJson {
    const added_tokens = json.added_tokens.map((token) => {
      const alias = this.#aliases.get(token.content);
      return alias === undefined ? token : { ...token, content: alias, normalized: false };
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
    return this.#replace(text, (special) => `${this.#mark}${special}`);
  }

  /** A text whose control tokens are meant as such, but for those that `markText` has marked: these by their aliases. */
  aliasTokens(text: string): string {
    return this.#replace(text, (special, marked) =>
      special.startsWith(this.#mark) ? (marked ?? '') : this.#aliases.get(special)!,
    );
  }

  /** A text in which tokens have their own names again. */
  reveal(text: string): string {
    let revealed = text;
    for (const [special, alias] of this.#aliases) revealed = revealed.replaceAll(alias, () => special);
    return revealed;
  }

  #replace(text: string, by: (special: string, marked: string | undefined) => string): string {
    return this.#like === null ? text : text.replaceAll(this.#like, by);
  }
}

/** Bytes as lower-case letters, two a byte: of one length for one number of bytes. */
function letters(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => String.fromCharCode(97 + (byte >> 4), 97 + (byte & 15))).join('');
}

function idBytes(id: number): Uint8Array {
  return Uint8Array.of(id >> 16, (id >> 8) & 255, id & 255);
}
