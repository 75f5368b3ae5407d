/** Rates over seeds: a bar to the mean, a line over its interval, a dot a seed; a row a rate, grouped under headings. */
import { largest } from '../../metrics/extremes.js';
import { type Frame, horizontalAxis, line, linearScale, nameMargin, percentTick } from './axes.js';
import { element, hint, label, plot, seriesClass } from './svg.js';

export interface SeedRow {
  readonly name: string;
  /** Number of the series, which gives its look. */
  readonly series: number;
  readonly mean: number;
  readonly interval: readonly [low: number, high: number];
  readonly seeds: readonly number[];
}

export interface SeedGroup {
  /** Empty for a plot of one group, which needs none. */
  readonly heading: string;
  readonly rows: readonly SeedRow[];
}

export interface SeedPlot {
  readonly description: string;
  readonly groups: readonly SeedGroup[];
  /** What the rates are. */
  readonly valueName: string;
  /** A vertical line to compare with. */
  readonly level?: { readonly name: string; readonly value: number };
}

export function seedPlot({ description, groups, valueName, level }: SeedPlot): string {
  const width = 760;
  const rowHeight = 24;
  const headingHeight = (heading: string): number => (heading === '' ? 0 : 28);
  const top = 6;
  const height = groups.reduce((sum, { heading, rows }) => sum + headingHeight(heading) + rowHeight * rows.length, 0);
  const bottom = top + height + 4;
  const rows = groups.flatMap((group) => group.rows);
  const frame: Frame = { left: nameMargin(rows.map((row) => row.name)) + 10, right: width - 66, top, bottom };
  const most = Math.max(level?.value ?? 0, largest(rows.flatMap(({ interval, seeds }) => [interval[1], ...seeds])));
  const x = linearScale([0, most || 1], [frame.left, frame.right]);

  const marks: string[] = [];
  let y = top;
  for (const { heading, rows: members } of groups) {
    if (heading !== '') marks.push(label(0, y + 19, heading, { class: 'heading' }));
    y += headingHeight(heading);
    for (const row of members) {
      marks.push(rowMarks(row, y + rowHeight / 2, frame.left, x));
      y += rowHeight;
    }
  }
  const reference =
    level === undefined
      ? ''
      : element(
          'line',
          { x1: x(level.value), y1: top, x2: x(level.value), y2: bottom, class: 'diagonal' },
          hint(level.name),
        );
  return plot(
    width,
    bottom + 44,
    description,
    horizontalAxis(frame, x, percentTick, valueName, true),
    reference,
    marks,
  );
}

function rowMarks(row: SeedRow, middle: number, left: number, x: (value: number) => number): string {
  const [low, high] = row.interval;
  const text = `${(100 * row.mean).toFixed(1)}%`;
  const look = seriesClass(row.series);
  const end = Math.max(high, largest(row.seeds));
  const bar = { x: left, y: middle - 7, width: Math.max(0, x(row.mean) - left), height: 14, class: `bar pale ${look}` };
  const words = `${row.name}: ${text}, 95% interval ${percentTick(round(low))}–${percentTick(round(high))}`;
  return [
    label(left - 8, middle + 4, row.name, { class: 'tick', 'text-anchor': 'end' }),
    element('rect', bar, hint(words)),
    line(x(low), middle, x(high), middle, `whisker ${look}`),
    ...row.seeds.map((seed, place) =>
      element(
        'circle',
        { cx: x(seed), cy: middle, r: 3.5, class: `marker ${look}` },
        hint(`${row.name}, seed ${place + 1} of ${row.seeds.length}: ${percentTick(round(seed))}`),
      ),
    ),
    label(x(end) + 8, middle + 4, text, { class: 'value' }),
  ].join('');
}

function round(value: number): number {
  return Number(value.toPrecision(3));
}
