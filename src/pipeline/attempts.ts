/** The solver's K attempts at valid tasks, graded: the rows of attempts and labels. */
import { mapBounded, type CodeTask } from '../domain/azr/index.js';
import { deriveSeed } from '../metrics/random.js';
import type { Attempt, Solver } from '../solver/solver.js';
import type { AttemptRow, LabelRow } from '../store/rows.js';
import type { Workspace } from './workspace.js';

export interface Attempted {
  readonly attempts: AttemptRow[];
  /** Only tasks whose K attempts were all graded. */
  readonly labels: LabelRow[];
}

/** `purpose` and `index` name the stream of randomness; `split` is what the labels are for. */
export async function attemptTasks(
  workspace: Workspace,
  tasks: readonly { readonly id: string; readonly task: CodeTask }[],
  purpose: string,
  index: number,
  split: string,
): Promise<Attempted> {
  if (!tasks.length) return { attempts: [], labels: [] };
  const { config, domain } = workspace;
  const k = config.band.of;
  const seed = deriveSeed(config.seed, purpose, index);
  const [solver, sandbox] = [await workspace.solver(), await workspace.sandbox()];
  const questions = tasks.map(({ task }) => domain.question(task));
  const answers = await askAgainForLost(solver, questions, k, seed, await solver.attempt(questions, k, seed));
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
  return { attempts: graded.flat(), labels };
}

/** One more try of the questions that lost attempts to the infrastructure; what was answered the first time stands. */
async function askAgainForLost(
  solver: Solver,
  questions: readonly string[],
  k: number,
  seed: number,
  attempts: readonly (readonly Attempt[])[],
): Promise<readonly (readonly Attempt[])[]> {
  const lost = attempts.flatMap((own, i) => (own.some(({ status }) => status === 'error') ? [i] : []));
  if (!lost.length) return attempts;
  const again = await solver.attempt(
    lost.map((i) => questions[i]!),
    k,
    seed,
  );
  const second = new Map(lost.map((question, i) => [question, again[i]!]));
  return attempts.map((own, i) => own.map((attempt, j) => (attempt.status === 'error' ? second.get(i)![j]! : attempt)));
}
