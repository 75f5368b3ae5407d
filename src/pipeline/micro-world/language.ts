/** The micro-world's task language: a seeded grammar of small Python functions and the calls to them. */
import { Draft, type ValueType } from './draft.js';
import { expression } from './expressions.js';
import { STATEMENTS } from './statements.js';

/** One task before its answer is known. */
export interface SampledProgram {
  /** Source that defines `f`, without a newline at its end. */
  readonly snippet: string;
  /** The text between the brackets of `f(…)`. */
  readonly input: string;
}

/** The longest task text, and the length above which only some are kept, in characters. */
const LONGEST_TEXT = 130;
const LONG_TEXT = 95;
const LONG_TEXT_KEPT = 0.3;

const PARAMETER_TYPES: readonly (readonly ValueType[])[] = [
  ['list'],
  ['list'],
  ['string'],
  ['string'],
  ['integer'],
  ['list', 'integer'],
  ['string', 'integer'],
  ['integer', 'integer'],
];
const STATEMENT_GROUPS = [0, 0, 1, 1, 1, 2, 2];

function argument(draft: Draft, type: ValueType): string {
  if (type === 'integer') return String(draft.integer(0, 40));
  if (type === 'string') return `'${draft.letters(draft.choose([3, 4, 4, 5, 6]))}'`;
  const digits = Array.from({ length: draft.choose([3, 3, 4, 4, 5, 6]) }, () => draft.integer(0, 9));
  return `[${digits.join(', ')}]`;
}

/** What `f` returns: mostly something about the variable that came last, else anything in scope. */
function result(draft: Draft, parameters: readonly string[]): string {
  const [name, type] = [...draft.variables].findLast(([other]) => !parameters.includes(other)) ?? [];
  if (name === undefined || type === undefined || !draft.chance(0.75)) {
    return expression(draft, draft.type(), draft.choose([1, 1, 2]));
  }
  if (draft.chance(0.35)) return name;
  const alone = new Draft(draft.random, new Map([[name, type]]));
  return expression(alone, draft.chance(0.6) ? type : 'integer', 1);
}

/** Whether every parameter is read somewhere in the body; being assigned to (`n = 2`, `n -= 2`) is no reading. */
export function readsEveryParameter(snippet: string): boolean {
  const body = snippet.slice(snippet.indexOf('\n'));
  const parameters = snippet.slice(snippet.indexOf('(') + 1, snippet.indexOf('):')).split(', ');
  return parameters.every((name) => new RegExp(`\\b${name}\\b(?! ([+*%-]|//)?= )`).test(body));
}

function draftProgram(random: () => number): SampledProgram {
  const types = new Draft(random, new Map()).choose(PARAMETER_TYPES);
  const parameters = ['x', 'n'].slice(0, types.length);
  const draft = new Draft(random, new Map(parameters.map((name, index) => [name, types[index]!])));
  draft.line(0, `def f(${parameters.join(', ')}):`);
  for (let groups = draft.choose(STATEMENT_GROUPS); groups > 0; groups--) draft.produce(STATEMENTS, 0);
  draft.line(1, `return ${result(draft, parameters)}`);
  return { snippet: draft.lines.join('\n'), input: types.map((type) => argument(draft, type)).join(', ') };
}

const INDUCED_DEPTHS = [1, 1, 1, 1, 2];

/**
 * Draw a program of the family whose functions are to be found from examples: one parameter and one expression of it, mostly a single
 * operation. What a larger program does, five examples do not tell a model of this size.
 */
export function sampleFunction(random: () => number): SampledProgram {
  const type = new Draft(random, new Map()).choose(['list', 'list', 'string', 'string', 'integer'] as const);
  for (;;) {
    const draft = new Draft(random, new Map([['x', type]]));
    const depth = draft.choose(INDUCED_DEPTHS);
    const body = expression(draft, draft.chance(0.7) ? type : 'integer', depth);
    const program = { snippet: `def f(x):\n    return ${body}`, input: argument(draft, type) };
    if (readsEveryParameter(program.snippet)) return program;
  }
}

/** The task as the models read it, ending in the newline after the call. */
export function taskText(program: SampledProgram): string {
  return `${program.snippet}\n>>> f(${program.input})\n`;
}

/**
 * Draw one program. Every parameter is read, the task's text has at most 130 characters, and of those above 95 most are drawn
 * again. The program ends for any input of its own types, though it may raise (an index out of range, say).
 */
export function sampleProgram(random: () => number): SampledProgram {
  for (;;) {
    const program = draftProgram(random);
    const length = taskText(program).length;
    if (length > LONGEST_TEXT || !readsEveryParameter(program.snippet)) continue;
    if (length > LONG_TEXT && random() >= LONG_TEXT_KEPT) continue;
    return program;
  }
}
