import { describe, expect, test } from 'vitest';
import { linearScale, niceTicks, percentTick, stepScale } from './axes.js';
import { heatPlot } from './heat-plot.js';
import { intervalPlot } from './interval-plot.js';
import { linePlot } from './line-plot.js';
import { reliabilityPlot } from './reliability-plot.js';
import { element, escapeXml } from './svg.js';

/** Every attribute of that name on elements with that class, in order. */
function attributes(svg: string, className: string, name: string): string[] {
  const tags = svg.match(/<\w+ [^>]*>/g) ?? [];
  return tags
    .filter((tag) => new RegExp(`class="[^"]*\\b${className}\\b`).test(tag))
    .flatMap((tag) => new RegExp(` ${name}="([^"]*)"`).exec(tag)?.[1] ?? []);
}

describe('ticks', () => {
  test('are 1, 2 or 5 times a power of ten apart and cover the data', () => {
    expect(niceTicks(0, 1, 5)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
    expect(niceTicks(-1.3, 0.6, 5)).toEqual([-1.5, -1, -0.5, 0, 0.5, 1]);
    expect(niceTicks(0, 0.3, 5)).toEqual([0, 0.1, 0.2, 0.3]);
    expect(niceTicks(3, 3, 5)).toEqual([3, 4]);
  });

  test('of steps are whole numbers within the data', () => {
    expect(stepScale([1, 40], [0, 100]).ticks).toEqual([5, 10, 15, 20, 25, 30, 35, 40]);
    expect(stepScale([1, 3], [0, 100]).ticks).toEqual([1, 2, 3]);
  });

  test('a scale maps its ends onto the ends', () => {
    const scale = linearScale([0, 0.9], [200, 0]);
    expect(scale.domain).toEqual([0, 1]);
    expect([scale(0), scale(0.5), scale(1)]).toEqual([200, 100, 0]);
  });

  test('percentages without rounding noise', () => {
    expect([0.1 + 0.2, 0.07, 1].map(percentTick)).toEqual(['30%', '7%', '100%']);
  });
});

test('text and attributes are escaped', () => {
  expect(escapeXml(`<a href="x">'&'</a>`)).toBe('&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;');
  expect(element('text', { title: '"<', x: 1.23456 }, 'ok')).toBe('<text title="&quot;&lt;" x="1.23">ok</text>');
});

test('a cell is as dark as its share of the largest one', () => {
  const svg = heatPlot({
    description: 'test',
    columnName: 'passes',
    columns: ['invalid', '0', '1'],
    rows: [
      { name: 'base', values: [0.4, 0.1, 0.004] },
      { name: 'propel', values: [0.2, 0, 0.8] },
    ],
    framed: { first: 2, last: 2, note: 'in band' },
  });
  const shades = attributes(svg, 'heat', 'fill-opacity').map(Number);
  expect(shades.map((shade) => shade / shades[5]!)).toEqual(
    [0.5, 0.13, 0, 0.25, 0, 1].map((shade) => expect.closeTo(shade, 1)),
  );
  expect(svg).toContain('<title>propel, 1: 80.0%</title>');
  // What rounds to 0% has no number.
  expect([...svg.matchAll(/class="cell"[^>]*>([^<]*)</g)].map(([, text]) => text)).toEqual([
    '40%',
    '10%',
    '20%',
    '80%',
  ]);
  const [left] = attributes(svg, 'frame', 'x').map(Number);
  expect(left).toBeCloseTo(Number(attributes(svg, 'heat', 'x')[2]) - 1, 1);
});

test('an interval lies about its value, from zero, with the number beside it', () => {
  const svg = intervalPlot({
    description: 'test',
    groups: [{ heading: '', rows: [{ name: 'base', series: 0, value: 4, interval: [3, 8], note: 'loops' }] }],
    valueName: 'cells',
    format: String,
    text: (value) => value.toFixed(1),
  });
  const grid = attributes(svg, 'grid', 'x1').map(Number);
  const at = (x: string | undefined): number => (8 * (Number(x) - grid[0]!)) / (grid.at(-1)! - grid[0]!);
  expect(at(attributes(svg, 'whisker', 'x1')[0])).toBeCloseTo(3, 2);
  expect(at(attributes(svg, 'whisker', 'x2')[0])).toBeCloseTo(8, 2);
  expect(at(attributes(svg, 'marker', 'cx')[0])).toBeCloseTo(4, 2);
  expect(svg).toContain('>4.0 loops</text>');
  expect(svg).toContain('<title>base: 4.0 loops (3.0–8.0)</title>');
});

test('a curve is drawn raw, and smoothed over five steps', () => {
  const points = [0, 0, 5, 0, 0].map((value, index) => [index + 1, value] as const);
  const svg = linePlot({
    description: 'test',
    xName: 'step',
    yName: 'reward',
    format: String,
    curves: [{ name: 'propel', series: 1, points }],
  });
  const [raw, smooth] = attributes(svg, 'curve', 'd').map((path) =>
    path
      .split(/[ML]/)
      .slice(1)
      .map((point) => Number(point.split(' ')[1])),
  );
  // Axis from 0 to 5: the raw peak lies at the top, and the average of (0, 0, 5, 0, 0), 1, a fifth of the way up.
  const height = raw![0]! - raw![2]!;
  expect((raw![0]! - smooth![2]!) / height).toBeCloseTo(1 / 5, 3);
  expect((raw![0]! - smooth![0]!) / height).toBeCloseTo(1 / 3, 3); // of three steps only
});

test('a calibrated bin lies on the diagonal, with its Wilson interval', () => {
  const svg = reliabilityPlot('test', [{ name: 'a', series: 0, bins: [{ count: 10, predicted: 0.8, observed: 0.8 }] }]);
  const at = (name: string): number => Number(attributes(svg, 'diagonal', name)[0]);
  const share = (value: number, from: number, to: number): number => (value - from) / (to - from);
  expect(share(Number(attributes(svg, 'marker', 'cx')[0]), at('x1'), at('x2'))).toBeCloseTo(0.8, 3);
  expect(share(Number(attributes(svg, 'marker', 'cy')[0]), at('y1'), at('y2'))).toBeCloseTo(0.8, 3);
  expect(share(Number(attributes(svg, 'whisker', 'y1')[0]), at('y1'), at('y2'))).toBeCloseTo(0.49, 3);
  expect(share(Number(attributes(svg, 'whisker', 'y2')[0]), at('y1'), at('y2'))).toBeCloseTo(0.943, 3);
});
