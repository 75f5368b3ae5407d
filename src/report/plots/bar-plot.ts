/** Bars by group: upright for counts on a scale, lying for groups with long names. */
import {
  axisName,
  type Format,
  type Frame,
  horizontalAxis,
  leftMargin,
  line,
  linearScale,
  nameMargin,
  verticalAxis,
} from './axes.js';
import { element, hint, label, plot, seriesClass } from './svg.js';

export interface BarSeries {
  readonly name: string;
  /** Number of the series, which gives its look. */
  readonly series: number;
  /** One value a group. */
  readonly values: readonly number[];
}

export interface BarPlot {
  readonly description: string;
  /** What the groups are, and what the length of a bar is. */
  readonly groupName: string;
  readonly valueName: string;
  readonly format: Format;
  readonly groups: readonly string[];
  readonly series: readonly BarSeries[];
  /** First and last of the groups to shade, with a note above them. */
  readonly shaded?: { readonly first: number; readonly last: number; readonly note: string };
}

/** Upright bars, side by side within a group. */
export function barPlot(options: BarPlot): string {
  const [width, height] = [520, 410];
  const [top, bottom] = [26, height - 44];
  const y = linearScale([0, largest(options)], [bottom, top]);
  const frame: Frame = { left: leftMargin(y.ticks, options.format), right: width - 8, top, bottom };
  const pitch = (frame.right - frame.left) / options.groups.length;
  const bar = (0.8 * pitch) / options.series.length;
  return plot(
    width,
    height,
    options.description,
    options.shaded === undefined ? '' : shade(frame, pitch, options.shaded),
    verticalAxis(frame, y, options.format, options.valueName),
    ...options.groups.map((group, index) =>
      label(frame.left + pitch * (index + 0.5), frame.bottom + 17, group, { class: 'tick', 'text-anchor': 'middle' }),
    ),
    ...options.series.flatMap((series, place) =>
      series.values.map((value, index) =>
        element(
          'rect',
          {
            x: frame.left + pitch * (index + 0.1) + bar * place + 0.5,
            y: y(value),
            width: bar - 1,
            height: bottom - y(value),
            class: `bar ${seriesClass(series.series)}`,
          },
          hint(`${series.name}, ${options.groups[index]}: ${options.format(round(value))}`),
        ),
      ),
    ),
    axisName(frame, options.groupName),
  );
}

/** Lying bars, one under the other within a group. */
export function lyingBarPlot(options: BarPlot): string {
  const width = 760;
  const thickness = 8;
  const pitch = thickness * options.series.length + 10;
  const top = 8;
  const bottom = top + pitch * options.groups.length;
  const frame: Frame = { left: nameMargin(options.groups), right: width - 24, top, bottom };
  const x = linearScale([0, largest(options)], [frame.left, frame.right]);
  return plot(
    width,
    bottom + 44,
    options.description,
    horizontalAxis(frame, x, options.format, options.valueName, true),
    ...options.groups.map((group, index) =>
      label(frame.left - 8, top + pitch * (index + 0.5) + 4, group, { class: 'tick', 'text-anchor': 'end' }),
    ),
    ...options.series.flatMap((series, place) =>
      series.values.map((value, index) =>
        element(
          'rect',
          {
            x: frame.left,
            y: top + pitch * index + 5 + thickness * place + 0.5,
            width: x(value) - frame.left,
            height: thickness - 1,
            class: `bar ${seriesClass(series.series)}`,
          },
          hint(`${series.name}, ${options.groups[index]}: ${options.format(round(value))}`),
        ),
      ),
    ),
    line(frame.left, top, frame.left, bottom, 'axis'),
  );
}

function largest({ series }: BarPlot): number {
  return Math.max(0, ...series.flatMap(({ values }) => values)) || 1;
}

function shade(
  frame: Frame,
  pitch: number,
  { first, last, note }: { first: number; last: number; note: string },
): string {
  const left = frame.left + pitch * first;
  const width = pitch * (last - first + 1);
  return [
    element('rect', { x: left, y: frame.top - 18, width, height: frame.bottom - frame.top + 18, class: 'shade' }),
    label(left + width / 2, frame.top - 6, note, { class: 'note', 'text-anchor': 'middle' }),
  ].join('');
}

function round(value: number): number {
  return Number(value.toPrecision(3));
}
