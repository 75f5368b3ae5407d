/** What a program is about, told by its syntax tree under rules that are data: `data/topics/`, whose README.md says how to write them. */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import * as z from 'zod';
import { readingFault, UserError } from '../../errors.js';
import type { SyntaxFacts } from '../../sandbox/sandbox.js';
import { tryParseArguments } from './literal.js';

/** The topic of what has no syntax tree. */
export const UNPARSABLE = 'unparsable';

export const DEFAULT_TOPIC_RULES = 'data/topics/code-2.json';

const topic = z
  .string()
  .regex(/^[a-z][a-z0-9_]*$/, 'lower-case letters, digits and underscores')
  .refine((name) => name !== UNPARSABLE, { message: `${UNPARSABLE} is the topic of what has no syntax tree` });
const names = z.array(z.string().min(1)).nonempty();

const INPUT_TYPES = [
  'none',
  'bool',
  'int',
  'float',
  'complex',
  'str',
  'bytes',
  'tuple',
  'list',
  'set',
  'dict',
] as const;

const clauses = {
  nodes: names.optional().describe('Classes of Python’s ast.'),
  calls: names.optional().describe('Functions called by name.'),
  methods: names.optional().describe('Attributes called.'),
  reversedSlice: z.literal(true).optional().describe('A slice backwards, x[::-1].'),
  stringInput: z.literal(true).optional().describe('An argument is a string.'),
  inputs: z.array(z.enum(INPUT_TYPES)).nonempty().optional().describe('An argument is of one of these types.'),
};
const clausesSchema = z
  .strictObject(clauses)
  .refine((given) => Object.keys(given).length > 0, { message: 'with needs a clause' });
type Clauses = z.output<typeof clausesSchema>;

/** A program has the topic of the first rule of which any one clause holds, and any one of `with` too where it is given. */
const topicRuleSchema = z
  .strictObject({ topic, ...clauses, with: clausesSchema.optional().describe('Clauses of which one must hold too.') })
  .refine((rule) => Object.keys(rule).some((key) => Object.hasOwn(clauses, key)), { message: 'a rule needs a clause' });

const topicRulesSchema = z
  .strictObject({
    version: z.string().min(1).describe('The file’s name without .json.'),
    rules: z
      .array(topicRuleSchema)
      .nonempty()
      .describe('In the order in which they are tried; several may name one topic.'),
    otherwise: topic.describe('The topic where no rule holds.'),
  })
  .refine(({ rules, otherwise }) => rules.every((rule) => rule.topic !== otherwise), {
    message: 'the topic where no rule holds is that of a rule too',
  });

export type TopicRules = z.infer<typeof topicRulesSchema>;

/** Read a file of topic rules. @throws {UserError} when it is not one, in one line that names the place in it. */
export function readTopicRules(path: string): TopicRules {
  const fault = (what: string, cause?: unknown): UserError =>
    new UserError(`${path}: ${what}; give a file of topic rules such as ${DEFAULT_TOPIC_RULES}`, { cause });
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, 'utf8'));
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    throw fault(code === undefined ? `not JSON: ${message.split('\n')[0]}` : readingFault(cause), cause);
  }
  const read = topicRulesSchema.safeParse(value);
  if (!read.success) {
    const [issue] = read.error.issues;
    throw fault(`${issue!.path.join('.') || 'the document'}: ${issue!.message}`, read.error);
  }
  const name = basename(path, '.json');
  if (read.data.version !== name) throw fault(`version: is ${read.data.version}, the file is named ${name}`);
  return read.data;
}

/** @param input the text between the brackets of `f(…)` */
export function topicOf({ rules, otherwise }: TopicRules, facts: SyntaxFacts, input: string): string {
  let read: ReadonlySet<string> | undefined;
  const inputTypes = (): ReadonlySet<string> => (read ??= typesOfArguments(input));
  const rule = rules.find(
    (given) => holds(given, facts, inputTypes) && (given.with === undefined || holds(given.with, facts, inputTypes)),
  );
  return rule?.topic ?? otherwise;
}

/** Whether any one clause holds. @param inputTypes read only for a clause that asks for them */
function holds(
  { nodes = [], calls = [], methods = [], reversedSlice, stringInput, inputs = [] }: Clauses,
  facts: SyntaxFacts,
  inputTypes: () => ReadonlySet<string>,
): boolean {
  return (
    nodes.some((node) => counted(facts.nodes, node)) ||
    calls.some((name) => counted(facts.calledNames, name)) ||
    methods.some((name) => counted(facts.calledAttributes, name)) ||
    (reversedSlice === true && facts.reversedSlices > 0) ||
    (stringInput === true && inputTypes().has('str')) ||
    inputs.some((type) => inputTypes().has(type))
  );
}

function counted(counts: Readonly<Record<string, number>>, name: string): boolean {
  return Object.hasOwn(counts, name) && (counts[name] ?? 0) > 0;
}

function typesOfArguments(input: string): ReadonlySet<string> {
  const read = tryParseArguments(input);
  if (read === null) return new Set();
  return new Set([...read.positional, ...read.keywords.map(([, value]) => value)].map(({ type }) => type));
}
