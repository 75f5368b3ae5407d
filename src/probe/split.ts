/** Seeded splits of labelled tasks, stratified by "in band". */
import { seededRandom } from '../metrics/random.js';

export type Part = 'train' | 'validation' | 'test';

/** Shares of all tasks; the rest trains. */
export interface SplitShares {
  readonly validation: number;
  readonly test: number;
}

/** The part of each task; every part gets its share of the tasks in band and of the others, at least one of each. */
export function splitTasks(inBand: readonly boolean[], shares: SplitShares, seed: number): Part[] {
  const random = seededRandom(seed);
  const parts: Part[] = inBand.map(() => 'train');
  for (const members of strata(inBand)) {
    shuffle(members, random);
    const test = Math.max(1, Math.round(members.length * shares.test));
    const validation = Math.max(1, Math.round(members.length * shares.validation));
    members.slice(0, test).forEach((row) => (parts[row] = 'test'));
    members.slice(test, test + validation).forEach((row) => (parts[row] = 'validation'));
  }
  return parts;
}

/** The fold of each task, 0 to `folds` − 1, of nearly equal sizes. */
export function assignFolds(inBand: readonly boolean[], folds: number, seed: number): number[] {
  const random = seededRandom(seed);
  const assigned = inBand.map(() => 0);
  let next = 0;
  for (const members of strata(inBand)) {
    shuffle(members, random);
    for (const row of members) assigned[row] = next++ % folds;
  }
  return assigned;
}

/** As many rows, drawn with replacement. */
export function resample(rows: readonly number[], seed: number): number[] {
  const random = seededRandom(seed);
  return rows.map(() => rows[Math.floor(random() * rows.length)]!);
}

function strata(inBand: readonly boolean[]): [number[], number[]] {
  const rows = inBand.map((_, row) => row);
  return [rows.filter((row) => inBand[row]), rows.filter((row) => !inBand[row])];
}

/** Fisher–Yates, in place. */
function shuffle(values: number[], random: () => number): void {
  for (let last = values.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [values[last], values[other]] = [values[other]!, values[last]!];
  }
}
