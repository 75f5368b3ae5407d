/** Grades answers from a file: the phase behind `propel grade`. */
import { gradeFile, type GradeReport, type GradeType } from '../domain/azr/index.js';
import { openSandbox, type SandboxKind } from './open-sandbox.js';
import type { ProgressFactory } from './progress.js';

export interface GradeOptions {
  readonly type: GradeType;
  readonly tasks: string;
  readonly answers: string;
  /** Of code_f, inputs that the solver was shown; undefined: half of them. */
  readonly shown: number | undefined;
  readonly sandbox: SandboxKind;
  /** Programs at once; undefined: one a core. */
  readonly workers: number | undefined;
  /** Of one program, in milliseconds; undefined: the sandbox's own. */
  readonly timeoutMs: number | undefined;
  readonly progress: ProgressFactory;
}

/**
 * A verdict an answer. What fails for the sandbox is an `error`.
 * @throws {UserError} for a file or row that is not what it should be
 * @throws {RunError} when the sandbox does not start
 */
export async function gradeAnswers(options: GradeOptions): Promise<GradeReport> {
  const { type, shown, sandbox, workers, timeoutMs } = options;
  const progress = options.progress('grade');
  const limits = timeoutMs === undefined ? {} : { timeoutMs };
  const report = await gradeFile(
    options.tasks,
    options.answers,
    () => openSandbox({ kind: sandbox, workers, limits }, options.progress),
    { type, shown: shown ?? null, limits, onProgress: (done, answers) => progress.update(done, answers) },
  );
  progress.done(`${report.verdicts.pass} of ${report.answers} answers pass`);
  return report;
}
