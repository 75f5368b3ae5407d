/** A measure against the number of examples learnt from, with intervals; doubling is one step to the right wherever it happens. */
import { largest, smallest } from '../../metrics/extremes.js';
import { type Format, type Frame, leftMargin, linearScale, numberTick, verticalAxis, axisName, line } from './axes.js';
import { hint, label, marker, plot, polyline, seriesClass, seriesDash } from './svg.js';

const WIDTH = 520;
const HEIGHT = 320;
/** Pixels between the marks of two series at one number, so that their intervals do not cover each other. */
const APART = 9;

export interface LearningCurve {
  readonly name: string;
  /** Number of the series, which gives its look. */
  readonly series: number;
  readonly points: readonly LearningPoint[];
}

export interface LearningPoint {
  /** Examples learnt from. */
  readonly size: number;
  readonly value: number;
  readonly interval: readonly [low: number, high: number];
  /** What other examples of the same number gave. */
  readonly others: readonly number[];
}

export interface LearningCurvePlot {
  readonly description: string;
  readonly xName: string;
  readonly yName: string;
  readonly format: Format;
  readonly curves: readonly LearningCurve[];
  /** A height to compare with, e.g. that of guessing. */
  readonly level: number;
}

/** A line, a mark and an interval for each series, and a small dash for each other draw. */
export function learningCurvePlot({ description, xName, yName, format, curves, level }: LearningCurvePlot): string {
  const points = curves.flatMap((curve) => curve.points);
  const heights = [level, ...points.flatMap(({ interval, others }) => [...interval, ...others])];
  const [top, bottom] = [12, HEIGHT - 44];
  const y = linearScale([smallest(heights), largest(heights)], [bottom, top]);
  const frame: Frame = { left: leftMargin(y.ticks, format), right: WIDTH - 12, top, bottom };
  const sizes = [...new Set(points.map(({ size }) => size))].sort((a, b) => a - b);
  const x = sizeScale(sizes, frame);
  const placed = curves.map((curve, index) => {
    const shift = APART * (index - (curves.length - 1) / 2);
    return { ...curve, at: curve.points.map(({ size, value }) => [x(size) + shift, y(value)] as const) };
  });
  return plot(
    WIDTH,
    HEIGHT,
    description,
    verticalAxis(frame, y, format, yName),
    line(frame.left, frame.bottom, frame.right, frame.bottom, 'axis'),
    sizes.map((size) =>
      label(x(size), frame.bottom + 17, numberTick(size), { class: 'tick', 'text-anchor': 'middle' }),
    ),
    axisName(frame, xName),
    line(frame.left, y(level), frame.right, y(level), 'diagonal'),
    placed.map(({ series, at }) =>
      polyline(at, { class: `curve ${seriesClass(series)}`, 'stroke-dasharray': seriesDash(series) }),
    ),
    placed.flatMap(({ name, series, points: of, at }) =>
      of.flatMap((point, i) => pointMarks(name, series, point, at[i]!, y, format)),
    ),
  );
}

/** Logarithmic in the number, with room at both ends. */
function sizeScale(sizes: readonly number[], { left, right }: Frame): (size: number) => number {
  const [first, last] = [Math.log(sizes[0]!), Math.log(sizes.at(-1)!)];
  const room = 34;
  if (first === last) return () => (left + right) / 2;
  return (size) => left + room + ((Math.log(size) - first) / (last - first)) * (right - left - 2 * room);
}

function pointMarks(
  name: string,
  series: number,
  { size, value, interval: [low, high], others }: LearningPoint,
  [x, height]: readonly [number, number],
  y: (value: number) => number,
  format: Format,
): string[] {
  const round = (number: number) => format(Number(number.toPrecision(3)));
  const more = others.length === 0 ? '' : `; other draws ${others.map(round).join(', ')}`;
  const text = `${name}, ${size} labels: ${round(value)} (${round(low)}–${round(high)})${more}`;
  return [
    line(x, y(low), x, y(high), `whisker thin ${seriesClass(series)}`),
    ...others.map((other) => line(x - 5, y(other), x + 5, y(other), `whisker ${seriesClass(series)}`)),
    marker(series, x, height, 9, hint(text)),
  ];
}
