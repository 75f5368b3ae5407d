/** What ends a completion as it is sampled: tokens, and texts that span tokens or end inside one, as one automaton over token ids. */
import { UserError } from '../errors.js';
import { TEXT_START } from '../text-end.js';
import type { TextEnd } from '../text-end.js';

/** The state of a completion that has ended, and that of one that has not begun. */
export const ENDED = 0;
export const BEGUN = 1;

/** Tokens that do the same in every state are a class; `next[classOf[token] + state]` is the state after a token. */
export interface TokenEnds {
  /** Of each token, the place of its class in `next`: a class has one entry a state. */
  readonly classOf: Int32Array;
  readonly next: Int32Array;
  readonly states: number;
}

/** More than any stops that are meant; each has a row of every class of tokens. */
const MOST_STATES = 4096;

/**
 * The automaton of several ends at once over a vocabulary: a state is what each of them has seen. It is explored from the beginning of a
 * text, so that only states that tokens lead to are there.
 * @param bytesOf what each token adds to a text; null for one that is none
 * @throws UserError for ends of too many states
 */
export function tokenEnds(bytesOf: readonly (Uint8Array | null)[], ends: readonly TextEnd[]): TokenEnds {
  const distinct = new Map<string, Uint8Array>([['', new Uint8Array()]]);
  const keys = bytesOf.map((bytes) => (bytes === null ? '' : Buffer.from(bytes).toString('latin1')));
  keys.forEach((key, id) => {
    if (!distinct.has(key)) distinct.set(key, bytesOf[id]!);
  });
  const texts = [...distinct.values()];
  const seen = new Map<string, number>([[ends.map(() => TEXT_START).join(), BEGUN]]);
  const states = [ends.map(() => TEXT_START)];
  const rows: Int32Array[] = [];
  for (let at = 0; at < states.length; at++) {
    const from = states[at]!;
    rows.push(
      Int32Array.from(texts, (bytes) => {
        const to = after(from, bytes, ends);
        if (to === null) return ENDED;
        const key = to.join();
        let state = seen.get(key);
        if (state === undefined) {
          if (states.length === MOST_STATES) throw new UserError('the stops are too many or too long; give fewer');
          seen.set(key, (state = BEGUN + states.push(to) - 1));
        }
        return state;
      }),
    );
  }
  return classed(keys, [...distinct.keys()], rows);
}

function after(from: readonly number[], bytes: Uint8Array, ends: readonly TextEnd[]): number[] | null {
  const to = [...from];
  for (const byte of bytes) {
    for (let i = 0; i < ends.length; i++) {
      const state = ends[i]!.next(to[i]!, byte);
      if (state === null) return null;
      to[i] = state;
    }
  }
  return to;
}

/** @param rows of each state from `BEGUN` on, the state after each distinct text */
function classed(keys: readonly string[], texts: readonly string[], rows: readonly Int32Array[]): TokenEnds {
  const states = rows.length + 1;
  const next: number[] = [];
  const places = new Map<string, number>();
  const placeOf = new Map(
    texts.map((text, i) => {
      const column = [ENDED, ...rows.map((row) => row[i]!)];
      const name = column.join();
      let place = places.get(name);
      if (place === undefined) {
        places.set(name, (place = next.length));
        for (const state of column) next.push(state);
      }
      return [text, place] as const;
    }),
  );
  return { classOf: Int32Array.from(keys, (key) => placeOf.get(key)!), next: Int32Array.from(next), states };
}

/** The same for a model of `vocabulary` tokens, where each of `stops` ends a text whatever came before. Tokens beyond the ends' are no text. */
export function withStopTokens(ends: TokenEnds | null, vocabulary: number, stops: readonly number[]): TokenEnds {
  const states = ends?.states ?? BEGUN + 1;
  const { length } = ends?.next ?? [];
  const next = new Int32Array(length + 2 * states);
  next.set(ends?.next ?? []);
  const [nothing, stop] = [length, length + states];
  for (let state = 0; state < states; state++) next[nothing + state] = state;
  const classOf = new Int32Array(vocabulary).fill(nothing);
  classOf.set(ends?.classOf.subarray(0, vocabulary) ?? []);
  for (const id of stops) classOf[id] = stop;
  return { classOf, next, states };
}

/** The state after one more token. */
export function stateAfter({ classOf, next }: TokenEnds, state: number, token: number): number {
  return next[classOf[token]! + state]!;
}
