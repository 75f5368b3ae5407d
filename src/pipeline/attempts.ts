/** The solver's K attempts at valid tasks, graded: the rows of attempts and labels. */
import { mapBounded, type CodeTask } from '../domain/azr/index.js';
import { RunError } from '../errors.js';
import { deriveSeed } from '../metrics/random.js';
import type { Attempt, Solver } from '../solver/solver.js';
import { UsageMeter, type SolverUsage } from '../solver/usage.js';
import type { AttemptRow, BatchKey, LabelRow } from '../store/rows.js';
import type { RunStore } from '../store/store.js';
import type { Workspace } from './workspace.js';

export interface Attempted {
  readonly attempts: AttemptRow[];
  /** Only tasks whose K attempts were all graded. */
  readonly labels: LabelRow[];
  /** What a solver behind an endpoint used. */
  readonly usage: SolverUsage;
}

/** `purpose` and `index` name the stream of randomness; `split` is what the labels are for. */
export async function attemptTasks(
  workspace: Workspace,
  tasks: readonly { readonly id: string; readonly task: CodeTask }[],
  purpose: string,
  index: number,
  split: string,
): Promise<Attempted> {
  const meter = new UsageMeter();
  if (!tasks.length) return { attempts: [], labels: [], usage: meter.total };
  const { config, domain } = workspace;
  const k = config.band.of;
  const seed = deriveSeed(config.seed, purpose, index);
  const [solver, sandbox] = [await workspace.solver(), await workspace.sandbox()];
  const questions = tasks.map(({ task }) => domain.question(task));
  const ask = (some: readonly string[]) => solver.attempt(some, k, seed, meter);
  const answers = await askAgainForLost(ask, questions, await ask(questions));
  const graded = await mapBounded(tasks, sandbox.size, async ({ id, task }, i) => {
    const answered = answers[i]!.filter(({ status }) => status === 'answered').map(({ answer }) => answer);
    const verdicts = (await domain.grade(task, answered, sandbox)).values();
    return answers[i]!.map(({ answer, status }, attempt): AttemptRow => {
      const verdict = status === 'error' ? 'error' : status === 'cut_off' ? 'fail' : verdicts.next().value!;
      return { taskId: id, attempt, seed, answer, verdict };
    });
  });
  const labels = graded.flatMap((own, i): LabelRow[] => {
    if (own.some(({ verdict }) => verdict === 'error')) return [];
    return [{ taskId: tasks[i]!.id, passes: own.filter(({ verdict }) => verdict === 'pass').length, k, split }];
  });
  return { attempts: graded.flat(), labels, usage: meter.total };
}

/** The rows of a batch's attempts, for its transaction. */
export function insertAttempted(store: RunStore, key: BatchKey, { attempts, labels, usage }: Attempted): void {
  store.insertAttempts(attempts);
  store.insertLabels(labels);
  if (usage.requests > 0) store.insertSolverUsage({ ...key, ...usage });
}

/** One more try of the questions that lost attempts to the infrastructure; what was answered the first time stands. */
async function askAgainForLost(
  ask: (questions: readonly string[]) => ReturnType<Solver['attempt']>,
  questions: readonly string[],
  attempts: readonly (readonly Attempt[])[],
): Promise<readonly (readonly Attempt[])[]> {
  const lost = attempts.flatMap((own, i) => (own.some(({ status }) => status === 'error') ? [i] : []));
  if (!lost.length) return attempts;
  let again: Awaited<ReturnType<typeof ask>>;
  try {
    again = await ask(lost.map((i) => questions[i]!));
  } catch (error) {
    // None of them could be had: the others of the batch are kept all the same.
    if (error instanceof RunError) return attempts;
    throw error;
  }
  const second = new Map(lost.map((question, i) => [question, again[i]!]));
  return attempts.map((own, i) => own.map((attempt, j) => (attempt.status === 'error' ? second.get(i)![j]! : attempt)));
}
