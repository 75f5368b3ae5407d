/** Outcomes of attempts that someone already has: rows of tasks, each with what K attempts at it came to. */
import * as z from 'zod';
import { readJsonLines, readRecordedTask, TASK_TYPES } from '../domain/azr/index.js';
import type { CodeTask } from '../domain/azr/index.js';
import { UserError } from '../errors.js';
import type { AttemptRow } from '../store/rows.js';
import type { Config } from './config.js';

export interface AttemptedTask {
  /** Without outputs: only the sandbox fills those in. */
  readonly task: CodeTask;
  /** What the row says that the task's inputs lead to, one an input. */
  readonly recorded: readonly string[];
  /** At most K. */
  readonly verdicts: readonly AttemptRow['verdict'][];
}

/** The settings that a row must agree with. */
export type RowSettings = Pick<Config, 'band' | 'domain'>;

const outcomeFields = z.object({
  type: z.enum(TASK_TYPES).optional(),
  message: z.string().default(''),
  shown: z.int().optional(),
  passes: z.int().min(0).optional(),
  k: z.int().min(1).optional(),
  verdicts: z.array(z.enum(['pass', 'fail', 'error'])).optional(),
});
type OutcomeFields = z.infer<typeof outcomeFields>;

/** The rows of a JSON Lines file, one by one. @throws UserError naming the line that is not what it should be. */
export async function* readAttempts(path: string, settings: RowSettings): AsyncGenerator<AttemptedTask> {
  for await (const row of readJsonLines(path)) {
    const { code, inputs, outputs, induction } = readRecordedTask(path, row);
    const refuse = (what: string): UserError => new UserError(`${path}, line ${row.line}: ${what}`);
    const fields = outcomeFields.safeParse(row.value);
    if (!fields.success) {
      const [issue] = fields.error.issues;
      throw refuse(`field ${issue!.path.join('.')}: ${issue!.message}`);
    }
    const type = fields.data.type ?? (induction ? 'code_f' : 'code_o');
    if (induction !== (type === 'code_f'))
      throw refuse(`a task of type ${type} has ${induction ? 'one input and output' : 'lists of inputs and outputs'}`);
    if (!settings.domain.types.includes(type))
      throw refuse(
        `a task of type ${type}, and domain.types is ${settings.domain.types.join(', ')}; name the type there`,
      );
    const { shown } = settings.domain.induction;
    if (type === 'code_f' && fields.data.shown !== undefined && fields.data.shown !== shown)
      throw refuse(`shown is ${fields.data.shown}, and domain.induction.shown is ${shown}; set it to the row’s`);
    yield {
      task:
        type === 'code_f'
          ? {
              type,
              snippet: code,
              inputs,
              outputs: null,
              message: fields.data.message,
              shown,
            }
          : { type, snippet: code, input: inputs[0]!, output: null },
      recorded: outputs,
      verdicts: verdictsOf(fields.data, settings.band.of, refuse),
    };
  }
}

/** Of a row that gives only counts, the passes stand first: which attempt passed is not known. */
function verdictsOf(
  { passes, k, verdicts }: OutcomeFields,
  of: number,
  refuse: (what: string) => UserError,
): AttemptedTask['verdicts'] {
  if (verdicts !== undefined) {
    if (passes !== undefined || k !== undefined) throw refuse('give either verdicts, or passes and k');
    if (verdicts.length <= of) return verdicts;
    throw refuse(`${verdicts.length} verdicts, and band.of is ${of}; give as many, or set band to those attempts`);
  }
  if (passes === undefined || k === undefined)
    throw refuse('an outcome is missing: give passes and k, or verdicts, a list of pass, fail and error');
  if (k !== of) throw refuse(`k is ${k}, and band.of is ${of}; give outcomes of ${of} attempts, or set band to ${k}`);
  if (passes > k) throw refuse(`${passes} passes of k ${k} attempts`);
  return Array.from({ length: k }, (_, attempt) => (attempt < passes ? 'pass' : 'fail'));
}
