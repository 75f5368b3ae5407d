/** Where the texts of the doctest notation end: a task after the line of its call, an answer after its line or its function. */
import { TEXT_START } from '../../text-end.js';
import type { TextEnd } from '../../text-end.js';

const NEWLINE = 0x0a;
const CALL = new TextEncoder().encode('>>> ');
const CLOSING = 0x29;
const [IN_LINE, IN_CALL, CLOSED] = [CALL.length, CALL.length + 1, CALL.length + 2];

/**
 * A task ends with the line break after `>>> f(…)`. States: how much of the prompt a line begins with, within another line, within the call,
 * after a closing bracket of it. A call that is not closed ends nothing: there is no task to be had from it.
 */
export const taskEnd: TextEnd = {
  next(state, byte) {
    if (byte === NEWLINE) return state === CLOSED ? null : TEXT_START;
    if (state >= IN_CALL) return byte === CLOSING ? CLOSED : IN_CALL;
    if (state === IN_LINE) return state;
    if (byte !== CALL[state]) return IN_LINE;
    return state + 1 === CALL.length ? IN_CALL : state + 1;
  },
};

const DEFINITION = new TextEncoder().encode('def ');
/** At the level of its body, where a function returns once and for all. */
const RETURN = new TextEncoder().encode('    return');
const VALUE = DEFINITION.length;
const HEAD = VALUE + 1;
/** And so many more: how much of `RETURN` a line of a body begins with. */
const BODY = HEAD + 1;
const RETURNED = BODY + RETURN.length;
const [IN_BODY, IN_RETURN] = [RETURNED + 1, RETURNED + 2];

/** An answer is a value, and ends with its line; one that begins with `def ` is a function, and ends with the line by which its body returns. */
export const answerEnd: TextEnd = {
  next(state, byte) {
    if (state >= HEAD) return functionEnd(state, byte);
    if (byte === NEWLINE) return null;
    if (state === VALUE || byte !== DEFINITION[state]) return VALUE;
    return state + 1 === DEFINITION.length ? HEAD : state + 1;
  },
};

function functionEnd(state: number, byte: number): number | null {
  if (byte === NEWLINE) return state === RETURNED || state === IN_RETURN ? null : BODY;
  // `returned = 1` returns nothing.
  if (state === RETURNED) return isNamePart(byte) ? IN_BODY : IN_RETURN;
  if (state === HEAD || state > RETURNED) return state;
  return byte === RETURN[state - BODY] ? state + 1 : IN_BODY;
}

const isNamePart = (byte: number): boolean => /\w/.test(String.fromCharCode(byte)) || byte > 0x7f;
