/** The micro-world's statement groups: assignments, loops, conditionals, counting, list methods. */
import type { Draft, Production } from './draft.js';
import { CONDITIONS, expression, integer } from './expressions.js';

/**
 * Groups of lines that end up in a body, one or two deep. Loops end by construction: `for` runs over a value that its body
 * leaves alone, `while` over an integer that only falls.
 */
export const STATEMENTS: readonly Production<void>[] = [
  [3, null, assignment],
  [1.6, null, forLoop],
  [0.8, null, whileLoop],
  [1.3, null, conditional],
  [0.7, null, earlyReturn],
  [0.7, null, (draft) => (draft.has('string') || draft.has('list') ? counting(draft) : assignment(draft))],
  [0.8, null, (draft) => (draft.has('list') ? listMethod(draft) : assignment(draft))],
  [0.7, null, (draft) => (draft.has('integer') ? augmented(draft) : assignment(draft))],
];

function assignment(draft: Draft): void {
  const name = draft.choose(['y', 'z']);
  const type = draft.type();
  draft.line(1, `${name} = ${expression(draft, type, draft.choose([1, 1, 2]))}`);
  draft.variables.set(name, type);
}

function forLoop(draft: Draft): void {
  if (draft.has('list')) {
    draft.choose([sumOfMultiples, sumOfSelected, fold, sumOfElements])(draft, draft.variable('list'));
    draft.variables.set('t', 'integer');
  } else if (draft.has('string')) {
    const type = draft.chance(0.5) ? 'string' : 'integer';
    (type === 'string' ? rebuild : countLetters)(draft, draft.variable('string'));
    draft.variables.set('t', type);
  } else {
    sumOverRange(draft, draft.variable('integer'));
    draft.variables.set('t', 'integer');
  }
}

function loopHead(draft: Draft, start: number, over: string): void {
  draft.line(1, `t = ${start}`);
  draft.line(1, `for ${over}:`);
}

function sumOfMultiples(draft: Draft, values: string): void {
  loopHead(draft, draft.integer(0, 2), `v in ${values}`);
  draft.line(2, `t += v * ${draft.integer(2, 3)}`);
}

function sumOfSelected(draft: Draft, values: string): void {
  loopHead(draft, draft.integer(0, 2), `v in ${values}`);
  draft.line(2, `if ${draft.choose([`v > ${draft.integer(2, 6)}`, 'v % 2 == 0', 'v % 2 == 1'])}:`);
  draft.line(3, `t += ${draft.choose(['v', '1', draft.integer(2, 4)])}`);
}

function fold(draft: Draft, values: string): void {
  loopHead(draft, draft.integer(0, 2), `v in ${values}`);
  draft.line(2, `t = ${draft.choose(['t * 2 + v', `(t + v) % ${draft.integer(3, 9)}`, 'v - t', 'max(t, v)'])}`);
}

function sumOfElements(draft: Draft, values: string): void {
  loopHead(draft, draft.integer(0, 2), `v in ${values}`);
  draft.line(2, `t += ${draft.choose(['v', `v % ${draft.integer(2, 4)}`, `max(v, ${draft.integer(2, 5)})`])}`);
}

function rebuild(draft: Draft, text: string): void {
  draft.line(1, "t = ''");
  draft.line(1, `for k in ${text}:`);
  if (draft.chance(0.5)) {
    draft.line(2, `if k ${draft.choose(['!=', '>', '<'])} ${draft.letter()}:`);
    draft.line(3, 't += k');
  } else {
    draft.line(2, `t = ${draft.choose(['k + t', 't + k + k', `t + k + ${draft.letter()}`])}`);
  }
}

function countLetters(draft: Draft, text: string): void {
  loopHead(draft, 0, `k in ${text}`);
  draft.line(2, `if k ${draft.choose(['==', '!=', '>', '<'])} ${draft.letter()}:`);
  draft.line(3, `t += ${draft.integer(1, 3)}`);
}

function sumOverRange(draft: Draft, number: string): void {
  loopHead(draft, draft.integer(0, 3), `i in range(${draft.choose([number, draft.integer(2, 5)])})`);
  draft.line(2, `t += ${draft.choose(['i', number, `i * ${draft.integer(2, 3)}`, `${number} % (i + 1)`, 'i % 2'])}`);
}

function whileLoop(draft: Draft): void {
  let name = 'n';
  if (draft.has('integer')) {
    name = draft.variable('integer');
  } else {
    draft.line(1, `n = ${integer(draft, 1)}`);
    draft.variables.set('n', 'integer');
  }
  const falls = draft.choose([`-= ${draft.integer(2, 6)}`, '//= 2', `-= ${draft.integer(3, 9)}`, '//= 3']);
  draft.line(1, `while ${name} > ${draft.integer(3, 9)}:`);
  draft.line(2, `${name} ${falls}`);
}

function conditional(draft: Draft): void {
  const [name, type] = draft.choose([...draft.variables]);
  draft.line(1, `if ${draft.produce(CONDITIONS, 0)}:`);
  draft.line(2, `${name} = ${expression(draft, type, 1)}`);
  if (!draft.chance(0.4)) return;
  draft.line(1, 'else:');
  draft.line(2, `${name} = ${expression(draft, type, 1)}`);
}

function earlyReturn(draft: Draft): void {
  draft.line(1, `if ${draft.produce(CONDITIONS, 0)}:`);
  draft.line(2, `return ${expression(draft, draft.type(), 1)}`);
}

function counting(draft: Draft): void {
  const type = draft.has('string') ? 'string' : 'list';
  const values = draft.variable(type);
  const key = type === 'string' ? draft.letter() : draft.integer(0, 9);
  draft.line(1, 'd = {}');
  draft.line(1, `for k in ${values}:`);
  draft.line(2, 'd[k] = d.get(k, 0) + 1');
  const result = draft.chance(0.6)
    ? draft.choose(['max(d.values())', 'len(d)', `d.get(${key}, 0)`, 'min(d.values())'])
    : `d[${values}[${draft.integer(0, 3)}]]`;
  draft.line(1, `m = ${result}`);
  draft.variables.set('m', 'integer');
}

function listMethod(draft: Draft): void {
  const method = draft.choose(['sort()', 'reverse()', `append(${draft.integer(0, 9)})`, 'pop()', 'pop(0)']);
  draft.line(1, `${draft.variable('list')}.${method}`);
}

function augmented(draft: Draft): void {
  draft.line(1, `${draft.variable('integer')} ${draft.choose(['+=', '-=', '*=', '%='])} ${draft.integer(2, 7)}`);
}
