/** The settings of the code domain, as a user writes them under `domain:` in a pipeline's YAML. */
import { DEFAULT_TOPIC_RULES } from './topics.js';
import * as z from 'zod';

const NOTATIONS = ['fenced', 'doctest'] as const;
/** The task types that a domain can write. */
export const TASK_TYPES = ['code_o', 'code_i', 'code_f'] as const;

const range = z
  .tuple([z.int(), z.int()])
  .refine(([low, high]) => low <= high, { message: 'the first number must not exceed the second' });

export const distinctOutputsSchema = z
  .strictObject({
    of: z.int().min(2).max(64).describe('Inputs tried: the task’s own, and random ones of the same types.'),
    atLeast: z.int().min(2).max(64).describe('Distinct outputs that must come out; an exception counts as one.'),
    integers: range.default([0, 40]).describe('Random integers lie between these, both included.'),
    items: range.default([0, 9]).describe('Random integers within lists, tuples and sets.'),
    letters: z.string().min(2).default('ABCDEF').describe('Random strings are made of these characters.'),
    minimumLength: z
      .int()
      .min(0)
      .default(2)
      .describe('A random string or list is one shorter to one longer, but at least this.'),
  })
  .refine(({ of, atLeast }) => atLeast <= of, { message: 'atLeast must not exceed of' });

const validitySchema = z.strictObject({
  allowedImports: z
    .array(z.string())
    .nullable()
    .default(null)
    .describe('Top-level modules a program may import; null leaves it to the sandbox, [] allows none.'),
  forbiddenSyntax: z
    .array(z.string())
    .default([])
    .describe('Classes of Python’s ast that must not appear: Lambda, Pow, ClassDef, Global, ….'),
  allowedCalls: z
    .array(z.string())
    .nullable()
    .default(null)
    .describe('Names that may be called besides the program’s own functions: sum, len, …; null allows all.'),
  privateAttributes: z
    .enum(['allow', 'forbid'])
    .default('forbid')
    .describe('Attributes whose name starts with an underscore.'),
  largestInteger: z.int().min(0).nullable().default(null).describe('Largest integer constant in a program; null: any.'),
  onlyFunction: z.boolean().default(false).describe('The program must be the function f and nothing else.'),
  everyParameterUsed: z
    .boolean()
    .default(true)
    .describe('What f returns must be able to depend on every parameter; dead code that reads one is not enough.'),
  noneResult: z.enum(['allow', 'reject']).default('reject').describe('Tasks whose output is None.'),
  maxReprLength: z.int().min(1).default(400).describe('Longest output, in characters of its repr.'),
  distinctOutputs: distinctOutputsSchema
    .nullable()
    .default(null)
    .describe('Guard against answers that can be guessed: {of: 8, atLeast: 6}; null: none.'),
  maxQuestionLength: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe('Longest task as the solver sees it, in characters, instructions apart; null: any.'),
  rejectRepeats: z.boolean().default(true).describe('A task that the run has written before is invalid.'),
});

const inductionSchema = z
  .strictObject({
    inputs: z.int().min(2).max(32).default(10).describe('Inputs of a task.'),
    shown: z.int().min(1).max(31).default(5).describe('Shown with their outputs; the rest judge the answer.'),
  })
  .refine(({ inputs, shown }) => shown < inputs, { message: 'shown must be less than inputs' });

const limitsSchema = z.strictObject({
  timeoutMs: z.int().min(1).default(2000).describe('Milliseconds of processor time for all calls of one program.'),
  memoryMiB: z.int().min(32).max(4096).default(256).describe('Memory of the interpreter, in MiB.'),
});

export const codeDomainSchema = z.strictObject({
  name: z.literal('code').default('code').describe('Short Python programs.'),
  types: z
    .array(z.enum(TASK_TYPES))
    .nonempty()
    .refine((types) => new Set(types).size === types.length, { message: 'a type is named twice' })
    .default(['code_o'])
    .describe(
      'Task types to write, in equal shares. code_o: predict the output; code_i: give an input; code_f: write the function.',
    ),
  notation: z
    .enum(NOTATIONS)
    .default('fenced')
    .describe('How tasks are written: fenced (Markdown blocks, for instructed models) or doctest (the micro-world).'),
  topics: z
    .string()
    .default(DEFAULT_TOPIC_RULES)
    .describe('File of the rules that tell what a program is about; data/topics/README.md says how to write one.'),
  examples: z
    .int()
    .min(0)
    .max(8)
    .default(3)
    .describe('Example tasks in the fenced prompt, drawn anew for each seed; code_f has four in all.'),
  induction: inductionSchema.prefault({}).describe('Of code_f: how many inputs, and how many of them are shown.'),
  validity: validitySchema.prefault({}).describe('What makes a task valid (𝒲).'),
  limits: limitsSchema.prefault({}).describe('Limits of the sandbox for one program.'),
});

/** What random inputs are drawn from where the settings do not say. */
export const DEFAULT_RANGES = distinctOutputsSchema.parse({ of: 2, atLeast: 2 });

export type DistinctOutputs = z.infer<typeof distinctOutputsSchema>;
export type ValiditySettings = z.infer<typeof validitySchema>;
export type CodeDomainSettings = z.infer<typeof codeDomainSchema>;
