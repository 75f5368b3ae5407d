/** The table of arms for a terminal. */
import { ARM_COLUMNS } from './columns.js';
import type { ArmResult } from './results.js';

const GAP = '  ';

/**
 * The arms as an aligned table of at most `width` characters a line: an arm a row where that fits, else an arm a column. Ends with a
 * line break.
 */
export function armsTable(arms: readonly ArmResult[], width = 120): string {
  const rows = [
    ARM_COLUMNS.map(({ heading }) => heading),
    ...arms.map((arm) => ARM_COLUMNS.map(({ value }) => value(arm))),
  ];
  const wide = aligned(rows);
  if (wide[0]!.length <= width) return `${underlined(wide).join('\n')}\n`;
  const turned = ARM_COLUMNS.map((_, column) => rows.map((row) => row[column]!));
  return `${underlined(aligned(turned)).join('\n')}\n`;
}

/** Rows as lines: the first cell to the left, the others to the right, as numbers are read. */
function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
      .join(GAP)
      .trimEnd(),
  );
}

function underlined(lines: readonly string[]): string[] {
  const width = Math.max(...lines.map((line) => line.length));
  return [lines[0]!, '─'.repeat(width), ...lines.slice(1)];
}
