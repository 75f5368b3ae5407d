/** What a model wrote, in a raw decode of it: without its prompt, and without the special tokens at its ends. */
import { largest } from '../metrics/extremes.js';

/** As the vocabularies of the families write them: `<|im_end|>`, DeepSeek's `<｜end▁of▁sentence｜>`, `</s>`, `[EOS]`. */
const USUAL =
  String.raw`<\|[^|<>\s]{1,40}\|>|<｜[^｜<>\s]{1,40}｜>|</?s>|<(?:bos|eos|pad|unk|start_of_turn|end_of_turn|end_of_utterance|EOS|EOT|PAD)>` +
  String.raw`|\[(?:BOS|EOS|PAD|UNK)\]`;
const LONGEST_USUAL = 48;

/** Special tokens by their texts: the usual ones of all families, and those of a tokenizer of one's own. */
export class SpecialTokens {
  readonly #atEnd: RegExp;
  readonly #next: RegExp;
  readonly #longest: number;

  constructor(others: readonly string[] = []) {
    const texts = others.map((text) => text.trim()).filter((text) => text !== '');
    const escaped = texts.map((text) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
    const any = [...escaped, USUAL].join('|');
    this.#atEnd = new RegExp(`(?:${any})$`);
    this.#next = new RegExp(`\\s*(?:${any})`, 'y');
    this.#longest = Math.max(LONGEST_USUAL, largest(texts.map((text) => 2 * text.length)));
  }

  /** A completion without special tokens at its end: a closing fence with one behind it would close nothing. */
  withoutEnd(text: string): string {
    for (let end = text.length; ;) {
      const tail = text.slice(Math.max(0, end - this.#longest), end);
      const special = this.#atEnd.exec(tail.trimEnd());
      if (special === null) return text.slice(0, end);
      end -= tail.length - special.index;
    }
  }

  /** An answer between the special tokens of its beginning and its end. */
  withoutEnds(text: string): string {
    const start = this.#leading(text).at(-1)!;
    return this.withoutEnd(text.slice(start));
  }

  /**
   * What follows a prompt in the whole text of a sample. White space is not compared, as decoders add and drop it, and any number of special
   * tokens, as padding has them, may precede the prompt. Null when the text does not begin with the prompt.
   */
  afterPrompt(text: string, prompt: string): string | null {
    if (prompt !== '' && text.startsWith(prompt)) return text.slice(prompt.length);
    // Where a prompt itself begins with special tokens, they are the last of the text's.
    const ends = this.#leading(text);
    const start = ends.at(-this.#leading(prompt).length);
    const end = start === undefined ? null : matchEnd(text, start, prompt);
    return end === null ? null : text.slice(end);
  }

  /** Whether a text holds one of the usual ones of all families. */
  static isIn(text: string): boolean {
    return new RegExp(USUAL).test(text);
  }

  /** Where the text begins, and where each of the special tokens that it begins with ends. */
  #leading(text: string): number[] {
    const ends = [0];
    this.#next.lastIndex = 0;
    while (this.#next.test(text)) ends.push(this.#next.lastIndex);
    return ends;
  }
}

/** Where a prompt that begins at `start` ends; null when it does not. */
function matchEnd(text: string, start: number, prompt: string): number | null {
  const content = prompt.trimEnd();
  let at = start;
  for (let i = 0; i < content.length; i++) {
    const unit = content.charCodeAt(i);
    if (isSpace(unit)) continue;
    while (at < text.length && isSpace(text.charCodeAt(at))) at++;
    if (text.charCodeAt(at) !== unit) return null;
    at++;
  }
  return afterSpace(text, at, prompt.slice(content.length));
}

/** Behind the white space that ends a prompt, as much of it as is there: what comes then is the completion's own. */
function afterSpace(text: string, from: number, space: string): number {
  let end = from;
  for (const character of space) {
    let at = end;
    while (at < text.length && text[at] !== character && isSpace(text.charCodeAt(at))) at++;
    if (text[at] !== character) break;
    end = at + 1;
  }
  return end;
}

const [TAB, RETURN, SPACE, NO_BREAK_SPACE] = [0x09, 0x0d, 0x20, 0xa0];

/** Whether a UTF-16 code unit is white space; most are told without a look at Unicode's. */
function isSpace(unit: number): boolean {
  if (unit < NO_BREAK_SPACE) return unit === SPACE || (unit >= TAB && unit <= RETURN);
  return /\s/.test(String.fromCharCode(unit));
}

/** Those of all families. */
export const USUAL_SPECIAL_TOKENS = new SpecialTokens();
