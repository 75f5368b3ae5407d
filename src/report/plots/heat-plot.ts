/** Shares as shaded cells with their numbers: rows against columns, for more rows than bars could tell apart. */
import { largest } from '../../metrics/extremes.js';
import { nameMargin } from './axes.js';
import { element, hint, label, plot } from './svg.js';

export interface HeatPlot {
  readonly description: string;
  /** What the columns are. */
  readonly columnName: string;
  readonly columns: readonly string[];
  /** Shares, 0 to 1, one a column. */
  readonly rows: readonly { readonly name: string; readonly values: readonly number[] }[];
  /** First and last of the columns to frame, with a note above them. */
  readonly framed?: { readonly first: number; readonly last: number; readonly note: string };
}

const WIDTH = 760;
const ROW = 24;
const WIDEST_CELL = 60;
/** Headings longer than this stand aslant. */
const LEVEL_HEADING = 7;
const ASLANT = 40;
/** Width of a character of a heading, about. */
const CHARACTER = 6.4;
/** The darkest shade still lets ink be read on it. */
const DARKEST = 0.6;

/** A cell is as dark as its share of the largest one; what rounds to 0% has no number. */
export function heatPlot({ description, columnName, columns, rows, framed }: HeatPlot): string {
  const slanted = columns.some((name) => name.length > LEVEL_HEADING);
  const across = Math.cos((ASLANT * Math.PI) / 180);
  const up = Math.sin((ASLANT * Math.PI) / 180);
  const longest = CHARACTER * largest(columns.map((name) => name.length));
  const left = nameMargin(rows.map(({ name }) => name));
  const overhang = slanted ? across * CHARACTER * columns.at(-1)!.length : 0;
  const cell = Math.min(WIDEST_CELL, (WIDTH - left - Math.max(8, overhang)) / columns.length);
  const top = (slanted ? 18 + up * longest : 24) + (framed === undefined ? 0 : 18);
  const bottom = top + ROW * rows.length;
  const darkest = largest(rows.flatMap(({ values }) => values)) || 1;

  const heading = (name: string, column: number): string => {
    const x = left + cell * (column + 0.5);
    if (!slanted) return label(x, top - 8, name, { class: 'tick', 'text-anchor': 'middle' });
    return label(x, top - 8, name, { class: 'tick', transform: `rotate(-${ASLANT} ${x} ${top - 8})` });
  };
  const row = ({ name, values }: HeatPlot['rows'][number], index: number): string => {
    const y = top + ROW * index;
    const cells = values.flatMap((value, column) => {
      const x = left + cell * column;
      const text = `${(100 * value).toFixed(0)}%`;
      return [
        element(
          'rect',
          {
            x: x + 1,
            y: y + 1,
            width: cell - 2,
            height: ROW - 2,
            class: 'heat',
            'fill-opacity': (DARKEST * value) / darkest,
          },
          hint(`${name}, ${columns[column]}: ${(100 * value).toFixed(1)}%`),
        ),
        text === '0%' ? '' : label(x + cell / 2, y + ROW / 2 + 4, text, { class: 'cell', 'text-anchor': 'middle' }),
      ];
    });
    return label(left - 8, y + ROW / 2 + 4, name, { class: 'tick', 'text-anchor': 'end' }) + cells.join('');
  };
  return plot(
    WIDTH,
    bottom + 26,
    description,
    columns.map(heading),
    rows.map(row),
    framed === undefined ? '' : frame(framed, left, cell, top, bottom),
    label(left + (cell * columns.length) / 2, bottom + 18, columnName, { class: 'axis-name', 'text-anchor': 'middle' }),
  );
}

function frame(
  { first, last, note }: NonNullable<HeatPlot['framed']>,
  left: number,
  cell: number,
  top: number,
  bottom: number,
): string {
  const x = left + cell * first;
  const width = cell * (last - first + 1);
  return [
    element('rect', { x, y: top - 22, width, height: bottom - top + 24, class: 'frame' }),
    label(x + width / 2, top - 28, note, { class: 'note', 'text-anchor': 'middle' }),
  ].join('');
}
