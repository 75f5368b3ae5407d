/** How far edits of a task's text that leave its answer as it was move a probe's logit. */
import { bootstrap, type BootstrapResult } from './bootstrap.js';
import { largest, smallest } from './extremes.js';
import { wilsonInterval, type Interval } from './interval.js';
import type { Estimate } from './coverage.js';

/** What a search over the edits of one task found; logits are those that the reward counts in: (ℓ − mean)/sd over the labels. */
export interface EditedTask {
  readonly before: number;
  /** The highest that an edited text got; `before` where none got higher. */
  readonly highest: number;
  /** Every edit of the task's own text. */
  readonly edits: readonly { readonly kind: string; readonly after: number | null }[];
}

export interface EditMoves {
  /** Held-out tasks, and the edits of each at most. */
  readonly tasks: number;
  readonly perTask: number;
  /** Mean over the tasks of the most that the standardised logit rose; 95% percentile bootstrap. */
  readonly rise: Estimate;
  /** Of the tasks that the probe has below even odds of the band, those that an edit brought above. */
  readonly lifted: { readonly count: number; readonly of: number; readonly interval: Interval };
  /** Of one edit of each kind: how many of those tried are valid tasks with the same answer, and their moves, up or down. */
  readonly kinds: readonly {
    readonly kind: string;
    readonly tried: number;
    readonly kept: number;
    /** Null where none was kept. */
    readonly mean: number | null;
    readonly least: number | null;
    readonly most: number | null;
  }[];
}

/**
 * @param even the standardised logit of even odds
 * @param kinds in the order in which they are to stand
 */
export function editMoves(
  tasks: readonly EditedTask[],
  options: {
    readonly even: number;
    readonly perTask: number;
    readonly kinds: readonly string[];
    readonly seed: number;
  },
): EditMoves {
  const { even, perTask, kinds, seed } = options;
  const rises = tasks.map(({ before, highest }) => highest - before);
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const { estimate: value, interval }: BootstrapResult = bootstrap(
    tasks.length,
    (indices) => mean(Array.from(indices, (i) => rises[i]!)),
    { seed, resamples: 1000 },
  );
  const below = tasks.filter(({ before }) => before <= even);
  const count = below.filter(({ highest }) => highest > even).length;
  return {
    tasks: tasks.length,
    perTask,
    rise: { value, interval },
    lifted: { count, of: below.length, interval: wilsonInterval(count, below.length) },
    kinds: kinds.map((kind) => {
      const tried = tasks.flatMap(({ before, edits }) =>
        edits.filter((edit) => edit.kind === kind).map(({ after }) => (after === null ? null : after - before)),
      );
      const moves = tried.filter((move) => move !== null);
      const none = moves.length === 0;
      return {
        kind,
        tried: tried.length,
        kept: moves.length,
        mean: none ? null : mean(moves),
        least: none ? null : smallest(moves),
        most: none ? null : largest(moves),
      };
    }),
  };
}
