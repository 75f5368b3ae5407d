/** Values with their intervals, one row a value, grouped under headings. */
import { largest } from '../../metrics/extremes.js';
import { type Format, type Frame, horizontalAxis, line, linearScale, nameMargin } from './axes.js';
import { hint, label, marker, plot, seriesClass } from './svg.js';

export interface IntervalRow {
  readonly name: string;
  /** Number of the series, which gives its look. */
  readonly series: number;
  readonly value: number;
  readonly interval: readonly [low: number, high: number];
  /** What stands beside the number, e.g. the topic that it is of. */
  readonly note?: string;
}

export interface IntervalGroup {
  readonly heading: string;
  readonly rows: readonly IntervalRow[];
}

export interface IntervalPlot {
  readonly description: string;
  readonly groups: readonly IntervalGroup[];
  readonly valueName: string;
  /** Of the axis, and of the number beside a mark. */
  readonly format: Format;
  readonly text: Format;
}

/** Width of a character of the numbers beside the marks, about. */
const CHARACTER = 6.6;

/** A marker at each value, a line over its interval, the number beside it; the axis starts at zero. */
export function intervalPlot({ description, groups, valueName, format, text }: IntervalPlot): string {
  const width = 520;
  const [rowHeight, headingHeight] = [22, 26];
  const top = 4;
  const heightOf = ({ heading, rows }: IntervalGroup): number =>
    (heading ? headingHeight : 0) + rowHeight * rows.length;
  const bottom = top + groups.reduce((sum, group) => sum + heightOf(group), 0) + 6;
  const rows = groups.flatMap((group) => group.rows);
  const beside = ({ value, note }: IntervalRow): string => [text(value), note ?? ''].join(' ').trim();
  const right = width - 18 - CHARACTER * largest(rows.map((row) => beside(row).length));
  const frame: Frame = { left: nameMargin(rows.map((row) => row.name)) + 14, right, top, bottom };
  const x = linearScale([0, largest(rows.map(({ interval }) => interval[1]))], [frame.left, frame.right], 4);

  const marks: string[] = [];
  let y = top;
  for (const { heading, rows: members } of groups) {
    if (heading) {
      marks.push(label(0, y + 17, heading, { class: 'heading' }));
      y += headingHeight;
    }
    for (const row of members) {
      const middle = y + rowHeight / 2;
      const { name, series, value, interval } = row;
      const [low, high] = interval;
      const told = [heading, name].filter(Boolean).join(', ');
      marks.push(
        label(frame.left - 10, middle + 4, name, { class: 'tick', 'text-anchor': 'end' }),
        line(x(low), middle, x(high), middle, `whisker ${seriesClass(series)}`),
        marker(series, x(value), middle, 8, hint(`${told}: ${beside(row)} (${text(low)}–${text(high)})`)),
        label(x(high) + 8, middle + 4, beside(row), { class: 'value' }),
      );
      y += rowHeight;
    }
  }
  return plot(width, bottom + 44, description, horizontalAxis(frame, x, format, valueName, true), marks);
}
