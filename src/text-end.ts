/** Where a text ends by what it says: stops, and whatever else a notation reads as its end, told byte by byte. */

/** A state that tells nothing yet: where every text begins. */
export const TEXT_START = 0;

/**
 * A deterministic automaton over the UTF-8 bytes of a text. Its states are few whole numbers; every text begins in `TEXT_START`. Bytes
 * rather than characters, since a token may be a part of a character.
 */
export interface TextEnd {
  /** The state after one more byte; null where the text ends with it. */
  readonly next: (state: number, byte: number) => number | null;
}

const encoder = new TextEncoder();

/**
 * The end of a text at the first place where it says `stop`, that included. Knuth, Morris and Pratt 1977: the state is how much of the stop
 * has been said. @throws RangeError for an empty stop
 */
export function endsAtText(stop: string): TextEnd {
  const bytes = encoder.encode(stop);
  if (bytes.length === 0) throw new RangeError('an empty stop ends nothing');
  const border = bordersOf(bytes);
  return {
    next(state, byte) {
      let said = state;
      while (said > 0 && bytes[said] !== byte) said = border[said - 1]!;
      if (bytes[said] === byte) said++;
      return said === bytes.length ? null : said;
    },
  };
}

/** Of each beginning, how much of it is also its end. */
function bordersOf(bytes: Uint8Array): number[] {
  const borders = [0];
  for (let i = 1; i < bytes.length; i++) {
    let length = borders[i - 1]!;
    while (length > 0 && bytes[length] !== bytes[i]) length = borders[length - 1]!;
    borders.push(bytes[length] === bytes[i] ? length + 1 : 0);
  }
  return borders;
}

/** A text up to its first end by any of `ends`, what ends it included; the whole text where none does. */
export function untilEnd(text: string, ends: readonly TextEnd[]): string {
  if (ends.length === 0) return text;
  const bytes = encoder.encode(text);
  const states = ends.map(() => TEXT_START);
  for (let at = 0; at < bytes.length; at++) {
    for (const [i, end] of ends.entries()) {
      const state = end.next(states[i]!, bytes[at]!);
      if (state === null) return new TextDecoder().decode(bytes.subarray(0, at + 1));
      states[i] = state;
    }
  }
  return text;
}
