/** Scales, ticks that people would choose, and the frame of a plot. */
import { largest } from '../../metrics/extremes.js';
import { element, label } from './svg.js';

export interface Scale {
  (value: number): number;
  readonly domain: readonly [low: number, high: number];
  readonly ticks: readonly number[];
}

/** Width of a character of a tick's label, about. */
const CHARACTER = 7;

/** Round numbers (1, 2 or 5 times a power of ten apart) that cover low to high in about `wanted` steps. */
export function niceTicks(low: number, high: number, wanted: number): number[] {
  const span = high > low ? high - low : Math.abs(high) || 1;
  const rough = span / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999) ?? 10);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  // Multiplying beats adding up: 3 · 0.1 is nearer to 0.3 than 0.1 + 0.1 + 0.1.
  return Array.from({ length: last - first + 1 }, (_, index) => Number(((first + index) * step).toPrecision(12)));
}

/** A linear scale from nice ticks around low to high onto pixels. */
export function linearScale(
  [low, high]: readonly [number, number],
  [from, to]: readonly [number, number],
  wanted = 5,
): Scale {
  const ticks = niceTicks(low, high, wanted);
  return scaleOver(ticks, [ticks[0]!, ticks.at(-1)!], [from, to]);
}

/** A linear scale over steps from exactly first to last, with ticks at round whole numbers. */
export function stepScale(
  [first, last]: readonly [number, number],
  [from, to]: readonly [number, number],
  wanted = 8,
): Scale {
  const ticks = niceTicks(first, last, wanted).filter(
    (tick) => tick >= first && tick <= last && Number.isInteger(tick),
  );
  return scaleOver(ticks, [first, last], [from, to]);
}

function scaleOver(
  ticks: readonly number[],
  domain: readonly [number, number],
  [from, to]: readonly [number, number],
): Scale {
  const [low, high] = domain;
  const scale = (value: number): number => from + ((value - low) / (high - low)) * (to - from);
  return Object.assign(scale, { domain, ticks });
}

export type Format = (value: number) => string;

/** 0.25 → 25%. */
export const percentTick: Format = (value) => `${Number((100 * value).toPrecision(6))}%`;

/** A plain number with a proper minus. */
export const numberTick: Format = (value) => String(value).replace('-', '−');

/** The rectangle that data is drawn in. */
export interface Frame {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** Left margin that holds the labels of a vertical axis and its name. */
export function leftMargin(ticks: readonly number[], format: Format): number {
  return 32 + CHARACTER * largest(ticks.map((tick) => format(tick).length));
}

/** Left margin that holds names written out. */
export function nameMargin(names: readonly string[]): number {
  return 12 + CHARACTER * largest(names.map((name) => name.length));
}

/** Horizontal grid lines with labels, and the axis's name beside them, turned. */
export function verticalAxis(frame: Frame, scale: Scale, format: Format, name: string): string {
  const middle = (frame.top + frame.bottom) / 2;
  return [
    ...scale.ticks.flatMap((tick) => [
      line(frame.left, scale(tick), frame.right, scale(tick), tick === 0 ? 'axis' : 'grid'),
      label(frame.left - 6, scale(tick) + 4, format(tick), { class: 'tick', 'text-anchor': 'end' }),
    ]),
    label(12, middle, name, { class: 'axis-name', 'text-anchor': 'middle', transform: `rotate(-90 12 ${middle})` }),
  ].join('');
}

/** Ticks with labels under the frame, and the axis's name below; with `grid`, vertical lines through the frame. */
export function horizontalAxis(frame: Frame, scale: Scale, format: Format, name: string, grid = false): string {
  return [
    line(frame.left, frame.bottom, frame.right, frame.bottom, 'axis'),
    ...scale.ticks.flatMap((tick) => [
      grid
        ? line(scale(tick), frame.top, scale(tick), frame.bottom, 'grid')
        : line(scale(tick), frame.bottom, scale(tick), frame.bottom + 4, 'axis'),
      label(scale(tick), frame.bottom + 17, format(tick), { class: 'tick', 'text-anchor': 'middle' }),
    ]),
    axisName(frame, name),
  ].join('');
}

/** The name of a horizontal axis. */
export function axisName(frame: Frame, name: string): string {
  return label((frame.left + frame.right) / 2, frame.bottom + 35, name, {
    class: 'axis-name',
    'text-anchor': 'middle',
  });
}

export function line(x1: number, y1: number, x2: number, y2: number, className: string): string {
  return element('line', { x1, y1, x2, y2, class: className });
}
