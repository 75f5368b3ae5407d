/** Phase 1 without a solver: labels from a file of tasks whose attempts someone has already graded. */
import { computedOutput, equalsRecorded, plainTask } from '../domain/azr/index.js';
import type { CodeTask } from '../domain/azr/index.js';
import type { Check } from '../domain/domain.js';
import { UserError } from '../errors.js';
import { openModelFiles } from '../lm/language-model.js';
import { sha256OfFile } from '../store/files.js';
import { taskId } from '../store/rows.js';
import type { AttemptRow, BatchKey, Json, LabelRow, TaskRow } from '../store/rows.js';
import { readAttempts } from './attempts-file.js';
import type { AttemptedTask } from './attempts-file.js';
import { LABELS_FROM, PHASE, summariseLabels } from './label.js';
import type { LabelSummary } from './label.js';
import { modelFolders } from './model-folders.js';
import { structureOf } from './propose.js';
import { inWorkspace } from './run.js';
import type { RunOptions, Workspace } from './workspace.js';

export interface ImportSummary extends LabelSummary {
  readonly from: { readonly file: string; readonly sha256: string };
  /** Outcome → tasks that are not valid. */
  readonly invalid: Readonly<Record<string, number>>;
  /** Valid tasks with fewer than K graded attempts. */
  readonly unlabelled: number;
}

/** A file that has been read through. */
interface Source {
  readonly path: string;
  readonly sha256: string;
  readonly rows: number;
}

/**
 * Take a run's labels from a file; every row becomes a task, in the order of the file. The whole file is read through first, so that a bad
 * row is refused before anything is written. An import that was broken off goes on where it was.
 * @throws UserError for a bad row, a file that has changed since the import began, or a run that has labels of its own
 */
export async function labelFrom(options: RunOptions, path: string): Promise<ImportSummary> {
  let rows = 0;
  for await (const _ of readAttempts(path, options.config)) rows += 1;
  const source = { path, sha256: sha256OfFile(path), rows };
  return inWorkspace(options, (workspace) => importLabels(workspace, source));
}

async function importLabels(workspace: Workspace, source: Source): Promise<ImportSummary> {
  const { store } = workspace;
  requireSameSource(workspace, source);
  if (!store.phaseFinished(PHASE, '')) {
    const progress = workspace.progress('import');
    const { tokenizer } = await openModelFiles(modelFolders(workspace.config).policy);
    const countTokens = (text: string) => tokenizer.encode(text).length;
    const earlier = new Set(store.tasks({ phase: PHASE, arm: '', valid: true }).map((row) => row.rendered!));
    const size = workspace.config.label.batch;
    let batch = store.batches(PHASE, '').length;
    const skipped = batch * size;
    let done = Math.min(skipped, source.rows);
    progress.update(done, source.rows);
    for await (const tasks of inBatches(readAttempts(source.path, workspace.config), size, skipped)) {
      workspace.checkpoint();
      await importBatch(workspace, { phase: PHASE, arm: '', batch }, tasks, earlier, countTokens);
      batch += 1;
      progress.update((done += tasks.length), source.rows);
    }
    store.finishPhase(PHASE, '', 0);
    progress.done(`${done} tasks`);
  }
  const invalid: Record<string, number> = {};
  for (const { outcome } of store.tasks({ phase: PHASE, valid: false })) invalid[outcome] = (invalid[outcome] ?? 0) + 1;
  const summary = summariseLabels(workspace);
  return {
    ...summary,
    from: { file: source.path, sha256: source.sha256 },
    invalid,
    unlabelled: summary.valid - summary.labelled,
  };
}

/** @throws UserError when the run's labels are not, or not all, of this file */
function requireSameSource({ store }: Workspace, { path, sha256 }: Source): void {
  const startOver = 'start over with --fresh, or choose another folder with --out';
  const begun = store.run()!.versions[LABELS_FROM];
  if (begun === undefined && (store.phaseFinished(PHASE, '') || store.batches(PHASE, '').length > 0))
    throw new UserError(`${store.folder} has labels of its own, which an import does not mix with; ${startOver}`);
  if (store.recordVersion(LABELS_FROM, `sha256:${sha256}`) !== `sha256:${sha256}`)
    throw new UserError(
      `${path} is not the file that ${store.folder} takes its labels from, or has changed since; ${startOver}`,
    );
}

async function* inBatches<Item>(items: AsyncIterable<Item>, size: number, skipped: number): AsyncGenerator<Item[]> {
  let batch: Item[] = [];
  let index = 0;
  for await (const item of items) {
    if (index++ < skipped) continue;
    batch.push(item);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

async function importBatch(
  workspace: Workspace,
  key: BatchKey,
  batch: readonly AttemptedTask[],
  earlier: Set<string>,
  countTokens: (text: string) => number,
): Promise<void> {
  const { config, domain, store } = workspace;
  const started = performance.now();
  const sandbox = await workspace.sandbox();
  const checks = await workspace.check(
    batch.map(({ task }) => task),
    config.domain.validity.rejectRepeats ? earlier : null,
  );
  const tasks: TaskRow[] = [];
  const attempts: AttemptRow[] = [];
  const labels: LabelRow[] = [];
  for (const [item, { task: given, recorded, verdicts }] of batch.entries()) {
    const same = (output: string, i: number): Promise<boolean> =>
      equalsRecorded(recorded[i]!, output, { sandbox, limits: config.domain.limits });
    const { task, ...check } = await comparedWithRecord(checks[item]!, given, recorded, same);
    const id = taskId(key, item);
    const completion = writtenOut(given);
    tasks.push({
      ...key,
      id,
      item,
      type: given.type,
      // What sampled them is not known.
      seed: null,
      completion,
      tokens: countTokens(completion),
      valid: check.valid,
      outcome: check.outcome,
      detail: check.detail,
      topic: check.topic,
      structure: structureOf(check.facts),
      rendered: task && domain.render(task),
      task: (task ?? given) as unknown as Json,
      output: task && computedOutput(task),
    });
    if (task === null) continue;
    for (const [attempt, verdict] of verdicts.entries())
      attempts.push({ taskId: id, attempt, seed: null, draw: null, answer: '', verdict });
    const graded = verdicts.filter((verdict) => verdict !== 'error');
    if (graded.length < config.band.of) continue;
    const passes = graded.filter((verdict) => verdict === 'pass').length;
    labels.push({ taskId: id, passes, k: config.band.of, split: 'label' });
  }
  store.commitBatch(key, (performance.now() - started) / 1000, () => {
    store.insertTasks(tasks);
    store.insertAttempts(attempts);
    store.insertLabels(labels);
  });
  for (const { valid, rendered } of tasks) if (valid) earlier.add(rendered!);
}

/** A task whose program no longer gives what was recorded, or not on those inputs, is invalid: its attempts were graded by other answers. */
async function comparedWithRecord(
  check: Check<CodeTask>,
  given: CodeTask,
  recorded: readonly string[],
  same: (output: string, index: number) => Promise<boolean>,
): Promise<Check<CodeTask>> {
  if (check.task === null) return check;
  const differs = (outcome: string, detail: string) => ({ ...check, valid: false, outcome, detail, task: null });
  const inputs = callsOf(check.task);
  if (inputs.join('\n') !== callsOf(plainTask(given)).join('\n'))
    return differs(
      'recorded_inputs_differ',
      `${recorded.length} inputs recorded, a task of the domain has ${inputs.length}`,
    );
  const computed = check.task.type === 'code_f' ? check.task.outputs! : [check.task.output!];
  const at = (await Promise.all(computed.map(same))).indexOf(false);
  if (at < 0) return check;
  const shorten = (text: string) => (text.length <= 100 ? text : `${text.slice(0, 97)}...`);
  return differs(
    'recorded_output_differs',
    `recorded ${shorten(recorded[at]!)}, came out as ${shorten(computed[at]!)}`,
  );
}

function callsOf(task: CodeTask): readonly string[] {
  return task.type === 'code_f' ? task.inputs : [task.input];
}

/** What stands for the generator's text, which is not known: the program and its calls. */
function writtenOut(task: CodeTask): string {
  return `${task.snippet}\n${callsOf(task)
    .map((input) => `>>> f(${input})\n`)
    .join('')}`;
}
