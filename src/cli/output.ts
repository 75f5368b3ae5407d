/** What commands print on standard output. */
import { largest } from '../metrics/extremes.js';

/** The one document of `--json`. */
export function printJson(document: unknown): void {
  process.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
}

export function printLines(lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`);
}

/** What must not be overlooked, on standard error, where it neither mixes with `--json` nor ends up in a file of the table. */
export function printWarnings(warnings: readonly string[]): void {
  for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
}

/** Rows with their columns aligned to the left. */
export function alignColumns(rows: readonly (readonly string[])[]): string[] {
  const columns = Math.max(0, largest(rows.map((row) => row.length)));
  const widths = Array.from({ length: columns }, (_, column) => largest(rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
