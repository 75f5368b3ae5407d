/** Reliability diagram: what a probe claims against what came true. */
import { largest } from '../../metrics/extremes.js';
import { wilsonInterval } from '../../metrics/interval.js';
import type { ReliabilityBin } from '../../metrics/probe-metrics.js';
import { type Frame, horizontalAxis, leftMargin, line, linearScale, percentTick, verticalAxis } from './axes.js';
import { element, hint, marker, plot, polyline, seriesClass, seriesDash } from './svg.js';

export interface ReliabilityCurve {
  readonly name: string;
  /** Number of the series, which gives its look. */
  readonly series: number;
  readonly bins: readonly ReliabilityBin[];
}

/** Observed share over mean prediction a bin, with Wilson 95% intervals; on the diagonal a probe is calibrated. */
export function reliabilityPlot(description: string, curves: readonly ReliabilityCurve[]): string {
  const [width, height] = [520, 420];
  const bins = curves.flatMap((curve) => curve.bins);
  const end = largest(bins.flatMap((bin) => [bin.predicted, intervalOf(bin)[1]]));
  const [top, bottom] = [12, height - 44];
  const y = linearScale([0, Math.min(1, end)], [bottom, top]);
  const frame: Frame = { left: leftMargin(y.ticks, percentTick), right: width - 16, top, bottom };
  const x = linearScale([0, Math.min(1, end)], [frame.left, frame.right]);
  return plot(
    width,
    height,
    description,
    verticalAxis(frame, y, percentTick, 'tasks in band'),
    horizontalAxis(frame, x, percentTick, 'predicted probability of the band', true),
    element(
      'line',
      { x1: x(0), y1: y(0), x2: x(y.domain[1]), y2: y(y.domain[1]), class: 'diagonal' },
      hint('calibrated'),
    ),
    curves.flatMap((curve, place) => curveMarks(curve, (place - (curves.length - 1) / 2) * 3, x, y)),
  );
}

/** `shift`: pixels to the side, so that the lines of curves at the same place do not hide each other. */
function curveMarks(
  { name, series, bins }: ReliabilityCurve,
  shift: number,
  x: (value: number) => number,
  y: (value: number) => number,
): string[] {
  return [
    polyline(
      bins.map(({ predicted, observed }) => [x(predicted), y(observed)]),
      { class: `curve ${seriesClass(series)}`, 'stroke-dasharray': seriesDash(series) },
    ),
    ...bins.map((bin) => {
      const [low, high] = intervalOf(bin);
      const place = x(bin.predicted) + shift;
      return line(place, y(low), place, y(high), `whisker thin ${seriesClass(series)}`);
    }),
    ...bins.map((bin) => {
      const text = `${name}: predicted ${percentTick(round(bin.predicted))}, in band ${percentTick(round(bin.observed))} of ${bin.count}`;
      return marker(series, x(bin.predicted), y(bin.observed), 8, hint(text));
    }),
  ];
}

function intervalOf({ observed, count }: ReliabilityBin): readonly [number, number] {
  return wilsonInterval(Math.round(observed * count), count);
}

function round(value: number): number {
  return Number(value.toPrecision(3));
}
