/** Seeded splits of labelled tasks, stratified by "in band". */
import { deriveSeed, seededRandom } from '../metrics/random.js';

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

/** The seed of everything that is random in training one member of an ensemble. */
export function memberSeed(seed: number, member: number): number {
  return deriveSeed(seed, 'probe member', member);
}

/** The split that member `member` of an ensemble is trained, chosen and tested by. */
export function memberSplit(inBand: readonly boolean[], shares: SplitShares, seed: number, member: number): Part[] {
  return splitTasks(inBand, shares, deriveSeed(memberSeed(seed, member), 'split', 0));
}

/**
 * The rows in an order whose every beginning is a sample of them, with about their share in band: a longer beginning holds the shorter.
 */
export function nestedOrder(rows: readonly number[], inBand: readonly boolean[], seed: number): number[] {
  const random = seededRandom(seed);
  const placed = strata(rows.map((row) => inBand[row]!)).flatMap((members) => {
    shuffle(members, random);
    return members.map((member, i) => ({ row: rows[member]!, at: (i + 0.5) / members.length }));
  });
  return placed.toSorted((a, b) => a.at - b.at || a.row - b.row).map(({ row }) => row);
}

/** The rows of a part. */
export function rowsWhere<T>(values: readonly T[], wanted: T): number[] {
  return values.flatMap((value, row) => (value === wanted ? [row] : []));
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
