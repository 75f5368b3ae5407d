/** The structural feature space of programs: depth of the syntax tree × cyclomatic complexity × lines × variables. */
import { countsOf, type Estimate, rarefy } from './coverage.js';

/** What is measured of a program. */
export interface Structure {
  /** Depth of the syntax tree, the module being 1. */
  readonly depth: number;
  /** 1 + decision points. T. McCabe, "A complexity measure" (1976). */
  readonly cyclomatic: number;
  /** Lines that are not blank. */
  readonly lines: number;
  /** Distinct names that are assigned. */
  readonly variables: number;
}

/**
 * Where each feature's bins begin, the first at the smallest value there is; the last has no end. Eight bins each, 4,096 cells. Narrow where
 * short functions lie (the micro-world's have depth 6–11, complexity 1–4, 2–7 lines, 0–3 variables) and wide enough for Absolute
 * Zero's and CRUXEval's (depth 5–15, complexity 1–16, 2–35 lines, 0–14 variables). Fixed, so that runs compare.
 */
export const STRUCTURE_BINS = {
  depth: [1, 6, 7, 8, 9, 10, 12, 15],
  cyclomatic: [1, 2, 3, 4, 5, 7, 10, 16],
  lines: [1, 3, 4, 5, 7, 10, 15, 22],
  variables: [0, 1, 2, 3, 4, 5, 7, 10],
} as const satisfies Readonly<Record<keyof Structure, readonly number[]>>;

const FEATURES = ['depth', 'cyclomatic', 'lines', 'variables'] as const;

/** Cells of the space. */
export const STRUCTURE_CELLS = FEATURES.reduce((cells, feature) => cells * STRUCTURE_BINS[feature].length, 1);

/** The cell of a program: 0 to 4,095. */
export function structureCell(structure: Structure): number {
  return FEATURES.reduce((cell, feature) => {
    const bins: readonly number[] = STRUCTURE_BINS[feature];
    const bin = bins.findLastIndex((begin) => structure[feature] >= begin);
    return cell * bins.length + Math.max(0, bin);
  }, 0);
}

export interface StructuralCoverage {
  /** Cells that `size` of the programs occupy. */
  readonly cells: Estimate;
  /** exp of the entropy over cells: how many equally frequent cells would be as diverse. */
  readonly effectiveCells: Estimate;
}

/**
 * Coverage of the space by programs, as of `size` of them: both numbers grow with how many there are, so sets compare only at an equal one.
 * Null when `size` is 0. @throws RangeError when `size` is more than there are
 */
export function structuralCoverage(structures: readonly Structure[], size: number): StructuralCoverage | null {
  const spread = rarefy(countsOf(structures.map(structureCell)), size);
  return spread && { cells: spread.richness, effectiveCells: spread.effective };
}

/** Mean of each feature; null for no program. */
export function meanStructure(structures: readonly Structure[]): Structure | null {
  if (structures.length === 0) return null;
  const mean = (feature: keyof Structure): number =>
    structures.reduce((sum, structure) => sum + structure[feature], 0) / structures.length;
  return {
    depth: mean('depth'),
    cyclomatic: mean('cyclomatic'),
    lines: mean('lines'),
    variables: mean('variables'),
  };
}
