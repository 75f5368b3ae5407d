/** The run store: every task, attempt, label, step and score of one run folder. The only place that writes SQL. */
import type Database from 'better-sqlite3';
import { isAbsolute, join } from 'node:path';
import { UserError } from '../errors.js';
import { changedSettings, describeChanges, firstPhase, startOver } from './changed-settings.js';
import { checkContent, DATABASE_FILE, removeOutputs, type ReadOptions } from './database.js';
import { dropPhasesFrom, dropTrainingAfter, outputsFrom, phasesFrom } from './drop.js';
import { type Dump, dumpRows } from './dump.js';
import { openFolderToRead, openFolderToWrite, type OpenFolder } from './run-folder.js';
import type {
  AttemptRow,
  BatchKey,
  CheckpointRow,
  Json,
  KeptAnswerRow,
  LabelRow,
  MiningRow,
  Phase,
  ProbeRow,
  Run,
  SolverUsageRow,
  StepRow,
  StepScoreRow,
  TaskFilter,
  TaskRow,
} from './rows.js';
import { PHASES } from './rows.js';
import { storeError } from './sqlite-errors.js';
import { openTables, type Tables } from './tables.js';

export interface OpenOptions {
  /** Remove an old run first. */
  readonly fresh?: boolean;
}

/** A task with its label. */
export interface LabelledTask extends TaskRow {
  readonly passes: number;
  readonly k: number;
  readonly split: string;
}

/**
 * The store of one run folder. Opening it for writing locks the folder until `close`; the main thread is the only writer.
 * Methods throw `RunError` when the disk refuses (full, not writable) and `UserError` when the file is damaged.
 */
export class RunStore {
  /** The run folder. */
  readonly folder: string;
  readonly #database: Database.Database;
  readonly #tables: Tables;
  readonly #folder: OpenFolder;
  #damaged = false;

  private constructor(folder: string, opened: OpenFolder) {
    this.folder = folder;
    this.#folder = opened;
    this.#database = opened.database;
    this.#tables = openTables(opened.database);
  }

  /** Open or make a run folder for writing. Throws `RunLockedError` while another process works in it. */
  static open(folder: string, options: OpenOptions = {}): RunStore {
    return new RunStore(folder, openFolderToWrite(folder, options.fresh ?? false));
  }

  /** Open a run folder for reading only, also while a run works in it. */
  static read(folder: string, options: ReadOptions = {}): RunStore {
    return new RunStore(folder, openFolderToRead(folder, options));
  }

  /** Look at every page, index and row of a run folder's store, also while a run works in it. Throws `UserError` for what is wrong. */
  static check(folder: string): void {
    const store = RunStore.read(folder, { whole: true });
    try {
      store.#guarded(() => checkContent(store.#database));
    } finally {
      store.close();
    }
  }

  close(): void {
    this.#folder.close({ damaged: this.#damaged });
  }

  /** Close after a failure: a store that this opening has made, and in which nothing was kept, goes with these files and the folders made for it. */
  abandon(files: readonly string[] = []): void {
    this.#folder.close({ damaged: this.#damaged, discard: this.#isUnused(), files });
  }

  #isUnused(): boolean {
    try {
      const { batches, phases, keptAnswers } = this.#tables;
      return batches.count({}) + phases.count({}) + keptAnswers.count({}) === 0;
    } catch {
      // Where it cannot be read any more, nothing is removed.
      return false;
    }
  }

  /** All of `work`'s writes, or none. */
  transaction<Result>(work: () => Result): Result {
    return this.#guarded(() => this.#database.transaction(work)());
  }

  // The run, its batches and phases

  /** What the folder's run is, or null before `startRun`. */
  run(): Run | null {
    return this.#guarded(() => this.#tables.run.select()[0] ?? null);
  }

  /**
   * Write down what the run is, or go on with the one that is there; the versions kept are those that began it. Other settings take the
   * place of those that nothing came from yet.
   * @param phaseOf the first phase that reads a setting, by its dotted name
   * @throws UserError naming the settings, and the phase to start over from, when its seed or configuration is another
   */
  startRun(run: Run, phaseOf: (setting: string) => Phase = () => 'label'): void {
    const old = this.run();
    if (old === null) {
      this.#guarded(() => this.#tables.run.insert([run]));
      return;
    }
    const changed = changedSettings(old, run);
    if (changed.length === 0) return;
    const from = firstPhase(changed, phaseOf);
    if (!this.#hasWorkFrom(from)) {
      this.#replaceRun({ ...run, versions: from === 'label' ? run.versions : old.versions });
      return;
    }
    throw new UserError(
      `${this.folder} holds a run with other settings (${describeChanges(changed)}); ` +
        `give the settings it was begun with, ${from === 'label' ? 'start over with --fresh' : startOver(from)}, or choose another folder with --out`,
    );
  }

  #hasWorkFrom(phase: Phase): boolean {
    const { batches, phases } = this.#tables;
    return this.#guarded(() =>
      phasesFrom(phase).some((own) => batches.count({ phase: own }) + phases.count({ phase: own }) > 0),
    );
  }

  /** Write down a version of the run that shows only while it works, unless one is there. @returns the one that is written down. */
  recordVersion(name: string, version: string): string {
    const run = this.run()!;
    const recorded = run.versions[name];
    if (typeof recorded === 'string') return recorded;
    this.#replaceRun({ ...run, versions: { ...run.versions, [name]: version } });
    return version;
  }

  #replaceRun(run: Run): void {
    this.transaction(() => {
      this.#database.exec('DELETE FROM run');
      this.#tables.run.insert([run]);
    });
  }

  /**
   * Start over from a phase: drop its rows and files and those of the phases after it, and take the run's settings for them.
   * @param phaseOf the first phase that reads a setting, by its dotted name
   * @throws UserError naming them when settings of earlier phases differ, since their rows came from those
   */
  restartFrom(phase: Phase, run: Run, phaseOf: (setting: string) => Phase): void {
    const old = this.run();
    if (old === null) throw new UserError(`${this.folder} holds no run yet`);
    const changed = changedSettings(old, run);
    const earlier = changed.filter(({ name }) => PHASES.indexOf(phaseOf(name)) < PHASES.indexOf(phase));
    if (earlier.length > 0) {
      throw new UserError(
        `${this.folder} holds a run whose earlier phases had other settings (${describeChanges(earlier)}); ` +
          `${startOver(firstPhase(earlier, phaseOf))}, or choose another folder with --out`,
      );
    }
    this.transaction(() => {
      this.#replaceRun({ ...old, config: run.config });
      dropPhasesFrom(this.#database, phase);
    });
    removeOutputs(this.folder, outputsFrom(phase));
  }

  /**
   * Commit a batch: `write`'s rows and the mark that the batch is done, in one transaction. Throws when it is done already: batches are
   * never re-cut.
   */
  commitBatch(key: BatchKey, elapsedSeconds: number, write: () => void): void {
    this.transaction(() => {
      this.#tables.batches.insert([{ ...key, elapsedSeconds }]);
      write();
    });
  }

  hasBatch({ phase, arm, batch }: BatchKey): boolean {
    return this.#guarded(() => this.#tables.batches.count({ phase, arm, batch }) > 0);
  }

  /** Indices of the batches that are done, ascending. */
  batches(phase: Phase, arm: string): number[] {
    return this.#guarded(() => this.#tables.batches.select({ phase, arm }).map(({ batch }) => batch));
  }

  /** Mark a phase as done, with `write`'s rows. `elapsedSeconds` is the time spent outside its batches. */
  finishPhase(phase: Phase, arm: string, elapsedSeconds: number, write: () => void = () => {}): void {
    this.transaction(() => {
      this.#tables.phases.insert([{ phase, arm, elapsedSeconds }]);
      write();
    });
    // What figures come from stands in the file itself: a log that is damaged later can lose only what is done again.
    this.#guarded(() => this.#database.pragma('wal_checkpoint(TRUNCATE)'));
  }

  phaseFinished(phase: Phase, arm: string): boolean {
    return this.#guarded(() => this.#tables.phases.count({ phase, arm }) > 0);
  }

  /** Seconds that an arm's phase took, in its batches and outside them. */
  secondsOf(phase: Phase, arm: string): number {
    return this.#guarded(() =>
      [...this.#tables.batches.select({ phase, arm }), ...this.#tables.phases.select({ phase, arm })].reduce(
        (sum, { elapsedSeconds }) => sum + elapsedSeconds,
        0,
      ),
    );
  }

  // Tasks, attempts, labels

  insertTasks(rows: readonly TaskRow[]): void {
    this.#guarded(() => this.#tables.tasks.insert(rows));
  }

  /** In the order of phase, arm, batch, item. */
  tasks(filter: TaskFilter): TaskRow[] {
    return this.#guarded(() => this.#tables.tasks.select(filter));
  }

  countTasks(filter: TaskFilter): number {
    return this.#guarded(() => this.#tables.tasks.count(filter));
  }

  insertAttempts(rows: readonly AttemptRow[]): void {
    this.#guarded(() => this.#tables.attempts.insert(rows));
  }

  attempts(taskId: string): AttemptRow[] {
    return this.#guarded(() => this.#tables.attempts.select({ taskId }));
  }

  /** Solver trials: graded attempts on the tasks of a phase, of one arm or of all. */
  countTrials(phase: Phase, arm?: string): number {
    return this.#countAttempted('count(*)', "verdict <> 'error'", phase, arm);
  }

  /** Tasks of a phase, of one arm or of all, with attempts that were lost to failures. */
  countUngraded(phase: Phase, arm?: string): number {
    return this.#countAttempted('count(DISTINCT task_id)', "verdict = 'error'", phase, arm);
  }

  #countAttempted(what: string, condition: string, phase: Phase, arm: string | null = null): number {
    const sql = `SELECT ${what} FROM attempts JOIN tasks ON tasks.id = attempts.task_id
      WHERE ${condition} AND phase = ? AND (? IS NULL OR arm = ?)`;
    return this.#guarded(() => this.#database.prepare(sql).pluck().get(phase, arm, arm) as number);
  }

  insertSolverUsage(row: SolverUsageRow): void {
    this.#guarded(() => this.#tables.solverUsage.insert([row]));
  }

  /** One a batch that an endpoint was asked for, in order. */
  solverUsage(filter: { readonly phase?: Phase; readonly arm?: string } = {}): SolverUsageRow[] {
    return this.#guarded(() => this.#tables.solverUsage.select(filter));
  }

  /** Keep what an endpoint answered before the batch that asks is committed. */
  keepAnswer(row: KeptAnswerRow): void {
    this.#guarded(() => this.#tables.keptAnswers.insert([row]));
  }

  /** What is kept of a batch, in the order of question and ordinal. */
  keptAnswers({ phase, arm, batch }: BatchKey): KeptAnswerRow[] {
    return this.#guarded(() => this.#tables.keptAnswers.select({ phase, arm, batch }));
  }

  /** Drop what is kept of a batch, and of those before it. */
  dropKeptAnswers({ phase, arm, batch }: BatchKey): void {
    const sql = 'DELETE FROM kept_answers WHERE phase = ? AND arm = ? AND batch <= ?';
    this.#guarded(() => this.#database.prepare(sql).run(phase, arm, batch));
  }

  /** Drop what is kept of one batch. */
  dropKeptAnswersOf({ phase, arm, batch }: BatchKey): void {
    const sql = 'DELETE FROM kept_answers WHERE phase = ? AND arm = ? AND batch = ?';
    this.#guarded(() => this.#database.prepare(sql).run(phase, arm, batch));
  }

  insertLabels(rows: readonly LabelRow[]): void {
    this.#guarded(() => this.#tables.labels.insert(rows));
  }

  /** Tasks that have a label, in the order of `tasks`. */
  labelledTasks(filter: TaskFilter & { readonly split?: string }): LabelledTask[] {
    const { split, ...taskFilter } = filter;
    return this.#guarded(() => {
      const labels = new Map(this.#tables.labels.select({ split }).map((label) => [label.taskId, label]));
      return this.#tables.tasks.select(taskFilter).flatMap((task) => {
        const label = labels.get(task.id);
        return label === undefined ? [] : [{ ...task, passes: label.passes, k: label.k, split: label.split }];
      });
    });
  }

  // Probes

  /** Insert a probe, or replace the one of that name. */
  saveProbe(row: ProbeRow): void {
    requireRelative(row.path);
    this.#guarded(() => this.#tables.probes.put(row));
  }

  probes(): ProbeRow[] {
    return this.#guarded(() => this.#tables.probes.select());
  }

  // Reinforcement learning

  insertStep(row: StepRow): void {
    this.#guarded(() => this.#tables.steps.insert([row]));
  }

  /** Ascending by step; of every arm without one. */
  steps(arm?: string): StepRow[] {
    return this.#guarded(() => this.#tables.steps.select({ arm }));
  }

  insertStepScores(rows: readonly StepScoreRow[]): void {
    this.#guarded(() => this.#tables.stepScores.insert(rows));
  }

  stepScores(arm: string, step?: number): StepScoreRow[] {
    return this.#guarded(() => this.#tables.stepScores.select({ arm, step }));
  }

  /** Name a checkpoint whose file is already whole on disk. */
  insertCheckpoint(row: CheckpointRow): void {
    requireRelative(row.path);
    this.#guarded(() => this.#tables.checkpoints.insert([row]));
  }

  /** An arm's checkpoints, ascending by step. */
  checkpoints(arm: string): CheckpointRow[] {
    return this.#guarded(() => this.#tables.checkpoints.select({ arm }));
  }

  /** The latest checkpoint of an arm, or null. */
  lastCheckpoint(arm: string): CheckpointRow | null {
    return this.checkpoints(arm).at(-1) ?? null;
  }

  /** Name an auxiliary probe whose file is already whole on disk, with what was mined for it. */
  insertMining(row: MiningRow): void {
    requireRelative(row.path);
    this.#guarded(() => this.#tables.minings.insert([row]));
  }

  /** Ascending by step. */
  minings(arm: string): MiningRow[] {
    return this.#guarded(() => this.#tables.minings.select({ arm }));
  }

  /**
   * Drop what an arm's training wrote beyond `step`, the last that its checkpoint holds (0: everything): tasks with their attempts,
   * labels and scores, steps, minings with their attempts and labels, checkpoints, marks of batches and of the phase. Kept answers stay:
   * the steps may come to ask the same again.
   */
  truncateAfter(arm: string, step: number): void {
    this.transaction(() => dropTrainingAfter(this.#database, arm, step));
  }

  // Evaluations

  /** Insert what was measured of an arm, timings left out, or replace it. */
  saveEvaluation(arm: string, measured: Json): void {
    this.#guarded(() => this.#tables.evaluations.put({ arm, measured }));
  }

  /** Arm → what was measured. */
  evaluations(): Map<string, Json> {
    return this.#guarded(() => new Map(this.#tables.evaluations.select().map(({ arm, measured }) => [arm, measured])));
  }

  /** All rows without timings, in an order that does not depend on how they were written: equal for equal runs. */
  dumpRows(): Dump {
    return this.#guarded(() => dumpRows(this.#database));
  }

  #guarded<Result>(work: () => Result): Result {
    try {
      return work();
    } catch (error) {
      const told = storeError(error, join(this.folder, DATABASE_FILE));
      if (told instanceof UserError) this.#damaged = true;
      throw told;
    }
  }
}

function requireRelative(path: string): void {
  if (isAbsolute(path))
    throw new RangeError(`a stored path must be relative to the run folder, so that it can be moved: ${path}`);
}
