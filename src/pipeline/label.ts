/** Phase 1, label: the untrained generator writes tasks, the solver attempts each valid one K times. */
import { RunError, UserError } from '../errors.js';
import { inBand } from '../metrics/frontier.js';
import { wilsonInterval } from '../metrics/interval.js';
import { count, percent } from '../report/format.js';
import { attemptTasks, insertAttempted } from './attempts.js';
import { describeOutcomes } from './invalid-outcomes.js';
import { ungradedNote } from './progress.js';
import { propose } from './propose.js';
import { accountOf } from './solver-account.js';
import type { SolverAccount } from './solver-account.js';
import type { Workspace } from './workspace.js';

/** What the labels came to; part of `propel label --json`. */
export interface LabelSummary {
  readonly generations: number;
  readonly valid: number;
  readonly labelled: number;
  /** Valid tasks that lost attempts to failures of solver or sandbox, and so have no label. */
  readonly ungraded: number;
  readonly inBand: number;
  /** In band / labelled, with its Wilson 95% interval. */
  readonly bandRate: number;
  readonly bandInterval: readonly [number, number];
  readonly solverTrials: number;
  /** What a solver behind an endpoint used; null for a local one. */
  readonly solverAccount: SolverAccount | null;
  readonly seconds: number;
}

export const PHASE = 'label';
/** Among a run's versions: the file that its labels are imported from. */
export const LABELS_FROM = 'labelsFrom';

/**
 * Gather labels until there are `label.tasks`, batch by batch.
 * @throws RunError when `label.maxGenerations` did not give enough, or will not by all that the first ones say; it tells what was written instead
 */
export async function label(workspace: Workspace): Promise<LabelSummary> {
  const { config, store } = workspace;
  if (!store.phaseFinished(PHASE, '')) {
    if (store.run()!.versions[LABELS_FROM] !== undefined)
      throw new UserError(
        `${store.folder} is taking its labels from a file: go on with 'propel label --from', or start over with --fresh`,
      );
    const progress = workspace.progress('label');
    const earlier = new Set(store.tasks({ phase: PHASE, arm: '', valid: true }).map((row) => row.rendered!));
    let labelled = store.labelledTasks({ phase: PHASE }).length;
    progress.update(Math.min(labelled, config.label.tasks), config.label.tasks);
    // An endpoint that does not answer is told before any work.
    await workspace.solver();
    for (let batch = store.batches(PHASE, '').length; labelled < config.label.tasks; batch++) {
      workspace.checkpoint();
      requireReach(workspace, batch * config.label.batch, labelled);
      const started = performance.now();
      const key = { phase: PHASE, arm: '', batch } as const;
      const proposals = await propose(workspace, {
        key,
        policy: await workspace.policy(),
        size: config.label.batch,
        adapter: null,
        temperature: config.policy.temperature,
        earlier: config.domain.validity.rejectRepeats ? earlier : null,
      });
      const valid = proposals.flatMap(({ row, task }) => (task ? [{ id: row.id, task }] : []));
      // A local solver attempts whole batches; each answer of an endpoint has a price.
      const tasks = config.solver.endpoint === null ? valid : spread(valid, config.label.tasks - labelled);
      const attempted = await attemptTasks(workspace, tasks, {
        key,
        purpose: 'attempt label',
        index: batch,
        split: 'label',
      });
      store.commitBatch(key, (performance.now() - started) / 1000, () => {
        store.insertTasks(proposals.map(({ row }) => row));
        insertAttempted(store, key, attempted);
      });
      for (const { row } of proposals) if (row.valid) earlier.add(row.rendered!);
      labelled += attempted.labels.length;
      progress.update(
        Math.min(labelled, config.label.tasks),
        config.label.tasks,
        `${valid.length} of ${proposals.length} valid`,
      );
    }
    store.finishPhase(PHASE, '', 0);
    progress.done(`${labelled} labelled tasks${ungradedNote(store.countUngraded(PHASE))}`);
  }
  return summariseLabels(workspace);
}

/** How far labelling is. */
export interface Gathered {
  readonly generations: number;
  readonly valid: number;
  readonly labelled: number;
}

/**
 * The labels that the generations left would give in all if validity were the upper end of its Wilson 95% interval: where these are too few,
 * more generations are wasted.
 */
export function labelsInReach({ generations, valid, labelled }: Gathered, maxGenerations: number): number {
  const [, validity] = wilsonInterval(valid, generations);
  return labelled + validity * Math.max(0, maxGenerations - generations);
}

/** @throws RunError when there will not be enough labels */
function requireReach({ config, store }: Workspace, generations: number, labelled: number): void {
  const { tasks, maxGenerations, giveUpAfter } = config.label;
  const isSpent = generations >= maxGenerations;
  if (!isSpent && generations < giveUpAfter) return;
  const valid = store.countTasks({ phase: PHASE, valid: true });
  if (!isSpent && labelsInReach({ generations, valid, labelled }, maxGenerations) >= tasks) return;
  const [, upper] = wilsonInterval(valid, generations);
  const why = isSpent
    ? ''
    : `, ${valid} valid (at most ${percent(upper)}, 95%), too few for label.maxGenerations = ${count(maxGenerations)} to be enough`;
  throw new RunError(
    `${count(generations)} generations gave ${count(labelled)} labels of ${count(tasks)}${why}: mend what is told below, ` +
      'or raise label.maxGenerations or lower label.tasks, and start over with --fresh',
    { details: describeOutcomes(store.tasks({ phase: PHASE })) },
  );
}

/** Up to `wanted` of them, spread evenly: the kinds of a batch stand one after another, and all have their share. */
export function spread<Item>(items: readonly Item[], wanted: number): Item[] {
  if (wanted >= items.length) return [...items];
  return Array.from({ length: wanted }, (_, i) => items[Math.floor((i * items.length) / wanted)]!);
}

export function summariseLabels({ config, store }: Workspace): LabelSummary {
  const labelled = store.labelledTasks({ phase: PHASE });
  const band = labelled.filter(({ passes }) => inBand(passes, config.band)).length;
  return {
    generations: store.countTasks({ phase: PHASE }),
    valid: store.countTasks({ phase: PHASE, valid: true }),
    labelled: labelled.length,
    ungraded: store.countUngraded(PHASE),
    inBand: band,
    bandRate: labelled.length ? band / labelled.length : 0,
    bandInterval: wilsonInterval(band, labelled.length),
    solverTrials: store.countTrials(PHASE),
    solverAccount: accountOf({ config, store }, PHASE),
    seconds: store.secondsOf(PHASE, ''),
  };
}
