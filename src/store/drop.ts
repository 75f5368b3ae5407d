/** Dropping what phases, or a part of an arm's training, have written: the rows, and which files went with them. */
import type Database from 'better-sqlite3';
import { type Phase, PHASES } from './rows.js';

/** Tables that hold nothing but a phase's rows. */
const TABLES_OF: Readonly<Record<Phase, readonly string[]>> = {
  label: [],
  'train-probe': ['probes'],
  'train-generator': ['steps', 'checkpoints', 'minings'],
  evaluate: ['evaluations'],
};

/** What a phase leaves in the run folder beside its rows. */
const FILES_OF = {
  label: [],
  'train-probe': ['probes'],
  'train-generator': ['checkpoints'],
  evaluate: ['results.json', 'report.html'],
} as const satisfies Readonly<Record<Phase, readonly string[]>>;

/** A phase and those after it. */
export const phasesFrom = (phase: Phase): readonly Phase[] => PHASES.slice(PHASES.indexOf(phase));

/** Files and folders of a phase and those after it. */
export function outputsFrom(phase: Phase): (typeof FILES_OF)[Phase][number][] {
  return phasesFrom(phase).flatMap((dropped) => FILES_OF[dropped]);
}

/** Within a transaction: the rows of a phase and those after it. */
export function dropPhasesFrom(database: Database.Database, phase: Phase): void {
  for (const dropped of phasesFrom(phase)) {
    for (const table of ['tasks', 'batches', 'phases', 'solver_usage', 'kept_answers']) {
      database.prepare(`DELETE FROM ${table} WHERE phase = ?`).run(dropped);
    }
    for (const table of TABLES_OF[dropped]) database.exec(`DELETE FROM ${table}`);
  }
}

/** Within a transaction: what an arm's training wrote beyond a step. */
export function dropTrainingAfter(database: Database.Database, arm: string, step: number): void {
  const phase: Phase = 'train-generator';
  const run = (sql: string): void => void database.prepare(sql).run({ arm, step, phase });
  run('DELETE FROM tasks WHERE phase = @phase AND arm = @arm AND batch > @step');
  run('DELETE FROM solver_usage WHERE phase = @phase AND arm = @arm AND batch > @step');
  run('DELETE FROM steps WHERE arm = @arm AND step > @step');
  run('DELETE FROM checkpoints WHERE arm = @arm AND step > @step');
  run('DELETE FROM minings WHERE arm = @arm AND step > @step');
  // A mining takes tasks of the steps since the one before: what no mining is left for was mined beyond the step.
  const unmined = `SELECT id FROM tasks JOIN labels ON labels.task_id = tasks.id
    WHERE phase = @phase AND arm = @arm AND split = 'mined'
      AND batch > (SELECT coalesce(max(step), 0) FROM minings WHERE arm = @arm)`;
  run(`DELETE FROM attempts WHERE task_id IN (${unmined})`);
  run(`DELETE FROM labels WHERE task_id IN (${unmined})`);
  const dropped = database
    .prepare('DELETE FROM batches WHERE phase = @phase AND arm = @arm AND batch > @step')
    .run({ arm, step, phase }).changes;
  if (dropped > 0) run('DELETE FROM phases WHERE phase = @phase AND arm = @arm');
}
