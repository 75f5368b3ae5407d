/**
 * Chat templates: a question in the words that a model was trained to be asked in. The library parses them; they are filled in here, because
 * its own way of printing, stripping and comparing is not Python's, and a prompt that is off by a character asks another question.
 */
import { parse, tokenize } from '@huggingface/jinja';
import { inOneLine, UserError } from '../errors.js';
import { render } from './jinja/evaluate.js';
import type { Node, Program } from './jinja/evaluate.js';
import { hasFilter, hasTest } from './jinja/filters.js';
import { Callable, Namespace, text, Unsupported } from './jinja/values.js';
import type { Arguments, Value } from './jinja/values.js';

export interface Turn {
  readonly role: string;
  readonly content: string;
}

/** Llama 3's templates write today's date unless given one, and the same prompt must have the same tokens tomorrow. */
const DATE = { date_string: '26 Jul 2024' };
/** The parts of that date by the letters of `strftime`. */
const DATE_PARTS: Readonly<Record<string, string>> = {
  d: '26',
  m: '07',
  b: 'Jul',
  B: 'July',
  y: '24',
  Y: '2024',
  a: 'Fri',
  A: 'Friday',
  '%': '%',
};

const ADVICE = 'set chat: never to do without';

export class ChatTemplate {
  readonly #program: Program;
  readonly #tokens: Readonly<Record<string, string>>;

  /**
   * @param source the template
   * @param tokens the texts of `bos_token` and the others that the tokenizer names
   * @throws UserError for a construct that is not filled in as transformers does, by name
   */
  constructor(source: string, tokens: Readonly<Record<string, string>>) {
    this.#tokens = tokens;
    this.#program = attempt(() => {
      const read = tokenize(source.replaceAll(/\r\n?/g, '\n'), { lstrip_blocks: true, trim_blocks: true });
      checkChains(read);
      const program = parse(read);
      checkNode(program);
      return program;
    });
  }

  /** The turns, followed by the beginning of an answer. @throws UserError for turns that the template does not take */
  render(turns: readonly Turn[]): string {
    const messages = turns.map((turn) => new Map<string, Value>(Object.entries(turn)));
    const globals = new Map<string, Value>([
      ...Object.entries(FUNCTIONS),
      ...Object.entries(CONSTANTS),
      ...Object.entries(this.#tokens),
      ...Object.entries(DATE),
      ['messages', messages],
      ['tools', null],
      ['documents', null],
      ['add_generation_prompt', true],
    ]);
    return attempt(() => render(this.#program, globals));
  }
}

const CONSTANTS = { true: true, True: true, false: false, False: false, none: null, None: null };

const FUNCTIONS = {
  raise_exception: new Callable(({ positional: [message] }) => {
    throw new Error(text(message));
  }),
  namespace: new Callable(({ positional, named }) => {
    if (positional.length > 0) throw new Unsupported('a namespace of another');
    const made = new Namespace();
    for (const [name, value] of named) made.fields.set(name, value);
    return made;
  }),
  dict: new Callable(({ positional, named }) => {
    if (positional.length > 0) throw new Unsupported('a dict of another');
    return new Map(named);
  }),
  range: new Callable(range),
  strftime_now: new Callable(({ positional: [format] }) =>
    text(format).replaceAll(/%(.)/g, (all, letter: string) => {
      const part = DATE_PARTS[letter];
      if (part === undefined) throw new Unsupported(`the date part ${all}`);
      return part;
    }),
  ),
};

function range({ positional, named }: Arguments): Value {
  const numbers = positional.map(Number);
  if (named.size > 0 || positional.some((one) => typeof one !== 'bigint')) throw new Unsupported('such a range');
  const [start, stop, step = 1] = numbers.length === 1 ? [0, numbers[0]!] : (numbers as [number, number, number?]);
  const length = Math.max(0, Math.ceil((stop - start) / step));
  // As the sandbox has it.
  if (!(length <= 100_000)) throw new Error('a range of more than 100000');
  return Array.from({ length }, (_, i) => BigInt(start + i * step));
}

function attempt<T>(work: () => T): T {
  try {
    return work();
  } catch (cause) {
    const { message } = cause as Error;
    if (cause instanceof Unsupported)
      throw new UserError(`the model's chat template uses ${inOneLine(message)}, which is not supported; ${ADVICE}`, {
        cause,
      });
    throw new UserError(`the model's chat template cannot be filled in: ${inOneLine(message)}; ${ADVICE}`, { cause });
  }
}

const KNOWN = new Set(
  [
    'Program Comment If For Break Continue Set Macro FilterStatement CallStatement StringLiteral IntegerLiteral FloatLiteral',
    'ArrayLiteral TupleLiteral ObjectLiteral Identifier MemberExpression CallExpression UnaryExpression BinaryExpression FilterExpression',
    'TestExpression SelectExpression Ternary SliceExpression KeywordArgumentExpression',
  ].flatMap((names) => names.split(' ')),
);

/** @throws Unsupported for what could only be found out when it is filled in, and what the library parses as something else. */
function checkNode(root: Program): void {
  const open: unknown[] = [root];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next === null || typeof next !== 'object') continue;
    if (isNode(next)) checkOne(next);
    const inner = next instanceof Map ? [...next].flat() : Object.values(next);
    for (const one of inner as unknown[]) open.push(one ?? null);
  }
}

/** The tokens of operators lie in the tree too, and have a type of their own. */
function isNode(value: object): value is Node {
  return 'type' in value && !(value as Node).type.endsWith('Operator');
}

function checkOne(node: Node): void {
  if (!KNOWN.has(node.type)) throw new Unsupported(`the construct ${node.type}`);
  if (node.type === 'FilterExpression' || node.type === 'FilterStatement') {
    const filter = node['filter'] as Node;
    const name = String(((filter.type === 'Identifier' ? filter : filter['callee']) as Node)['value']);
    if (!hasFilter(name)) throw new Unsupported(`the filter ${name}`);
  }
  if (node.type === 'TestExpression') {
    const name = String((node['test'] as Node)['value']);
    if (!hasTest(name)) throw new Unsupported(`the test ${name}`);
  }
}

const OPENING = new Set(['OpenParen', 'OpenSquareBracket', 'OpenCurlyBracket', 'OpenExpression', 'OpenStatement']);
const CLOSING = new Set(['CloseParen', 'CloseSquareBracket', 'CloseCurlyBracket', 'CloseExpression', 'CloseStatement']);
const BETWEEN = new Set(['and', 'or', 'if', 'else', 'for']);

/** The library takes a < b < c for (a < b) < c. @throws Unsupported for such a chain */
function checkChains(tokens: ReturnType<typeof tokenize>): void {
  // Whether there has been a comparison, bracket by bracket.
  const seen = [false];
  for (const { type, value } of tokens) {
    if (OPENING.has(type)) seen.push(false);
    else if (CLOSING.has(type)) seen.pop();
    else if (type === 'Comma' || type === 'Colon' || type === 'Equals' || BETWEEN.has(value))
      seen[seen.length - 1] = false;
    else if (type === 'ComparisonBinaryOperator' || value === 'in') {
      if (seen.at(-1)) throw new Unsupported('a chain of comparisons');
      seen[seen.length - 1] = true;
    }
  }
}
