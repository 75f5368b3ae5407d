/** The plots of a comparison: where marks and names stand. */
import { describe, expect, it } from 'vitest';
import { scatterPlot } from './scatter-plot.js';
import { seedPlot } from './seed-plot.js';

/** An attribute of every element with that name and class, in order. */
function numbers(svg: string, tag: string, className: string, attribute: string): number[] {
  const tags = svg.match(new RegExp(`<${tag} [^>]*>`, 'g')) ?? [];
  return tags
    .filter((text) => new RegExp(`class="${className}\\b`).test(text))
    .map((text) => Number(new RegExp(` ${attribute}="([^"]*)"`).exec(text)![1]));
}

describe('seedPlot', () => {
  const svg = seedPlot({
    description: 'test',
    valueName: 'in band / all',
    level: { name: 'base', value: 0.1 },
    groups: [
      {
        heading: 'family',
        rows: [
          { name: 'base', series: 0, mean: 0.1, interval: [0.08, 0.12], seeds: [0.09, 0.11] },
          { name: 'propel', series: 1, mean: 0.4, interval: [0.38, 0.42], seeds: [0.3, 0.5] },
        ],
      },
    ],
  });

  it('draws bars from zero to the means: four times as long', () => {
    const [base, propel] = numbers(svg, 'rect', 'bar', 'width');
    expect(propel! / base!).toBeCloseTo(4, 2);
  });

  it('puts a dot at every seed, and the level where its bar ends', () => {
    const [, , low, high] = numbers(svg, 'circle', 'marker', 'cx');
    const start = numbers(svg, 'rect', 'bar', 'x')[1]!;
    expect((high! - start) / (low! - start)).toBeCloseTo(5 / 3, 2);
    const [level] = numbers(svg, 'line', 'diagonal', 'x1');
    expect(level! - start).toBeCloseTo(numbers(svg, 'rect', 'bar', 'width')[0]!, 1);
  });
});

describe('scatterPlot', () => {
  it('keeps names apart that stand at the same place, and inside the frame', () => {
    const points = ['a', 'b', 'c', 'd', 'e'].map((name) => ({
      name: `propel-${name}`,
      series: 1,
      x: 12_000,
      y: 0.3,
      interval: null,
    }));
    const svg = scatterPlot({
      description: 'test',
      xName: 'trials',
      yName: 'lift',
      xFormat: String,
      yFormat: String,
      points: [...points, { name: 'gate', series: 4, x: 0, y: 0, interval: [-0.1, 0.1] }],
    });
    const heights = [...svg.matchAll(/<text x="[^"]*" y="([^"]*)" class="tick">propel-/g)].map((found) =>
      Number(found[1]),
    );
    const sorted = [...heights].sort((a, b) => a - b);
    expect(heights).toHaveLength(5);
    for (let i = 1; i < sorted.length; i++) expect(sorted[i]! - sorted[i - 1]!).toBeGreaterThanOrEqual(14.9);
    expect(sorted[0]!).toBeGreaterThan(0);
  });
});
