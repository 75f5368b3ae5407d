/** An adversarial search, on a probe's held-out tasks, over edits of a task's text that leave its answer as it was. */
import { computedOutput } from '../domain/azr/index.js';
import type { CodeTask } from '../domain/azr/index.js';
import { deriveSeed } from '../metrics/random.js';
import { editMoves, type EditedTask, type EditMoves } from '../metrics/edit-moves.js';
import { scoreTexts, type Probe } from '../probe/probe.js';
import type { Workspace } from './workspace.js';

/** Edits of a task's own text, and then of the highest that these found. */
const PER_ROUND = 14;
const ROUNDS = 2;

interface Searched {
  readonly first: CodeTask;
  /** The highest so far. */
  task: CodeTask;
  logit: number;
  readonly before: number;
  readonly edits: { readonly kind: string; readonly after: number | null }[];
}

/**
 * Greedy: every task takes the edit that raises the probe's logit most, and what it has become is edited again. An edit counts where the
 * sandbox finds the edited task valid and its answer the same.
 * @param tasks checked ones, none of which the probe was fitted to
 */
export async function searchEdits(
  workspace: Workspace,
  probe: Probe,
  tasks: readonly CodeTask[],
  seed: number,
): Promise<EditMoves> {
  const { domain } = workspace;
  const { mean, sd } = probe.scale;
  const reference = await workspace.reference();
  const score = async (rendered: readonly CodeTask[]): Promise<number[]> => {
    const [logits] = await scoreTexts(
      reference,
      [probe],
      rendered.map((task) => domain.render(task)),
    );
    return Array.from(logits!, (logit) => (logit - mean) / sd);
  };
  const own = await score(tasks);
  const searched = tasks.map((task, i): Searched => ({
    first: task,
    task,
    logit: own[i]!,
    before: own[i]!,
    edits: [],
  }));

  for (let round = 0; round < ROUNDS; round++) {
    workspace.checkpoint();
    const edited = searched.flatMap((of, i) =>
      domain.idleEdits(of.task, PER_ROUND, deriveSeed(seed, `edits ${round}`, i)).map((edit) => ({ of, ...edit })),
    );
    const checks = await workspace.check(
      edited.map(({ task }) => task),
      null,
    );
    const kept = edited.flatMap(({ of, kind }, i) => {
      const { task } = checks[i]!;
      const isSame = task !== null && computedOutput(task) === computedOutput(of.first);
      if (!isSame && round === 0) of.edits.push({ kind, after: null });
      return isSame ? [{ of, kind, task }] : [];
    });
    const logits = await score(kept.map(({ task }) => task));
    for (const [i, { of, kind, task }] of kept.entries()) {
      const after = logits[i]!;
      if (round === 0) of.edits.push({ kind, after });
      if (after > of.logit) Object.assign(of, { task, logit: after });
    }
  }
  const results = searched.map(({ before, logit, edits }): EditedTask => ({ before, highest: logit, edits }));
  const kinds = [...new Set(results.flatMap(({ edits }) => edits.map(({ kind }) => kind)))].sort();
  return editMoves(results, { even: (0 - mean) / sd, perTask: PER_ROUND * ROUNDS, kinds, seed });
}
