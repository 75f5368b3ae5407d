/** A comparison for a terminal: the table of arms, and the claims. */
import { TERMINAL_COLUMNS, withFlags } from './comparison-columns.js';
import type { Comparison } from './comparison.js';
import { alignedTable } from './table.js';

/** Rows as wide as they are: turned round, a dozen arms would be wider yet. Ends with a line break. */
export function comparisonTable({ arms }: Comparison): string {
  const columns = withFlags(TERMINAL_COLUMNS, arms);
  const headings = columns.map(({ heading }) => heading);
  const rows = arms.map((arm) =>
    columns.map(({ cell }) => {
      const { text, detail } = cell(arm);
      return detail === undefined ? text : `${text} (${detail})`;
    }),
  );
  return alignedTable([headings, ...rows], Number.POSITIVE_INFINITY);
}

/** One line a claim. Ends with a line break. */
export function claimLines({ claims }: Comparison): string {
  const widest = claims.reduce((most, { verdict }) => Math.max(most, verdict.length), 0);
  return claims.map(({ verdict, claim, figures }) => `${verdict.padEnd(widest)}  ${claim}: ${figures}\n`).join('');
}
