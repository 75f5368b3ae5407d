/** The solver's K attempts at valid tasks, graded: the rows of attempts and labels. */
import { mapBounded, type CodeTask } from '../domain/azr/index.js';
import { deriveSeed } from '../metrics/random.js';
import { NoAnswers } from '../solver/answer-watch.js';
import type { DrawnAttempt } from '../solver/solver.js';
import { UsageMeter, type SolverUsage } from '../solver/usage.js';
import type { AttemptRow, BatchKey, LabelRow } from '../store/rows.js';
import type { RunStore } from '../store/store.js';
import { KeptAnswers } from './kept-answers.js';
import type { AskedBatch } from './kept-answers.js';
import type { Progress } from './progress.js';
import type { Workspace } from './workspace.js';

export interface Attempted {
  readonly attempts: AttemptRow[];
  /** Only tasks whose K attempts were all graded. */
  readonly labels: LabelRow[];
  /** What a solver behind an endpoint used. */
  readonly usage: SolverUsage;
}

export interface AttemptsFor {
  /** The batch that commits them. */
  readonly key: BatchKey;
  /** With `index` the name of the stream of randomness. */
  readonly purpose: string;
  readonly index: number;
  /** What the labels are for. */
  readonly split: string;
}

/** @throws RunError when a solver behind an endpoint answers nothing; what it did answer is kept for the next start. */
export async function attemptTasks(
  workspace: Workspace,
  tasks: readonly { readonly id: string; readonly task: CodeTask }[],
  { key, purpose, index, split }: AttemptsFor,
): Promise<Attempted> {
  if (!tasks.length) return { attempts: [], labels: [], usage: new UsageMeter().total };
  const { config, domain } = workspace;
  const k = config.band.of;
  const seed = deriveSeed(config.seed, purpose, index);
  const questions = tasks.map(({ task }) => domain.question(task));
  const { answers, usage } = await ask(workspace, { key, questions, k, seed });
  const sandbox = await workspace.sandbox();
  const graded = await mapBounded(tasks, sandbox.size, async ({ id, task }, i) => {
    const answered = answers[i]!.filter(({ status }) => status === 'answered').map(({ answer }) => answer);
    const verdicts = (await domain.grade(task, answered, sandbox)).values();
    return answers[i]!.map(({ answer, status, seed: drawnBy, draw }, attempt): AttemptRow => {
      const verdict = status === 'error' ? 'error' : status === 'answered' ? verdicts.next().value! : 'fail';
      return { taskId: id, attempt, seed: drawnBy, draw, answer, verdict };
    });
  });
  const labels = graded.flatMap((own, i): LabelRow[] => {
    if (own.some(({ verdict }) => verdict === 'error')) return [];
    return [{ taskId: tasks[i]!.id, passes: own.filter(({ verdict }) => verdict === 'pass').length, k, split }];
  });
  return { attempts: graded.flat(), labels, usage };
}

/** The rows of a batch's attempts, for its transaction. */
export function insertAttempted(store: RunStore, key: BatchKey, { attempts, labels, usage }: Attempted): void {
  store.insertAttempts(attempts);
  store.insertLabels(labels);
  if (usage.requests > 0) store.insertSolverUsage({ ...key, ...usage });
  // Training goes back to its last checkpoint, and asks again what came after it.
  if (key.phase !== 'train-generator') store.dropKeptAnswers(key);
}

/**
 * A batch's answers. The questions that the solver failed at while it answered others are asked once more; what was answered the first time
 * stands. A solver that is away leaves the batch open.
 */
async function ask(
  workspace: Workspace,
  batch: AskedBatch,
): Promise<{ readonly answers: readonly (readonly DrawnAttempt[])[]; readonly usage: SolverUsage }> {
  const { questions, k, seed } = batch;
  const { config, store } = workspace;
  const meter = new UsageMeter();
  const kept = config.solver.endpoint === null ? null : new KeptAnswers(store, config.solver, batch);
  if (kept) meter.add(kept.usage);
  const solver = await workspace.solver();
  let progress: Progress | null = null;
  const attempt = async (places: readonly number[], stream: number): Promise<DrawnAttempt[][]> => {
    const asked = places.map((place) => questions[place]!);
    try {
      return await solver.attempt(asked, k, stream, {
        meter,
        ...(kept && { keeper: kept.keeperOf(places) }),
        onProgress: (done, note) => (progress ??= workspace.progress('solver')).update(done, places.length, note),
      });
    } catch (error) {
      // Once its server is mended the batch is asked anew.
      if (error instanceof NoAnswers) store.dropKeptAnswersOf(batch.key);
      throw error;
    }
  };

  const first = await attempt([...questions.keys()], seed);
  const lost = first.flatMap((own, place) => (own.some(({ status }) => status === 'error') ? [place] : []));
  if (!lost.length) return { answers: first, usage: meter.total };
  const second = await attempt(lost, deriveSeed(seed, 'again', 0));
  const again = new Map(lost.map((place, i) => [place, second[i]]));
  const answers = first.map((own, place) =>
    own.map((attempted, j) => (attempted.status === 'error' ? (again.get(place)?.[j] ?? attempted) : attempted)),
  );
  return { answers, usage: meter.total };
}
