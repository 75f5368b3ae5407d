/** Tasks from files: rows in Absolute Zero's fields or CRUXEval's. */
import * as z from 'zod';
import { UserError } from '../../errors.js';
import type { JsonLine } from './jsonl.js';
import { nameF, withImports } from './program.js';

export interface RecordedTask {
  /** Null where the row has none. */
  readonly id: string | number | null;
  /** Python source that defines `f`. */
  readonly code: string;
  readonly inputs: readonly string[];
  /** One an input. */
  readonly outputs: readonly string[];
  /** Whether it is an induction row (code_f), of several calls. */
  readonly induction: boolean;
}

/** More import statements than a program has; each is looked for in its text. */
const MAX_IMPORTS = 1000;
/** All inputs of a row are one run of its program. */
const MAX_INPUTS = 1000;
const texts = z.array(z.string()).nonempty().max(MAX_INPUTS, `at most ${MAX_INPUTS}`);
const importStatements = z.array(z.string()).max(MAX_IMPORTS, `at most ${MAX_IMPORTS} import statements`).default([]);

const id = z.union([z.string(), z.number()]).nullable().default(null);

/** A row in Absolute Zero's fields. */
const absoluteZeroRow = z.object({
  id,
  snippet: z.string(),
  input: z.string(),
  output: z.string(),
  imports: importStatements,
});
/** An induction row (code_f) in Absolute Zero's fields: an output an input. */
const inductionRow = z
  .object({
    id,
    snippet: z.string(),
    inputs: texts,
    outputs: texts,
    imports: importStatements,
  })
  .refine(({ inputs, outputs }) => inputs.length === outputs.length, {
    path: ['outputs'],
    message: 'there must be as many as inputs',
  });
/** A row in CRUXEval's fields. */
const cruxEvalRow = z.object({ id, code: z.string(), input: z.string(), output: z.string() });

/** @throws {UserError} naming the file, the line and the field */
export function readRecordedTask(path: string, { line, value }: JsonLine): RecordedTask {
  const has = (field: string): boolean => typeof value === 'object' && value !== null && field in value;
  if (has('code') && !has('snippet')) {
    const { code, input, output, ...row } = parseRow(cruxEvalRow, path, line, value);
    return { id: row.id, code: nameF(code), inputs: [input], outputs: [output], induction: false };
  }
  if (has('inputs')) {
    const { snippet, imports, inputs, outputs, ...row } = parseRow(inductionRow, path, line, value);
    return { id: row.id, code: withImports(snippet, imports), inputs, outputs, induction: true };
  }
  const { snippet, imports, input, output, ...row } = parseRow(absoluteZeroRow, path, line, value);
  return { id: row.id, code: withImports(snippet, imports), inputs: [input], outputs: [output], induction: false };
}

function parseRow<Row>(schema: z.ZodType<Row>, path: string, line: number, value: unknown): Row {
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  const field = issue?.path.length ? `field ${issue.path.join('.')}: ${issue.message}` : issue?.message;
  const expected =
    'a row needs the text fields snippet, input, output (Absolute Zero) or code, input, output (CRUXEval), or the lists inputs and outputs';
  throw new UserError(`${path}, line ${line}: ${field}; ${expected}`);
}
