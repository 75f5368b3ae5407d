import { describe, expect, it } from 'vitest';
import { accessibilityFaults } from '../../tests/accessibility.js';
import { comparisonClaims } from './comparison-claims.js';
import { comparisonHtml } from './comparison-html.js';
import { claimLines, comparisonTable } from './comparison-table.js';
import { compareArms } from './comparison.js';
import type { ArmSetup, Comparison } from './comparison.js';
import type { ArmResult, Results } from './results.js';

const HOSTILE = '</td><script>alert(1)</script>';

const SETUPS: ArmSetup[] = [
  ['base', 'none', null, []],
  ['sil', 'solver', null, []],
  ['sil-matched-trials', 'solver', null, ['12000 trials']],
  ['propel', 'probe', null, []],
  ['propel-wco', 'probe', null, ['2 probes']],
  ['propel-wco4', 'probe', null, ['4 probes']],
  ['propel-adversarial', 'probe', null, ['adversarial']],
  ['propel-crowding', 'probe', null, ['crowding by topic']],
  ['validity-only', 'valid', null, []],
  ['random-reward', 'random', null, []],
  ['length-reward', 'length', null, []],
  ['transfer-base', 'none', HOSTILE, []],
  ['transfer', 'probe', HOSTILE, []],
].map(([name, reward, policy, variation]) => ({
  name,
  reward,
  policy,
  variation,
  base: policy === null ? 'base' : 'transfer-base',
})) as ArmSetup[];

function result(name: string, seed: number): ArmResult {
  const frontier = name.endsWith('base') ? 50 : 150 + seed;
  const type = { n: 250, valid: 200, frontier: frontier / 2, passCounts: [200 - frontier / 2, frontier / 2] };
  return {
    name,
    seed,
    n: 500,
    valid: 400,
    frontier,
    frontierRate: frontier / 500,
    uniqueFrontierRate: frontier / 500,
    passCounts: [400 - frontier, frontier],
    topTopic: { name: 'sorting_order', share: 0.5 },
    selfBleu3: 0.8,
    distinct3: 0.1,
    klPerSequence: 1,
    claimedInBand: 0.6,
    measuredInBand: 0.5,
    diversity: { texts: 400, duplicates: null, novelty: null, effectiveTopics: null, coverage: null, structure: null },
    byType: { code_o: type, code_i: type },
    solverTrials: { offline: 12_000, inLoop: 0 },
    seconds: { evaluate: 60 },
  } as unknown as ArmResult;
}

function comparison(seeds: readonly number[]): Comparison {
  const runs = seeds.map(
    (seed) => ({ seed, arms: SETUPS.map(({ name }) => result(name, seed)) }) as unknown as Results,
  );
  const arms = compareArms(SETUPS, runs);
  return {
    name: `a & ${HOSTILE}`,
    seeds,
    missing: [{ seed: 9, why: `ended by ${HOSTILE}` }],
    band: { min: 1, max: 3, of: 8 },
    arms,
    claims: comparisonClaims(arms, seeds),
    versions: {},
    config: {},
  };
}

describe('the report of a comparison', () => {
  const html = comparisonHtml(comparison([0, 2, 4]));

  it('can be read with a keyboard and a screen reader', async () => {
    expect(await accessibilityFaults(html)).toEqual([]);
  });

  it('holds every section and figure', () => {
    const headings = [...html.matchAll(/<h2>(.*?)<\/h2>/g)].map(([, heading]) => heading);
    expect(headings).toEqual([
      'Claims',
      'Arms',
      'Probe against solver in the loop',
      'Mode collapse',
      'Across families',
      'Task types',
    ]);
    expect(html.match(/<svg viewBox/g)).toHaveLength(5);
  });

  it('names every arm beside its bar, and draws every seed', () => {
    const frontier = /<svg viewBox[^>]*aria-label="Frontier rate by arm.*?<\/svg>/.exec(html)![0];
    for (const { name } of SETUPS) expect(frontier).toContain(`>${name}</text>`);
    expect(frontier.match(/<circle/g)).toHaveLength(3 * SETUPS.length);
    expect(frontier).toContain('<title>propel: 30.4%, 95% interval 28.1%–32.8%</title>');
  });

  it('tells the counts behind a cell', () => {
    expect(html).toContain('<td title="n = 1,500, of these 456; seeds 30.0 30.4 30.8; pooled 95% 28.1–32.8">30.4%');
  });

  it('shows how diverse the valid tasks are: every seed beside the mean, and a dash where nothing is known', () => {
    const measured = (seed: number, near: number, novel: number, cells: number) => ({
      ...result('base', seed),
      diversity: {
        duplicates: { exact: 0, near },
        novelty: { share: novel },
        effectiveTopics: { value: 5 + seed / 2 },
        coverage: { cells: { value: cells }, effectiveCells: { value: cells / 2 } },
      },
    });
    const runs = [
      { seed: 0, arms: [measured(0, 0.25, 0.75, 30)] },
      { seed: 2, arms: [measured(2, 0.35, 0.85, 33)] },
    ] as unknown as Results[];
    const arms = compareArms(SETUPS.slice(0, 1), runs);
    const rows = /<h3>Diversity of valid tasks<\/h3>.*?<tbody>(.*?)<\/tbody>/s;
    const cellsOf = (page: string): string[] =>
      [
        ...rows
          .exec(page)![1]!
          .split('</tr>')[0]!
          .matchAll(/<td[^>]*>(.*?)<\/td>/g),
      ].map(([, cell]) => cell!);
    expect(cellsOf(comparisonHtml({ ...comparison([0, 2]), arms, claims: [] }))).toEqual([
      'base',
      '30.0%<small>25.0 35.0</small>',
      '80.0%<small>75.0 85.0</small>',
      '5.5',
      '31.5',
      '15.8',
    ]);
    expect(cellsOf(html)).toEqual(['base', '–<small>– – –</small>', '–<small>– – –</small>', '–', '–', '–']);
  });

  it('names the seeds whose training collapsed, and why, where there are any', () => {
    expect(html).not.toContain('>collapsed<');
    const training = { status: 'collapsed', reason: 'KL <of> 9', steps: 23, evaluatedStep: 20 } as const;
    const runs = [0, 2].map((seed) => ({
      seed,
      arms: SETUPS.map(({ name }) => ({
        ...result(name, seed),
        training: seed === 2 && name === 'propel' ? training : null,
      })),
    }));
    const arms = compareArms(SETUPS, runs as unknown as Results[]);
    expect(arms.find(({ name }) => name === 'propel')!.collapsed).toEqual([{ seed: 2, reason: 'KL <of> 9' }]);
    const shown = { ...comparison([0, 2]), arms };
    expect(comparisonHtml(shown)).toContain('<td title="seed 2: KL &lt;of&gt; 9">seed 2</td>');
    expect(comparisonTable(shown)).toMatch(/ collapsed\n.*\n(.*\n)*propel .* seed 2\n/);
  });

  it('counts ungraded tasks where there are any, with rates in band over the others', () => {
    expect(html).not.toContain('ungraded');
    // Of a seed’s 400 valid tasks ten in band and ten out of it lost attempts.
    const lossy = { ...result('base', 0), frontier: 40, passCounts: [340, 40] };
    const arms = compareArms(SETUPS.slice(0, 1), [{ seed: 0, arms: [lossy] }] as unknown as Results[]);
    expect(arms[0]).toMatchObject({ n: 500, ungraded: 20, frontierRate: { pooled: { count: 40, of: 480 } } });
    expect(arms[0]).toMatchObject({ inBandOfValid: { pooled: { count: 40, of: 380 } }, validity: { mean: 0.8 } });
    const shown = comparison([0]);
    expect(comparisonHtml({ ...shown, arms, claims: [] })).toContain('<td title="of 500 over all seeds">20');
    expect(comparisonTable({ ...shown, arms })).toMatch(/ungraded\n.*\nbase .* 20\n/);
    expect(comparisonTable(shown)).not.toContain('ungraded');
  });

  it('links each seed’s own report, and says which seed is missing', () => {
    expect(html).toContain('<a href="seed-4/report.html">4</a>');
    expect(html).toContain('Seed 9: ended by');
  });

  it('escapes what comes from outside', () => {
    expect(html).not.toContain('<script>');
    expect(html).toContain('&lt;script&gt;');
  });

  it('needs neither every arm nor several seeds', () => {
    const runs = [{ seed: 0, arms: [result('base', 0)] } as unknown as Results];
    const arms = compareArms(SETUPS.slice(0, 1), runs);
    const alone = comparisonHtml({ ...comparison([0]), missing: [], arms, claims: comparisonClaims(arms, [0]) });
    expect(alone).toContain('one seed');
    expect(alone).not.toContain('Not in this report');
    expect(alone).not.toMatch(/NaN|undefined|Infinity/);
    expect(html).not.toMatch(/NaN|undefined|Infinity/);
  });
});

describe('a comparison on a terminal', () => {
  it('is a row an arm, and a line a claim', () => {
    const rows = comparisonTable(comparison([0, 2, 4]))
      .trimEnd()
      .split('\n');
    expect(rows).toHaveLength(2 + SETUPS.length);
    expect(rows[5]).toMatch(/^propel +30\.4% \(30\.0 30\.4 30\.8\) +3\.04 +38\.0% \(35\.3–40\.8\) .* 12,000 \(\+ 0\)$/);
    const claims = claimLines(comparison([0, 2])).split('\n');
    expect(claims[0]).toBe(
      'does not hold  at least 3 seeds, and 500 fresh generations of every arm and seed: 2 seeds, at least 500 generations',
    );
    expect(claims[1]).toMatch(/^holds +propel: mean frontier rate/);
  });
});
