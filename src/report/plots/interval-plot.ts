/** Rates with their intervals, one row a rate, grouped under headings. */
import { type Frame, horizontalAxis, line, linearScale, nameMargin, percentTick } from './axes.js';
import { hint, label, marker, plot, seriesClass } from './svg.js';

export interface IntervalRow {
  readonly name: string;
  /** Number of the series, which gives its look. */
  readonly series: number;
  readonly rate: number;
  readonly interval: readonly [low: number, high: number];
}

export interface IntervalGroup {
  readonly heading: string;
  readonly rows: readonly IntervalRow[];
}

/** A marker at each rate, a line over its interval, the number beside it. */
export function intervalPlot(description: string, groups: readonly IntervalGroup[], name: string): string {
  const width = 520;
  const [rowHeight, headingHeight] = [22, 26];
  const top = 4;
  const bottom = top + groups.reduce((sum, { rows }) => sum + headingHeight + rowHeight * rows.length, 0) + 6;
  const rows = groups.flatMap((group) => group.rows);
  const frame: Frame = { left: nameMargin(rows.map((row) => row.name)) + 14, right: width - 66, top, bottom };
  const x = linearScale([0, Math.max(...rows.map(({ interval }) => interval[1]))], [frame.left, frame.right]);

  const marks: string[] = [];
  let y = top;
  for (const { heading, rows: members } of groups) {
    marks.push(label(0, y + 17, heading, { class: 'heading' }));
    y += headingHeight;
    for (const { name: rowName, series, rate, interval } of members) {
      const middle = y + rowHeight / 2;
      const text = `${(100 * rate).toFixed(1)}%`;
      const [low, high] = interval;
      marks.push(
        label(frame.left - 10, middle + 4, rowName, { class: 'tick', 'text-anchor': 'end' }),
        line(x(low), middle, x(high), middle, `whisker ${seriesClass(series)}`),
        marker(
          series,
          x(rate),
          middle,
          8,
          hint(`${heading}, ${rowName}: ${text} (${percentTick(low)}–${percentTick(high)})`),
        ),
        label(x(high) + 8, middle + 4, text, { class: 'value' }),
      );
      y += rowHeight;
    }
  }
  return plot(width, bottom + 44, description, horizontalAxis(frame, x, percentTick, name, true), ...marks);
}
