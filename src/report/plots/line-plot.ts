/** Curves over training steps. */
import { largest, smallest } from '../../metrics/extremes.js';
import {
  type Format,
  type Frame,
  horizontalAxis,
  leftMargin,
  line,
  linearScale,
  numberTick,
  stepScale,
  verticalAxis,
} from './axes.js';
import { element, hint, marker, plot, polyline, seriesClass, seriesDash } from './svg.js';

const WIDTH = 520;
const HEIGHT = 300;

type Point = readonly [x: number, y: number];

export interface Curve {
  readonly name: string;
  /** Number of the series, which gives its look. */
  readonly series: number;
  readonly points: readonly Point[];
}

export interface MeasuredCurve extends Curve {
  /** One a point. */
  readonly intervals: readonly Interval[];
}

type Interval = readonly [low: number, high: number];

/** A value measured at the end, with its interval, drawn beside the last step. */
export interface EndPoint {
  readonly name: string;
  readonly series: number;
  readonly value: number;
  readonly interval: Interval;
}

export interface LinePlot {
  readonly description: string;
  readonly xName: string;
  readonly yName: string;
  readonly format: Format;
  readonly curves: readonly Curve[];
  /** Points without a line, with an interval each: what was measured on the way. */
  readonly dots?: readonly MeasuredCurve[];
  readonly ends?: readonly EndPoint[];
  /** A horizontal line to compare with. */
  readonly level?: { readonly name: string; readonly series: number; readonly value: number };
  /** The vertical axis starts at zero. */
  readonly fromZero?: boolean;
}

/** Steps on each side that the bold line averages over. */
const SMOOTHING = 2;

/** A thin line through each curve's points, a bold one through their moving average over five. */
export function linePlot(options: LinePlot): string {
  const { curves, dots = [], ends = [], level } = options;
  const points = [...curves, ...dots].flatMap((curve) => curve.points);
  const heights = [
    ...points.map(([, y]) => y),
    ...dots.flatMap(({ intervals }) => intervals.flat()),
    ...ends.flatMap(({ interval }) => interval),
    ...(level ? [level.value] : []),
    ...(options.fromZero ? [0] : []),
  ];
  const steps = points.map(([x]) => x);
  const top = 12;
  const bottom = HEIGHT - 44;
  const y = linearScale([smallest(heights), largest(heights)], [bottom, top]);
  const frame: Frame = { left: leftMargin(y.ticks, options.format), right: WIDTH - 12, top, bottom };
  const endPitch = Math.min(14, 120 / ends.length);
  const endsWidth = ends.length === 0 ? 0 : 14 + endPitch * ends.length;
  const lastStep = largest(steps);
  const x = stepScale([Math.min(smallest(steps), lastStep - 1), lastStep], [frame.left + 4, frame.right - endsWidth]);

  const at = ([step, value]: Point): Point => [x(step), y(value)];
  const value = (name: string, [step, height]: Point): string =>
    `${name}, step ${step}: ${options.format(round(height))}`;
  return plot(
    WIDTH,
    HEIGHT,
    options.description,
    verticalAxis(frame, y, options.format, options.yName),
    horizontalAxis(frame, x, numberTick, options.xName),
    level === undefined
      ? ''
      : levelLine(frame, y(level.value), level.series, `${level.name}: ${options.format(round(level.value))}`),
    curves.map((curve) => polyline(curve.points.map(at), { class: `curve raw ${seriesClass(curve.series)}` })),
    curves.map((curve) =>
      polyline(movingAverage(curve.points).map(at), {
        class: `curve ${seriesClass(curve.series)}`,
        'stroke-dasharray': seriesDash(curve.series),
      }),
    ),
    curves.flatMap((curve) =>
      curve.points.map((point) =>
        element(
          'circle',
          { cx: at(point)[0], cy: at(point)[1], r: 5, class: 'target' },
          hint(value(curve.name, point)),
        ),
      ),
    ),
    dots.flatMap((curve) =>
      curve.points.map((point, index) => {
        const [low, high] = curve.intervals[index]!;
        const text = `${value(curve.name, point)} (${options.format(round(low))}–${options.format(round(high))})`;
        const [step, height] = at(point);
        return (
          line(step, y(low), step, y(high), `whisker thin ${seriesClass(curve.series)}`) +
          marker(curve.series, step, height, 6, hint(text))
        );
      }),
    ),
    ends.map((end, index) => endPoint(end, frame.right - endsWidth + 18 + endPitch * index, y, options.format)),
  );
}

function levelLine(frame: Frame, height: number, series: number, text: string): string {
  const attributes = { class: `level ${seriesClass(series)}`, 'stroke-dasharray': seriesDash(series) };
  return element('line', { x1: frame.left, y1: height, x2: frame.right, y2: height, ...attributes }, hint(text));
}

function endPoint(end: EndPoint, x: number, y: (value: number) => number, format: Format): string {
  const [low, high] = end.interval;
  return [
    line(x, y(low), x, y(high), `whisker ${seriesClass(end.series)}`),
    marker(
      end.series,
      x,
      y(end.value),
      9,
      hint(`${end.name}: ${format(round(end.value))} (${format(round(low))}–${format(round(high))})`),
    ),
  ].join('');
}

/** Each point averaged with the two on either side; fewer at the ends. */
function movingAverage(points: readonly Point[]): Point[] {
  return points.map(([x], index) => {
    const near = points.slice(Math.max(0, index - SMOOTHING), index + SMOOTHING + 1);
    return [x, near.reduce((sum, [, height]) => sum + height, 0) / near.length];
  });
}

function round(value: number): number {
  return Number(value.toPrecision(3));
}
