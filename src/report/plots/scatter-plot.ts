/** Named points in a plane: what something costs against what it gives. */
import { largest, smallest } from '../../metrics/extremes.js';
import { type Format, type Frame, horizontalAxis, leftMargin, line, linearScale, verticalAxis } from './axes.js';
import { hint, label, marker, plot, seriesClass } from './svg.js';

export interface ScatterPoint {
  readonly name: string;
  /** Number of the series, which gives its look. */
  readonly series: number;
  readonly x: number;
  readonly y: number;
  /** Of y; null where it is not known. */
  readonly interval: readonly [low: number, high: number] | null;
}

export interface ScatterPlot {
  readonly description: string;
  readonly xName: string;
  readonly yName: string;
  readonly xFormat: Format;
  readonly yFormat: Format;
  readonly points: readonly ScatterPoint[];
}

const WIDTH = 760;
const HEIGHT = 420;
/** Pixels between names, and of a name's character, about. */
const LINE = 15;
const CHARACTER = 6.6;

/** A marker at each point, a line over its interval, the name beside it. */
export function scatterPlot(options: ScatterPlot): string {
  const { points } = options;
  const heights = points.flatMap(({ y, interval }) => [y, ...(interval ?? [])]);
  const [top, bottom] = [14, HEIGHT - 44];
  const y = linearScale([Math.min(0, smallest(heights)), Math.max(0, largest(heights))], [bottom, top]);
  const longest = Math.max(0, largest(points.map(({ name }) => name.length)));
  const left = leftMargin(y.ticks, options.yFormat);
  const frame: Frame = { left, right: WIDTH - 20, top, bottom };
  // Names stand to the right of their points, the last ones' too.
  const x = linearScale(
    [0, Math.max(1, largest(points.map((point) => point.x)))],
    [left + 14, WIDTH - 30 - CHARACTER * longest],
  );
  const places = namePlaces(
    points.map((point) => ({ x: x(point.x), y: y(point.y), width: CHARACTER * point.name.length })),
    top,
    bottom,
  );
  return plot(
    WIDTH,
    HEIGHT,
    options.description,
    verticalAxis(frame, y, options.yFormat, options.yName),
    horizontalAxis(frame, x, options.xFormat, options.xName),
    points.map(({ x: cost, interval, series }) =>
      interval === null
        ? ''
        : line(x(cost), y(interval[0]), x(cost), y(interval[1]), `whisker thin ${seriesClass(series)}`),
    ),
    points.map((point, index) => {
      const [at, height] = [x(point.x), y(point.y)];
      const words = `${point.name}: ${options.yFormat(round(point.y))} for ${options.xFormat(point.x)}`;
      const beside = places[index]!;
      return [
        Math.abs(beside - height) < 2 ? '' : line(at + 5, height, at + 12, beside, 'grid'),
        marker(point.series, at, height, 10, hint(words)),
        label(at + 14, beside + 4, point.name, { class: 'tick' }),
      ].join('');
    }),
  );
}

interface Name {
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

/** Heights of the names, each as near its point as names that stand in the same columns allow, and within the frame. */
function namePlaces(names: readonly Name[], top: number, bottom: number): number[] {
  const places = names.map(({ y }) => y);
  const nearOf = (index: number, others: readonly number[]): number[] => {
    const { x, width } = names[index]!;
    return others.filter((other) => x < names[other]!.x + names[other]!.width + 16 && names[other]!.x < x + width + 16);
  };
  const byHeight = names.map((_, index) => index).sort((a, b) => places[b]! - places[a]!);
  // From the bottom up: a name gives way upwards, past those that are below it; then from the top down, past the frame's edge.
  byHeight.forEach((index, rank) => {
    const below = nearOf(index, byHeight.slice(0, rank)).map((other) => places[other]! - LINE);
    places[index] = Math.min(places[index]!, bottom - 4, smallest(below));
  });
  byHeight.reverse().forEach((index, rank) => {
    const above = nearOf(index, byHeight.slice(0, rank)).map((other) => places[other]! + LINE);
    places[index] = Math.max(places[index]!, top + 8, largest(above));
  });
  return places;
}

function round(value: number): number {
  return Number(value.toPrecision(3));
}
