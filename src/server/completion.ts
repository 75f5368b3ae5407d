/** The completion in what a trainer sends: without its prompt, and without the special tokens that end it. */

/** As the vocabularies of the families write them. */
const SPECIAL = /(?:<\|[^|<>\s]{1,40}\|>|<\/s>|<eos>|<pad>|<end_of_turn>|\[PAD\])$/;
const LONGEST_SPECIAL = 48;
/** Special tokens that may precede a prompt. */
const MOST_LEADING = 4;

/** Without special tokens at its end: a closing fence with one behind it would close nothing. */
export function withoutEndTokens(text: string): string {
  for (let end = text.length; ;) {
    const tail = text.slice(Math.max(0, end - LONGEST_SPECIAL), end);
    const special = SPECIAL.exec(tail.trimEnd());
    if (special === null) return text.slice(0, end);
    end -= tail.length - special.index;
  }
}

/**
 * What follows a prompt in the whole text of a sample. White space is not compared, as decoders add and drop it, and special tokens
 * may precede the prompt. Null when the text does not begin with the prompt.
 */
export function afterPrompt(text: string, prompt: string): string | null {
  if (text.startsWith(prompt)) return text.slice(prompt.length);
  for (let [start, skipped] = [0, 0]; start !== -1 && skipped <= MOST_LEADING; skipped++) {
    const end = matchEnd(text, start, prompt);
    if (end !== null) return text.slice(end);
    const leading = /^\s*(?:<\|[^|<>\s]{1,40}\|>|<s>|<bos>)/.exec(text.slice(start, start + LONGEST_SPECIAL));
    start = leading === null ? -1 : start + leading[0].length;
  }
  return null;
}

/** Where a prompt that begins at `start` ends; null when it does not. */
function matchEnd(text: string, start: number, prompt: string): number | null {
  let at = start;
  for (const character of prompt) {
    if (/\s/.test(character)) continue;
    while (at < text.length && /\s/.test(text[at]!)) at++;
    if (!text.startsWith(character, at)) return null;
    at += character.length;
  }
  return at;
}
