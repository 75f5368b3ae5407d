import { describe, expect, test } from 'vitest';
import { accessibilityFaults } from '../../tests/accessibility.js';
import { learningCurvePlot } from './plots/learning-curve-plot.js';
import { featuresName, probeStudyHtml } from './probe-study.js';
import type { ProbeStudyReport } from './probe-study.js';

const estimate = (value: number, low = value - 0.1, high = value + 0.1) => ({ value, interval: [low, high] as const });
const metrics = (auroc: number) => ({
  auroc: estimate(auroc),
  averagePrecision: estimate(0.4),
  calibrationError: estimate(0.05, 0.03, 0.09),
});
const row = (layer: number, pooling: string, auroc: number, behind: number) => ({
  kind: 'probe' as const,
  features: [{ layer, pooling }],
  head: 'counts',
  labels: 500,
  l2: 0.1,
  validationLoss: 0.3 + behind,
  behind: estimate(behind, behind - 0.02, behind + 0.02),
  ...metrics(auroc),
});

const study: ProbeStudyReport = {
  title: '<run>',
  model: { name: 'generator' },
  band: { min: 1, max: 3 },
  k: 8,
  tasks: { train: 375, validation: 125, test: 120 },
  baseRate: 0.152,
  layers: [0, 1],
  rows: [
    row(1, 'mean', 0.8, 0),
    row(1, 'last', 0.65, 0.01),
    row(0, 'mean', 0.5, 0.05),
    { ...row(0, 'mean', 0.6, 0.2), kind: 'length', features: [] },
  ],
  curve: [
    {
      labels: 500,
      inBand: 76,
      features: [{ layer: 1, pooling: 'mean' }],
      head: 'counts',
      l2: 0.1,
      test: metrics(0.78),
      otherDraws: [],
      byType: { code_i: { tasks: 80, inBand: 1, auroc: null }, code_o: { tasks: 40, inBand: 9, auroc: estimate(0.7) } },
      baselines: { length: { head: 'band', test: metrics(0.55) }, ngram: { head: 'counts', test: metrics(0.7) } },
      over: { length: estimate(0.23), ngram: estimate(0.08, -0.01, 0.17) },
    },
  ],
  warnings: [],
  recommended: true,
  yaml: 'probe:\n  head: counts\n',
};

describe('the page', () => {
  const html = probeStudyHtml(study);

  test('can be read with a keyboard and a screen reader', async () => {
    expect(await accessibilityFaults(html)).toEqual([]);
  });
  test('says what was chosen, and what it measured once on the test tasks', () => {
    expect(html).toContain('<b>1.mean</b>, head\n<b>counts</b>, penalty 0.1');
    expect(html).toContain('<td>0.780 (0.680–0.880)</td>');
    expect(html).toContain('Its AUROC is +0.080 (−0.010 to +0.170) above token n-grams');
    expect(html).toContain('>probe:\n  head: counts\n</pre>');
    expect(html).toContain('<p>To train the run’s probes on these features:</p>');
  });

  test('recommends nothing where the choice beats no baseline, and says why', () => {
    const warnings = ['the chosen probe is <below> length alone'];
    const doubted = probeStudyHtml({ ...study, warnings, recommended: false });
    expect(doubted).toContain('<li>the chosen probe is &lt;below&gt; length alone</li>');
    expect(doubted).toContain('So nothing is recommended.');
    expect(doubted).not.toContain('<p>To train the run’s');
  });

  test('colours layers and poolings by what they are above guessing, the best most', () => {
    const cells = [...html.matchAll(/--heat: (\d+)%" title="([^"]+)">([\d.]+)</g)].map(([, heat, title, value]) => [
      title!.split(':')[0],
      value,
      heat,
    ]);
    // 0.65 is half of the way from 0.5 to 0.8.
    expect(cells).toEqual([
      ['counts, 0.mean', '0.500', '0'],
      ['counts, 1.mean', '0.800', '55'],
      ['counts, 1.last', '0.650', '28'],
    ]);
  });

  test('counts the candidates that are not told apart from the best', () => {
    expect(html).toMatch(/2 of\n3 probes, the best among them, are not told apart from the best/);
    expect(html).toContain('<td>length alone</td>');
  });

  test('measures each kind of task apart where there are several', () => {
    expect(html).toContain('<tr><td>code_i</td><td>80</td><td>1</td><td>–</td></tr>');
    expect(html).toContain('<tr><td>code_o</td><td>40</td><td>9</td><td>0.700 (0.600–0.800)</td></tr>');
    const [point] = study.curve;
    const alone = { ...study, curve: [{ ...point!, byType: { code_o: point!.byType['code_o']! } }] };
    expect(probeStudyHtml(alone)).not.toContain('of type');
  });

  test('escapes what it did not write', () => {
    expect(html).toContain('<title>&lt;run&gt;, probe study · propel</title>');
    expect(html).not.toContain('<run>');
  });
});

test('features have a short name', () => {
  expect(
    featuresName([
      { layer: 1, pooling: 'mean' },
      { layer: 3, pooling: 'last' },
    ]),
  ).toBe('1.mean + 3.last');
});

test('a learning curve: doubling is one step to the right, an interval and further draws at each number', () => {
  const point = (size: number) => ({ size, value: 0.7, interval: [0.6, 0.8] as const, others: [0.72] });
  const svg = learningCurvePlot({
    description: 'AUROC by labels',
    xName: 'labels',
    yName: 'AUROC',
    format: String,
    curves: [{ name: 'probe', series: 1, points: [250, 500, 1000].map(point) }],
    level: 0.5,
  });
  const ticks = [...svg.matchAll(/<text x="([\d.]+)"[^>]*>(250|500|1000)</g)].map(([, x]) => Number(x));
  expect(ticks).toHaveLength(3);
  expect(ticks[1]! - ticks[0]!).toBeCloseTo(ticks[2]! - ticks[1]!, 1);
  expect(svg.match(/whisker thin/g)).toHaveLength(3);
  expect(svg).toContain('probe, 250 labels: 0.7 (0.6–0.8); other draws 0.72');
});
