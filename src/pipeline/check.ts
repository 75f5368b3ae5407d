/** Runs the recorded tasks of a file again: the phase behind `propel check`. */
import { checkFile, type CheckFileReport } from '../domain/azr/index.js';
import { readJsonLines } from '../domain/azr/jsonl.js';
import { openSandbox, type SandboxKind } from './open-sandbox.js';
import type { ProgressFactory } from './progress.js';

export interface CheckOptions {
  readonly sandbox: SandboxKind;
  /** Programs at once; undefined: one a core. */
  readonly workers: number | undefined;
  /** Of one program, in milliseconds; undefined: the sandbox's own. */
  readonly timeoutMs: number | undefined;
  readonly progress: ProgressFactory;
}

/**
 * Every row's outcome, and whether the recorded output came out again. The whole file is read once before anything runs, so
 * that a bad row is refused at once.
 * @throws {UserError} for a file or row that is not what it should be
 * @throws {RunError} when the sandbox fails
 */
export async function checkTasks(path: string, options: CheckOptions): Promise<CheckFileReport> {
  let rows = 0;
  for await (const _ of readJsonLines(path)) rows += 1;
  const progress = options.progress('check');
  const report = await checkFile(
    path,
    () => openSandbox({ kind: options.sandbox, workers: options.workers }, options.progress),
    {
      limits: options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs },
      onRow: (done) => progress.update(done, rows),
    },
  );
  progress.done(`${report.reproduced} of ${report.rows} recorded outputs came out again`);
  return report;
}
