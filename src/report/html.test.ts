import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { accessibilityFaults } from '../../tests/accessibility.js';
import { type Generation, summariseEvaluation, summariseRates, topicShares } from '../metrics/frontier.js';
import { wilsonInterval } from '../metrics/interval.js';
import { percent, percentRange } from './format.js';
import { reportHtml, writeReport } from './html.js';
import type { ReportData } from './report-data.js';
import { type ArmDiversity, armResult, writeResults } from './results.js';

const BAND = { min: 1, max: 3, of: 8 };
const HOSTILE = 'def f(x):\n    return "</pre><script>alert(1)</script>" if x < 3 else \'&\'\n>>> f(1)\n';

function generations(inBand: number): Generation[] {
  return Array.from({ length: 100 }, (_, index) => ({
    type: 'code_o',
    valid: index < 80,
    passes: index < inBand ? 2 : index < 80 ? 8 : null,
    text: `task ${index}`,
    topic: index % 3 === 0 ? 'for_loop' : 'slicing',
  }));
}

const DIVERSITY: ArmDiversity = {
  texts: 80,
  duplicates: { exact: 0.05, near: 0.25 },
  novelty: { share: 0.4, interval: [0.3, 0.5], meanDistance: 0.125 },
  effectiveTopics: { value: 1.9, interval: [1.7, 2] },
  coverage: {
    cells: { value: 21.5, interval: [18.25, 24.75] },
    effectiveCells: { value: 9.5, interval: [8, 11] },
  },
  structure: { depth: 6.5, cyclomatic: 1.25, lines: 2.75, variables: 0.5 },
};

const arms = { base: generations(10), propel: generations(40) };
const data: ReportData = {
  title: 'azr-micro <test>',
  band: BAND,
  results: {
    seed: 3,
    versions: { propel: '0.1.0' },
    config: { rl: { steps: 2 } },
    topicRules: 'code-1',
    warnings: ['arm propel: its training <collapsed>'],
    arms: Object.entries(arms).map(([name, rows]) => {
      const trained = name === 'propel';
      return armResult(summariseEvaluation(rows, BAND), {
        name,
        seed: 3,
        training: trained
          ? { status: 'collapsed', reason: 'KL of 9.00 nats a sequence, above 8', steps: 2, evaluatedStep: 1 }
          : null,
        seenBefore: { valid: 4, frontier: trained ? 3 : 0 },
        diversity: DIVERSITY,
        byType: { code_o: summariseRates(rows, BAND) },
        klPerSequence: trained ? 2.5 : null,
        clippedShare: trained ? 0.01 : null,
        claimedInBand: trained ? 0.6 : null,
        measuredInBand: trained ? 0.5 : null,
        solverTrials: { offline: trained ? 12_000 : 0, inLoop: 0 },
        seconds: trained ? { label: 40, evaluate: 10 } : { evaluate: 9 },
      });
    }),
    curves: [
      {
        arm: 'propel',
        steps: [1, 2].map((step) => ({
          step,
          rewardMean: step,
          rewardSd: 1,
          validity: 0.5,
          klPerSequence: 0.1 * step,
          gradientNorm: 0.5,
          loss: -0.1,
          entropy: 0.7,
          clippedShare: 0,
          claimedInBand: 0.4,
          solverTrials: 0,
          // 12 of 48 in band: Wilson 14.9 to 38.8%.
          measured: step === 1 ? null : { inBand: 12, of: 48, rate: 0.25, interval: wilsonInterval(12, 48) },
        })),
      },
    ],
    probes: [
      {
        name: 'probe-0',
        features: 'mean of layer 1',
        auroc: { value: 0.8, interval: [0.75, 0.85] },
        averagePrecision: { value: 0.4, interval: [0.3, 0.5] },
        calibrationError: 0.02,
        reliability: [{ count: 50, predicted: 0.2, observed: 0.18 }],
        edits: null,
        warnings: [],
      },
      {
        name: 'length',
        features: 'tokens',
        auroc: { value: 0.6, interval: [0.55, 0.65] },
        averagePrecision: { value: 0.2, interval: [0.15, 0.25] },
        calibrationError: null,
        reliability: [],
        edits: null,
        warnings: [],
      },
    ],
  },
  topics: Object.entries(arms).map(([arm, rows]) => ({ arm, shares: topicShares(rows.map(({ topic }) => topic)) })),
  samples: [
    {
      arm: 'propel',
      tasks: [
        { type: 'code_o', text: HOSTILE, valid: true, outcome: 'ok', output: "'<b>'", topic: 'for_loop', passes: 2 },
        {
          type: 'code_o',
          text: 'f(',
          valid: false,
          outcome: 'syntax_error',
          output: null,
          topic: 'unparsable',
          passes: null,
        },
      ],
    },
  ],
};
const html = reportHtml(data);

/** Names of the elements left open, and of closing tags without an opening one. */
function unbalanced(markup: string): string[] {
  const open: string[] = [];
  const withoutContent = new Set(['meta']);
  for (const [, closing, name] of markup.replace(/<style>.*?<\/style>/s, '').matchAll(/<(\/?)([a-z]\w*)[^>]*>/gi)) {
    if (withoutContent.has(name!)) continue;
    if (closing === '') open.push(name!);
    else if (open.at(-1) === name) open.pop();
    else return [...open, `/${name}`];
  }
  return open;
}

describe('the report', () => {
  test('says how many of the tasks in band are not new', () => {
    expect(html).toContain('<td>propel</td><td>100</td><td>100</td><td>80</td><td>40</td><td>3</td>');
  });

  test('is one well-formed file that fetches nothing and runs nothing', () => {
    expect(unbalanced(html)).toEqual([]);
    expect(html).not.toMatch(/<script|<link|<img|src=|href=|url\(|@import/);
  });

  test('shows what a model wrote as text, never as markup', () => {
    expect(html).toContain('&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;');
    expect(html).toContain('azr-micro &lt;test&gt;');
  });

  test('compares the arms in words, with the table and its intervals', () => {
    expect(html).toContain('40.0% of all generations in\nband, 4.0 × base (the 95% intervals do not overlap)');
    expect(html).toContain('<td>40.0% (30.9–49.8)</td>');
    expect(html).toContain('<td>12,000 + 0</td>');
  });

  test('says first what must be known of an arm, and flags it in the table', () => {
    expect(html).toContain('<ul class="summary invalid"><li>arm propel: its training &lt;collapsed&gt;</li></ul>');
    expect(html).toContain('>training</th>');
    expect(html).toContain('<td>collapsed at 2, measured at 1</td>');
    const healthy = data.results.arms.map((arm) => ({ ...arm, training: null }));
    const quiet = reportHtml({ ...data, results: { ...data.results, warnings: [], arms: healthy } });
    expect(quiet).not.toContain('collapsed');
    expect(quiet).not.toContain('>training</th>');
  });

  test('warns of a probe beside its figures, where there is one to warn of', () => {
    expect(html).not.toContain('>warning</th>');
    const [probe, length] = data.results.probes;
    const probes = [{ ...probe!, warnings: ['is <no> better', 'is below'] }, length!];
    expect(reportHtml({ ...data, results: { ...data.results, probes } })).toContain(
      '<td>is &lt;no&gt; better; is below</td></tr>',
    );
  });

  test('shows how many tokens the clip moved, where it moved any', () => {
    expect(html).not.toContain('Clipped tokens');
    const curves = data.results.curves.map(({ arm, steps }) => ({
      arm,
      steps: steps.map((step) => ({ ...step, clippedShare: 0.125 })),
    }));
    expect(reportHtml({ ...data, results: { ...data.results, curves } })).toContain(
      'Share of clipped tokens over training steps',
    );
  });

  test('shows how diverse the valid tasks are, and under which rules topics were told', () => {
    expect(html).toContain('measured on 80 of each arm. Topics by the rules code-1.');
    // 27 + 27 of indices 0 to 79 that are no multiple of 3 are slicing: 53 of 80.
    expect(html).toContain(
      '<td>5.0%</td><td>25.0%</td><td>40.0% (30.0–50.0)</td><td>0.125</td><td>66.3% (55.4–75.7)</td>' +
        '<td>1.9</td><td>21.5 (18.3–24.8)</td><td>9.5</td><td>6.5 / 1.3 / 2.8 / 0.5</td>',
    );
  });

  test('tells task types apart where there are several', () => {
    expect(html).not.toContain('By task type');
    const byType = { code_o: data.results.arms[0]!.byType['code_o']!, code_i: data.results.arms[1]!.byType['code_o']! };
    const typed = data.results.arms.map((arm) => ({ ...arm, byType }));
    const several = reportHtml({ ...data, results: { ...data.results, arms: typed } });
    expect(unbalanced(several)).toEqual([]);
    expect(several).toContain(
      '<td>code_i</td><td class="wide">propel</td><td>100</td><td>80.0%</td><td>40.0% (30.9–49.8)</td><td>50.0%</td>',
    );
  });

  test('counts ungraded tasks in every table of rates where there are any, and nowhere else', () => {
    expect(html).not.toContain('ungraded');
    // Two of the forty tasks in band lost attempts: 38 of 98 are in band.
    const rows = arms.propel.map((row, i) => (i < 2 ? { ...row, passes: null } : row));
    const [base, propel] = data.results.arms;
    const lossy = { ...propel!, ...summariseEvaluation(rows, BAND) };
    const typed = [base!, lossy].map((arm) => {
      const rates = summariseRates(arm === lossy ? rows : arms.base, BAND);
      return { ...arm, byType: { code_o: rates, code_i: rates } };
    });
    const shown = reportHtml({ ...data, results: { ...data.results, arms: typed } });
    expect(unbalanced(shown)).toEqual([]);
    expect(shown.match(/>ungraded</g)).toHaveLength(3);
    expect(shown).toContain('<td>propel</td><td>100</td><td>100</td><td>80</td><td>38</td><td>3</td><td>2</td>');
    expect(shown).toContain(`<td>${percent(38 / 98)} (${percentRange(wilsonInterval(38, 98))})</td>`);
    expect(shown).not.toMatch(/NaN|Infinity|undefined/);
  });

  test('has a plot for each question', () => {
    const descriptions = [...html.matchAll(/<svg[^>]* aria-label="([^"]*)"/g)].map(([, description]) => description);
    expect(descriptions).toEqual([
      'Frontier rate and unique frontier rate of each arm with 95% intervals',
      'In band of valid, and validity of each arm with 95% intervals',
      'Share of generations by the number of attempts that the solver passed, for each arm',
      'Share of the most frequent topic of each arm with 95% intervals',
      'Cells of the structural feature space that each arm occupies, with 95% intervals',
      'Share of valid tasks by topic, for each arm',
      'Mean reward over training steps',
      'Validity over training steps',
      'Frontier rate over training steps: claimed by the probe, and measured by the solver at the end',
      'KL per sequence over training steps',
      'Share of tasks in band against predicted probability, for each probe',
    ]);
    expect(html).not.toMatch(/NaN|Infinity|undefined/);
  });

  test('can be read with a keyboard and a screen reader', async () => {
    expect(await accessibilityFaults(html)).toEqual([]);
  });

  test('what the solver measured on the way has its interval', () => {
    expect(html).toContain('<title>propel, step 2: 25% (14.9%–38.8%)</title>');
    expect(html).toMatch(/<line [^>]*class="whisker thin series-1"/);
  });

  test('probes have intervals', () => {
    expect(html).toContain('<td>0.800 (0.750–0.850)</td>');
  });

  test('how far idle edits move a probe stands beside it, where that was searched', () => {
    const edits = {
      tasks: 48,
      perTask: 28,
      rise: { value: 2.117, interval: [1.802, 2.449] },
      lifted: { count: 39, of: 42, interval: wilsonInterval(39, 42) },
      kinds: [],
    } as const;
    const [probe, length] = data.results.probes;
    const probes = [{ ...probe!, edits }, length!];
    const written = reportHtml({ ...data, results: { ...data.results, probes } });
    expect(written).toContain('<td>2.12 (1.80–2.45)</td><td>39 of 42</td>');
    expect(html).not.toContain('idle edits');
  });

  test('samples carry their passes, or why they are not valid', () => {
    expect(html).toContain('2 of 8 · in band');
    expect(html).toContain('invalid: syntax error');
  });

  test('leaves out what a run has not reached', () => {
    const early = reportHtml({
      ...data,
      results: { ...data.results, curves: [], probes: [] },
      samples: [],
      topics: [],
    });
    expect(unbalanced(early)).toEqual([]);
    expect(early).not.toMatch(/NaN|Infinity|undefined|<h2>(Training|Probes|Sample tasks)/);
    const empty = reportHtml({
      ...data,
      results: { ...data.results, arms: [], curves: [] },
      topics: [],
      samples: [],
    });
    expect(empty).not.toMatch(/NaN|Infinity|undefined/);
  });
});

test('both files are written whole, and the results read back', () => {
  const folder = mkdtempSync(join(tmpdir(), 'propel-report-'));
  writeReport(join(folder, 'report.html'), data);
  writeResults(join(folder, 'results.json'), data.results);
  expect(readFileSync(join(folder, 'report.html'), 'utf8')).toBe(html);
  expect(JSON.parse(readFileSync(join(folder, 'results.json'), 'utf8'))).toEqual(data.results);
  rmSync(folder, { recursive: true });
});
