/** The micro-world's expressions and conditions, as tables of weighted productions. */
import type { Draft, Production, ValueType } from './draft.js';

/** The expression ready for an index, a method or an operator that binds tightly: in brackets when it is a sum or the like. */
function operand(expression: string): string {
  let open = 0;
  for (const character of expression) {
    if ('([{'.includes(character)) open++;
    else if (')]}'.includes(character)) open--;
    else if (character === ' ' && open === 0) return `(${expression})`;
  }
  return expression;
}

const INTEGER_LEAVES_OF_A_LIST: readonly ((draft: Draft, list: string) => string)[] = [
  (_, list) => `len(${list})`,
  (_, list) => `${list}[0]`,
  (_, list) => `${list}[-1]`,
  (draft, list) => `${list}[${draft.integer(0, 3)}]`,
  (_, list) => `max(${list})`,
  (_, list) => `min(${list})`,
  (_, list) => `sum(${list})`,
];

const INTEGERS: readonly Production<string>[] = [
  [2, null, (draft, depth) => `${integer(draft, depth - 1)} + ${draft.integer(1, 9)}`],
  [1.5, null, (draft, depth) => `${integer(draft, depth - 1)} - ${draft.integer(1, 9)}`],
  [1.5, null, (draft, depth) => `${integer(draft, depth - 1)} * ${draft.integer(2, 5)}`],
  [1.5, null, (draft, depth) => `${operand(integer(draft, depth - 1))} % ${draft.integer(2, 9)}`],
  [1, null, (draft, depth) => `${operand(integer(draft, depth - 1))} // ${draft.integer(2, 5)}`],
  [1, null, (draft, depth) => `${integer(draft, depth - 1)} + ${integer(draft, depth - 1)}`],
  [0.6, null, (draft, depth) => `abs(${integer(draft, depth - 1)} - ${draft.integer(1, 9)})`],
  [0.6, null, (draft, depth) => `${integer(draft, depth - 1)} * ${integer(draft, 0)}`],
  [0.5, null, (draft, depth) => `max(${integer(draft, depth - 1)}, ${draft.integer(1, 9)})`],
  [1.2, 'list', (draft, depth) => `sum(${list(draft, depth - 1)})`],
  [1, 'list', (draft, depth) => `max(${list(draft, depth - 1)})`],
  [1, 'list', (draft, depth) => `min(${list(draft, depth - 1)})`],
  [1, 'list', (draft, depth) => `len(${list(draft, depth - 1)})`],
  [
    1.2,
    'list',
    (draft, depth) => `${operand(list(draft, depth - 1))}[${draft.choose(['0', '1', '2', '-1', '-2', '3'])}]`,
  ],
  [0.5, 'list', (draft) => `${draft.variable('list')}.count(${draft.integer(0, 9)})`],
  [
    0.4,
    'list',
    (draft) => `${draft.variable('list')}.index(${draft.choose(['max', 'min'])}(${draft.variable('list')}))`,
  ],
  [1, 'string', (draft, depth) => `len(${string(draft, depth - 1)})`],
  [1.2, 'string', (draft, depth) => `${operand(string(draft, depth - 1))}.count(${draft.letter()})`],
  [1, 'string', (draft, depth) => `${operand(string(draft, depth - 1))}.find(${draft.letter()})`],
  [0.4, 'string', (draft) => `${draft.variable('string')}.index(${draft.letter()})`],
];

/** An integer expression. */
export function integer(draft: Draft, depth: number): string {
  if (depth > 0) return draft.produce(INTEGERS, depth);
  if (draft.has('integer') && draft.chance(0.95)) return draft.variable('integer');
  if (draft.has('list')) return draft.choose(INTEGER_LEAVES_OF_A_LIST)(draft, draft.variable('list'));
  if (draft.has('string')) {
    const text = draft.variable('string');
    return draft.chance(0.5) ? `len(${text})` : `${text}.count(${draft.letter()})`;
  }
  return String(draft.integer(0, 9));
}

const ELEMENT_TESTS: readonly ((draft: Draft) => string)[] = [
  (draft) => `v > ${draft.integer(2, 6)}`,
  (draft) => `v < ${draft.integer(3, 7)}`,
  (draft) => `v % 2 == ${draft.integer(0, 1)}`,
  (draft) => `v % 3 == ${draft.integer(0, 2)}`,
  (draft) => `v != ${draft.integer(0, 9)}`,
];

const LISTS: readonly Production<string>[] = [
  [2, 'list', (draft, depth) => `sorted(${list(draft, depth - 1)})`],
  [1, 'list', (draft, depth) => `sorted(${list(draft, depth - 1)}, reverse=True)`],
  [1.3, 'list', (draft, depth) => `${operand(list(draft, depth - 1))}[::-1]`],
  [
    1.3,
    'list',
    (draft, depth) =>
      `${operand(list(draft, depth - 1))}[${draft.choose([':2', '1:', '1:3', ':-1', '::2', '2:', ':3'])}]`,
  ],
  [
    1.2,
    'list',
    (draft, depth) => `[v ${draft.choose(['+', '-', '*'])} ${draft.integer(1, 4)} for v in ${list(draft, depth - 1)}]`,
  ],
  [1, 'list', (draft, depth) => `[v for v in ${list(draft, depth - 1)} if ${draft.choose(ELEMENT_TESTS)(draft)}]`],
  [0.6, 'list', (draft, depth) => `${list(draft, depth - 1)} + [${draft.integer(0, 9)}]`],
  [0.6, 'list', (draft, depth) => `sorted(set(${list(draft, depth - 1)}))`],
  [
    0.4,
    'list',
    (draft, depth) => `[a + b for a, b in zip(${draft.variable('list')}, ${operand(list(draft, depth - 1))}[1:])]`,
  ],
  [0.4, 'list', (draft, depth) => `[v % ${draft.integer(2, 5)} for v in ${list(draft, depth - 1)}]`],
  [
    1,
    'string',
    (draft, depth) => `[${operand(string(draft, depth - 1))}.count(k) for k in '${draft.distinctLetters(3)}']`,
  ],
  [0.7, 'integer', (draft) => `list(range(${integer(draft, 0)}))`],
  [0.7, 'integer', (draft, depth) => `[${integer(draft, depth - 1)}, ${integer(draft, depth - 1)}]`],
];

function list(draft: Draft, depth: number): string {
  return depth <= 0 ? draft.variable('list') : draft.produce(LISTS, depth);
}

const STRINGS: readonly Production<string>[] = [
  [1.5, 'string', (draft, depth) => `${operand(string(draft, depth - 1))}[::-1]`],
  [
    1.3,
    'string',
    (draft, depth) => `${operand(string(draft, depth - 1))}[${draft.choose([':2', '1:', '1:3', ':-1', '::2', '2:'])}]`,
  ],
  [1, 'string', (draft, depth) => `${string(draft, depth - 1)} + '${draft.letters(draft.integer(1, 2))}'`],
  [0.8, 'string', (draft, depth) => `${string(draft, depth - 1)} * 2`],
  [
    1.5,
    'string',
    (draft, depth) => `${operand(string(draft, depth - 1))}.replace(${draft.letter()}, ${draft.letter()})`,
  ],
  [1.2, 'string', (draft, depth) => `''.join(sorted(${string(draft, depth - 1)}))`],
  [0.7, 'string', (draft, depth) => `${operand(string(draft, depth - 1))}[${draft.choose(['0', '-1', '1', '2'])}]`],
  [0.5, 'string', (draft, depth) => `${draft.letter()} + ${string(draft, depth - 1)}`],
];

function string(draft: Draft, depth: number): string {
  return depth <= 0 ? draft.variable('string') : draft.produce(STRINGS, depth);
}

/** An expression of a type that some variable has; `depth` is how many operations may still be nested. */
export function expression(draft: Draft, type: ValueType, depth: number): string {
  if (type === 'integer') return integer(draft, depth);
  return type === 'list' ? list(draft, depth) : string(draft, depth);
}

export const CONDITIONS: readonly Production<string>[] = [
  [1, 'integer', (draft) => `${draft.variable('integer')} > ${draft.integer(2, 30)}`],
  [1, 'integer', (draft) => `${draft.variable('integer')} % ${draft.integer(2, 3)} == 0`],
  [1, 'list', (draft) => `${draft.integer(0, 9)} in ${draft.variable('list')}`],
  [1, 'list', (draft) => `${draft.choose(['len', 'max', 'sum'])}(${draft.variable('list')}) > ${draft.integer(3, 20)}`],
  [1, 'list', (draft) => `${draft.variable('list')}[0] > ${draft.variable('list')}[-1]`],
  [1, 'string', (draft) => `${draft.letter()} in ${draft.variable('string')}`],
  [1, 'string', (draft) => `len(${draft.variable('string')}) > ${draft.integer(3, 5)}`],
  [1, 'string', (draft) => `${draft.variable('string')}[0] == ${draft.letter()}`],
];
