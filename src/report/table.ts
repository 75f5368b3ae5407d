/** The table of arms for a terminal. */
import { largest } from '../metrics/extremes.js';
import { ARM_COLUMNS, withFlags } from './columns.js';
import type { ArmResult } from './results.js';

const GAP = '  ';

/** The arms as a table, see {@link alignedTable}. */
export function armsTable(arms: readonly ArmResult[], width?: number): string {
  const columns = withFlags(ARM_COLUMNS, arms);
  const headings = columns.map(({ heading }) => heading);
  return alignedTable([headings, ...arms.map((arm) => columns.map(({ value }) => value(arm)))], width);
}

/**
 * An aligned table of at most `width` characters a line: a row a line where that fits, else a column a line. The first row are the
 * headings. Ends with a line break.
 */
export function alignedTable(rows: readonly (readonly string[])[], width = 120): string {
  const wide = aligned(rows);
  if (wide[0]!.length <= width) return `${underlined(wide).join('\n')}\n`;
  const turned = rows[0]!.map((_, column) => rows.map((row) => row[column]!));
  return `${underlined(aligned(turned)).join('\n')}\n`;
}

/** Rows as lines: the first cell to the left, the others to the right, as numbers are read. */
function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, column) => largest(rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
      .join(GAP)
      .trimEnd(),
  );
}

function underlined(lines: readonly string[]): string[] {
  const width = largest(lines.map((line) => line.length));
  return [lines[0]!, '─'.repeat(width), ...lines.slice(1)];
}
