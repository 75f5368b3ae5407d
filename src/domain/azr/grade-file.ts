/** Grades a file of answers to a file of tasks: the work behind `propel grade`. */
import * as z from 'zod';
import { RunError, UserError } from '../../errors.js';
import { wilsonInterval, type Interval } from '../../metrics/interval.js';
import type { Limits, Sandbox } from '../../sandbox/sandbox.js';
import { USUAL_SPECIAL_TOKENS } from '../special-tokens.js';
import { mapBounded } from './bounded.js';
import { taskType } from './code-domain.js';
import { fenced } from './fenced.js';
import { gradeEach } from './grading.js';
import { readJsonLines, type JsonLine } from './jsonl.js';
import { tryParseLiteral } from './literal.js';
import { readRecordedTask } from './recorded-task.js';
import type { TASK_TYPES } from './settings.js';
import type { CodeTask, Grader } from './task.js';

export type GradeType = (typeof TASK_TYPES)[number];

/** An `error` is the infrastructure's, or the task's own when there is nothing to compare with; it counts for nothing. */
export type GradeVerdict = 'pass' | 'fail' | 'error';

export interface GradedRow {
  readonly id: string | number;
  /** One an answer, in order. */
  readonly verdicts: readonly GradeVerdict[];
  /** Passes / (passes + fails); null where there are none. */
  readonly rate: number | null;
  /** Why there are errors; absent where there are none. */
  readonly reason?: string;
  /** Whether the sandbox is the reason; absent where there are no errors. */
  readonly sandboxFailed?: boolean;
}

export interface GradeReport {
  readonly type: GradeType;
  /** Tasks with a row of answers. */
  readonly tasks: number;
  readonly answers: number;
  readonly verdicts: Readonly<Record<GradeVerdict, number>>;
  /** The mean of the tasks' rates; null where no answer could be graded. */
  readonly passAt1: number | null;
  /** Wilson 95%, of the sum of the rates (to the next whole number) out of the tasks: a task is one trial however many answers it has. */
  readonly passAt1Interval: Interval | null;
  readonly results: readonly GradedRow[];
}

export interface GradeFileOptions {
  readonly type: GradeType;
  /** Of code_f, inputs that the solver was shown; null: half of them, rounded down. */
  readonly shown: number | null;
  readonly limits: Partial<Limits>;
  /** Called once the files are read, with the number of their answers, and after each row with the answers done so far. */
  readonly onProgress: (done: number, answers: number) => void;
}

interface GradableTask {
  readonly task: CodeTask;
  /** Why no answer can be compared with it; null when one can. */
  readonly fault: string | null;
}

/**
 * Grades every row of answers. Both files are read through before anything runs, so that a bad row is refused at once; answers are
 * streamed, tasks are held.
 * @throws {UserError} for a file or row that is not what it should be
 */
export async function gradeFile(
  tasksPath: string,
  answersPath: string,
  openSandbox: () => Promise<Sandbox>,
  options: GradeFileOptions,
): Promise<GradeReport> {
  const tasks = await readTasks(tasksPath, options);
  const answers = await countAnswers(answersPath, tasks, tasksPath);
  options.onProgress(0, answers);
  const sandbox = await openSandbox();
  try {
    const grader = { sandbox, limits: options.limits };
    let done = 0;
    const results = await mapBounded(readJsonLines(answersPath), sandbox.size, async (row) => {
      const read = readAnswers(answersPath, row);
      const graded = await gradeRow(read, tasks.get(String(read.id))!, grader);
      options.onProgress((done += read.answers.length), answers);
      return graded;
    });
    return { type: options.type, ...summarise(results) };
  } finally {
    await sandbox.close();
  }
}

async function readTasks(
  path: string,
  { type, shown }: Pick<GradeFileOptions, 'type' | 'shown'>,
): Promise<Map<string, GradableTask>> {
  const tasks = new Map<string, GradableTask>();
  let index = 0;
  for await (const row of readJsonLines(path)) {
    const { id, code: snippet, inputs, outputs, induction } = readRecordedTask(path, row);
    const refuse = (what: string): UserError => new UserError(`${path}, line ${row.line}: ${what}`);
    const key = String(id ?? index);
    index += 1;
    if (tasks.has(key)) throw refuse(`a second task of id ${key}; give every task an id of its own, or none an id`);
    if (induction !== (type === 'code_f')) {
      throw refuse(
        induction
          ? `inputs and outputs are an induction task's; grade it with --type code_f`
          : `code_f needs the lists inputs and outputs; grade a task of one input with --type code_o or code_i`,
      );
    }
    if (type === 'code_f') {
      const visible = shown ?? Math.floor(inputs.length / 2);
      if (visible >= inputs.length)
        throw refuse(`${inputs.length} inputs, ${visible} shown: none is left to judge by; lower --shown`);
      const task = { type, snippet, inputs, outputs, message: '', shown: visible };
      tasks.set(key, { task, fault: uncomparable(outputs.slice(visible)) });
    } else {
      const [input = '', output = ''] = [inputs[0], outputs[0]];
      tasks.set(key, { task: { type, snippet, input, output }, fault: uncomparable([output]) });
    }
  }
  return tasks;
}

function uncomparable(outputs: readonly string[]): string | null {
  const strange = outputs.find((output) => tryParseLiteral(output.trim()) === null);
  if (strange === undefined) return null;
  return strange === '' ? 'the task records no output' : `the task's output is no literal: ${strange.slice(0, 80)}`;
}

const answersRow = z.object({ id: z.union([z.string(), z.number()]), answers: z.array(z.string()) });
type AnswersRow = z.infer<typeof answersRow>;

function readAnswers(path: string, { line, value }: JsonLine): AnswersRow {
  const read = answersRow.safeParse(value);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  const at = issue?.path.length ? `field ${issue.path.join('.')}: ` : '';
  throw new UserError(
    `${path}, line ${line}: ${at}${issue?.message}; a row needs id, of a task, and answers, a list of texts`,
  );
}

/** @throws {UserError} for rows that do not belong to the tasks */
async function countAnswers(
  path: string,
  tasks: ReadonlyMap<string, GradableTask>,
  tasksPath: string,
): Promise<number> {
  const seen = new Set<string>();
  let count = 0;
  for await (const row of readJsonLines(path)) {
    const { id, answers } = readAnswers(path, row);
    const key = String(id);
    const refuse = (what: string): UserError => new UserError(`${path}, line ${row.line}: ${what}`);
    if (!tasks.has(key))
      throw refuse(`${tasksPath} has no task of id ${key}; a task without an id has its row's number, counted from 0`);
    if (seen.has(key)) throw refuse(`a second row of answers to task ${key}; put a task's answers into one row`);
    seen.add(key);
    count += answers.length;
  }
  return count;
}

/** An answer may stand alone, or among other text as a solver's answer does in a run; its end token may stand behind it. */
async function gradeRow(
  { id, answers }: AnswersRow,
  { task, fault }: GradableTask,
  grader: Grader,
): Promise<GradedRow> {
  const reasons = new Set(fault === null ? [] : [fault]);
  const type = taskType(task.type);
  const verdicts = await gradeEach(
    answers.map((text) => {
      const written = USUAL_SPECIAL_TOKENS.withoutEnds(text);
      return fenced.readAnswer(written, type.answer) ?? written;
    }),
    grader,
    async (answer): Promise<GradeVerdict> => {
      if (fault !== null) return 'error';
      try {
        return await type.grade(task, answer, grader);
      } catch (error) {
        if (!(error instanceof RunError)) throw error;
        reasons.add(error.message);
        return 'error';
      }
    },
    'fail',
  );
  const [reason] = reasons;
  const passes = verdicts.filter((verdict) => verdict === 'pass').length;
  const graded = verdicts.filter((verdict) => verdict !== 'error').length;
  return {
    id,
    verdicts,
    rate: graded === 0 ? null : passes / graded,
    ...(reason === undefined ? {} : { reason, sandboxFailed: fault === null }),
  };
}

function summarise(results: readonly GradedRow[]): Omit<GradeReport, 'type'> {
  const verdicts = { pass: 0, fail: 0, error: 0 };
  for (const row of results) for (const verdict of row.verdicts) verdicts[verdict] += 1;
  const rates = results.map(({ rate }) => rate).filter((rate) => rate !== null);
  const solved = rates.reduce((sum, rate) => sum + rate, 0);
  return {
    tasks: results.length,
    answers: verdicts.pass + verdicts.fail + verdicts.error,
    verdicts,
    passAt1: rates.length === 0 ? null : solved / rates.length,
    passAt1Interval: rates.length === 0 ? null : wilsonInterval(Math.round(solved), rates.length),
    results,
  };
}
