import { expect, test } from 'vitest';
import {
  meanStructure,
  STRUCTURE_BINS,
  STRUCTURE_CELLS,
  structuralCoverage,
  type Structure,
  structureCell,
} from './structure.js';

const SMALLEST: Structure = { depth: 5, cyclomatic: 1, lines: 2, variables: 0 };

test('the space has eight bins a feature, 4,096 cells, numbered from the smallest program', () => {
  expect(Object.values(STRUCTURE_BINS).map((bins) => bins.length)).toEqual([8, 8, 8, 8]);
  expect(STRUCTURE_CELLS).toBe(4096);
  expect(structureCell(SMALLEST)).toBe(0);
  expect(structureCell({ depth: 99, cyclomatic: 99, lines: 99, variables: 99 })).toBe(4095);
});

test('a cell is (depth · 8 + complexity) · 8 + lines) · 8 + variables in numbers of bins', () => {
  // depth 10–11 is bin 5, complexity 2 bin 1, 5–6 lines bin 3, 7–9 variables bin 6
  const cell = ((5 * 8 + 1) * 8 + 3) * 8 + 6;
  expect(structureCell({ depth: 11, cyclomatic: 2, lines: 5, variables: 9 })).toBe(cell);
  expect(structureCell({ depth: 10, cyclomatic: 2, lines: 6, variables: 7 })).toBe(cell);
});

test('coverage at an equal number: two cells of three programs, 5/3 of two', () => {
  const programs = [SMALLEST, { ...SMALLEST, depth: 4 }, { ...SMALLEST, lines: 30 }];
  expect(structuralCoverage(programs, 3)!.cells.value).toBeCloseTo(2, 12);
  expect(structuralCoverage(programs, 2)!.cells.value).toBeCloseTo(5 / 3, 12);
  expect(structuralCoverage(programs, 2)!.effectiveCells.value).toBeCloseTo(2 ** (2 / 3), 12);
  expect(structuralCoverage([], 0)).toBeNull();
});

test('means of the four features', () => {
  expect(meanStructure([SMALLEST, { depth: 8, cyclomatic: 2, lines: 5, variables: 1 }])).toEqual({
    depth: 6.5,
    cyclomatic: 1.5,
    lines: 3.5,
    variables: 0.5,
  });
  expect(meanStructure([])).toBeNull();
});
