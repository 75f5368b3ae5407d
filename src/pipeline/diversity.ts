/** Diversity and per-type results of each arm's evaluation, from the store's rows. */
import type { CodeTask } from '../domain/azr/index.js';
import { countsOf, rarefy } from '../metrics/coverage.js';
import { largest, smallest } from '../metrics/extremes.js';
import { type Band, type Generation, type RateSummary, summariseRates } from '../metrics/frontier.js';
import { duplicateShares, novelty, TaskIndex, type TaskText } from '../metrics/near-duplicates.js';
import { meanStructure, structuralCoverage } from '../metrics/structure.js';
import type { ArmDiversity } from '../report/results.js';
import type { TaskRow } from '../store/rows.js';
import type { RunStore } from '../store/store.js';

/**
 * What the generator wrote, as text: a task's program and its (first) call as Python source, whatever the notation; the completion where
 * there is no task. Repeats and diversity are counted on it.
 */
export function taskText(row: Pick<TaskRow, 'type' | 'task' | 'completion'>): TaskText {
  const task = row.task as unknown as CodeTask | null;
  if (task === null) return { type: row.type, text: row.completion };
  const call = task.type === 'code_f' ? task.inputs[0] : task.input;
  return { type: row.type, text: `${task.snippet}\n>>> f(${call})\n` };
}

/** Arms' diversity, measured so that the arms compare: see `ArmDiversity.texts`. In the order of `arms`. */
export function armDiversities(store: RunStore, arms: readonly string[]): ArmDiversity[] {
  const labelled = store.labelledTasks({ phase: 'label', arm: '' });
  const known = labelled.length === 0 ? null : new TaskIndex(labelled.map(taskText));
  const valid = arms.map((arm) => store.tasks({ phase: 'evaluate', arm, valid: true }));
  const texts = commonNumber(valid.map((rows) => rows.length));
  return valid.map((rows) => {
    const written = rows.map(taskText);
    const structures = rows.flatMap(({ structure }) => (structure === null ? [] : [structure]));
    return {
      texts: Math.min(texts, rows.length),
      duplicates: duplicateShares(written.slice(0, texts)),
      novelty: known && novelty(written, known),
      effectiveTopics: rarefy(countsOf(rows.map(({ topic }) => topic)), rows.length)?.effective ?? null,
      coverage: structuralCoverage(structures, Math.min(texts, structures.length)),
      structure: meanStructure(structures),
    };
  });
}

/** As many as the smallest set has that is not empty: an arm without a valid task leaves the others to be compared. */
function commonNumber(numbers: readonly number[]): number {
  return Math.min(smallest(numbers.filter((number) => number > 0)), largest(numbers));
}

/** Rates of the generations of each type, types in the order given. */
export function ratesByType(
  generations: readonly Generation[],
  types: readonly string[],
  band: Band,
): Record<string, RateSummary> {
  return Object.fromEntries(
    types.map((type) => [
      type,
      summariseRates(
        generations.filter((generation) => generation.type === type),
        band,
      ),
    ]),
  );
}
