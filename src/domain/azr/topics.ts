/** What a program is about, told by its syntax tree under rules that are data: `data/topics/`, whose README.md says how to write them. */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import * as z from 'zod';
import { readingFault, UserError } from '../../errors.js';
import type { SyntaxFacts } from '../../sandbox/sandbox.js';
import { tryParseArguments } from './literal.js';

/** The topic of what has no syntax tree. */
export const UNPARSABLE = 'unparsable';

const topic = z
  .string()
  .regex(/^[a-z][a-z0-9_]*$/, 'lower-case letters, digits and underscores')
  .refine((name) => name !== UNPARSABLE, { message: `${UNPARSABLE} is the topic of what has no syntax tree` });
const names = z.array(z.string().min(1)).nonempty();

/** A program has the topic of the first rule of which any one clause holds. */
const topicRuleSchema = z
  .strictObject({
    topic,
    nodes: names.optional().describe('Classes of Python’s ast.'),
    calls: names.optional().describe('Functions called by name.'),
    methods: names.optional().describe('Attributes called.'),
    reversedSlice: z.literal(true).optional().describe('A slice backwards, x[::-1].'),
    stringInput: z.literal(true).optional().describe('An argument is a string.'),
  })
  .refine((rule) => Object.keys(rule).length > 1, { message: 'a rule needs a clause' });

const topicRulesSchema = z
  .strictObject({
    version: z.string().min(1).describe('The file’s name without .json.'),
    rules: z.array(topicRuleSchema).nonempty().describe('In the order in which they are tried.'),
    otherwise: topic.describe('The topic where no rule holds.'),
  })
  .refine(
    ({ rules, otherwise }) => new Set([otherwise, ...rules.map((rule) => rule.topic)]).size === rules.length + 1,
    {
      message: 'a topic is named twice',
    },
  );

export type TopicRules = z.infer<typeof topicRulesSchema>;

/** Read a file of topic rules. @throws {UserError} when it is not one, in one line that names the place in it. */
export function readTopicRules(path: string): TopicRules {
  const fault = (what: string, cause?: unknown): UserError =>
    new UserError(`${path}: ${what}; give a file of topic rules such as data/topics/code-1.json`, { cause });
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
  const rule = rules.find(
    ({ nodes = [], calls = [], methods = [], reversedSlice, stringInput }) =>
      nodes.some((node) => counted(facts.nodes, node)) ||
      calls.some((name) => counted(facts.calledNames, name)) ||
      methods.some((name) => counted(facts.calledAttributes, name)) ||
      (reversedSlice === true && facts.reversedSlices > 0) ||
      (stringInput === true && hasStringArgument(input)),
  );
  return rule?.topic ?? otherwise;
}

function counted(counts: Readonly<Record<string, number>>, name: string): boolean {
  return Object.hasOwn(counts, name) && (counts[name] ?? 0) > 0;
}

function hasStringArgument(input: string): boolean {
  const read = tryParseArguments(input);
  if (read === null) return false;
  return [...read.positional, ...read.keywords.map(([, value]) => value)].some((value) => value.type === 'str');
}
