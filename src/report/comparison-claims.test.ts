import { describe, expect, it } from 'vitest';
import { CLAIM_THRESHOLDS, comparisonClaims } from './comparison-claims.js';
import { armRoles, compareArms, overSeeds, rate, trialsOf } from './comparison.js';
import type { ArmSetup, Claim, Verdict } from './comparison.js';
import type { ArmResult, Results } from './results.js';

const setup = (name: string, reward: string, more: Partial<ArmSetup> = {}): ArmSetup => ({
  name,
  reward,
  policy: null,
  base: 'base',
  variation: [],
  ...more,
});

const SETUPS: Readonly<Record<string, ArmSetup>> = Object.fromEntries(
  [
    setup('base', 'none'),
    setup('sil', 'solver'),
    setup('sil-matched-trials', 'solver', { variation: ['12000 trials'] }),
    setup('propel', 'probe'),
    setup('propel-wco', 'probe', { variation: ['2 probes'] }),
    setup('propel-crowding', 'probe', { variation: ['crowding by topic'] }),
    setup('validity-only', 'valid'),
    setup('random-reward', 'random'),
    setup('length-reward', 'length'),
    setup('transfer-base', 'none', { policy: 'other', base: 'transfer-base' }),
    setup('transfer', 'probe', { policy: 'other', base: 'transfer-base' }),
  ].map((arm) => [arm.name, arm]),
);

/** Counts of one seed of 500 generations; `top` is the share of the most frequent topic. */
interface Seed {
  readonly frontier: number;
  readonly valid: number;
  readonly top?: number;
  readonly offline?: number;
  readonly inLoop?: number;
  readonly n?: number;
}

function result(name: string, seed: number, counts: Seed): ArmResult {
  const { frontier, valid, top = 0.25, offline = 0, inLoop = 0, n = 500 } = counts;
  return {
    name,
    seed,
    n,
    unique: n,
    valid,
    frontier,
    frontierRate: frontier / n,
    uniqueFrontierRate: frontier / n,
    passCounts: [valid - frontier, frontier, 0, 0, 0, 0, 0, 0, 0],
    topTopic: { name: 'sorting_order', share: top },
    klPerSequence: null,
    claimedInBand: null,
    measuredInBand: null,
    selfBleu3: null,
    distinct3: null,
    diversity: {
      texts: valid,
      duplicates: null,
      novelty: null,
      effectiveTopics: null,
      coverage: null,
      structure: null,
    },
    byType: {
      code_o: {
        n: 250,
        valid: 200,
        frontier: Math.floor(frontier / 2),
        passCounts: [200 - Math.floor(frontier / 2), Math.floor(frontier / 2)],
      },
    },
    solverTrials: { offline, inLoop },
    seconds: { evaluate: 2 },
  } as unknown as ArmResult;
}

/** Every arm with its three seeds. */
function compare(arms: Readonly<Record<string, readonly Seed[]>>) {
  const names = Object.keys(arms);
  const seeds = Object.values(arms)[0]!.map((_, seed) => seed);
  const runs = seeds.map((seed) => ({ seed, arms: names.map((name) => result(name, seed, arms[name]![seed]!)) }));
  return compareArms(
    names.map((name) => SETUPS[name]!),
    runs as unknown as Results[],
  );
}

function claims(arms: Readonly<Record<string, readonly Seed[]>>): Map<string, Claim> {
  const seeds = Object.values(arms)[0]!.map((_, seed) => seed);
  return new Map(comparisonClaims(compare(arms), seeds).map((claim) => [claim.id, claim]));
}

const thrice = (counts: Seed): Seed[] => [counts, counts, counts];

/** Base: 50 of 500 in band, 10%; 400 valid, so 12.5% of valid. */
const BASE = thrice({ frontier: 50, valid: 400 });

describe('figures over seeds', () => {
  it('pool counts, and average seeds', () => {
    const frontier = rate([
      [40, 500],
      [60, 500],
      [50, 500],
    ]);
    expect(frontier.mean).toBeCloseTo(0.1, 12);
    // s = 0.02, t = 4.303: 4.303 · 0.02 / √3 = 0.04969.
    expect(frontier.interval![0]).toBeCloseTo(0.1 - 0.04969, 4);
    expect(frontier.pooled).toMatchObject({ count: 150, of: 1500, rate: 0.1 });
    // Wilson of 150 of 1500: centre 0.1010219…, half-width 0.0151858….
    expect(frontier.pooled.interval[0]).toBeCloseTo(0.08584, 4);
    expect(frontier.pooled.interval[1]).toBeCloseTo(0.11621, 4);
  });

  it('leave out what a seed has not', () => {
    expect(overSeeds([1, null, 3])).toMatchObject({ mean: 2, values: [1, null, 3] });
    expect(overSeeds([null, null])).toEqual({ mean: null, interval: null, values: [null, null] });
  });

  it('are given of each task type too', () => {
    const [base] = compare({ base: [40, 60].map((frontier) => ({ frontier, valid: 400 })) });
    expect(base!.byType['code_o']).toMatchObject({
      n: 500,
      frontierRate: { mean: 0.1, values: [0.08, 0.12], pooled: { count: 50, of: 500 } },
      inBandOfValid: { pooled: { count: 50, of: 400 } },
      validity: { mean: 0.8, pooled: { count: 400, of: 500 } },
    });
  });

  it('pair an arm with its own base, seed by seed', () => {
    const [, propel] = compare({
      base: [40, 50, 60].map((frontier) => ({ frontier, valid: 400 })),
      propel: [140, 100, 210].map((frontier) => ({ frontier, valid: 400, offline: 12_000 })),
    });
    const rounded = propel!.lift.values.map((value) => Number(value!.toFixed(12)));
    expect(rounded).toEqual([0.2, 0.1, 0.3]);
    expect(propel!.timesBase).toBeCloseTo(3, 12);
    expect(trialsOf(propel!)).toBe(12_000);
    expect(propel!.seconds.mean).toBe(2);
  });
});

describe('roles', () => {
  it('are told by the settings, not by the names', () => {
    const names = Object.keys(SETUPS);
    const roles = armRoles(compare(Object.fromEntries(names.map((name) => [name, BASE]))));
    const nameOf = (arm: { name: string } | undefined): string | undefined => arm?.name;
    expect(nameOf(roles.base)).toBe('base');
    expect(nameOf(roles.single)).toBe('propel');
    expect(roles.plain.map(nameOf)).toEqual(['propel', 'propel-wco']);
    expect(roles.mitigations.map(nameOf)).toEqual(['propel-wco', 'propel-crowding']);
    expect(nameOf(roles.solver)).toBe('sil');
    expect(nameOf(roles.solverMatchedTrials)).toBe('sil-matched-trials');
    expect(roles.transfers.map(({ arm, base }) => [arm.name, base.name])).toEqual([['transfer', 'transfer-base']]);
  });
});

describe('enough measured', () => {
  it('asks for three seeds of 500', () => {
    expect(claims({ base: BASE }).get('enough-measured')!.verdict).toBe('holds');
    expect(claims({ base: BASE.slice(1) }).get('enough-measured')).toMatchObject({
      verdict: 'does not hold',
      figures: '2 seeds, at least 500 generations',
    });
    const short = [...BASE.slice(1), { frontier: 50, valid: 400, n: 499 }];
    expect(claims({ base: short }).get('enough-measured')!.verdict).toBe('does not hold');
  });
});

describe('the lift', () => {
  it('needs 1.8 × base in the mean: 90 of 500 is 1.8 ×, 89 is not', () => {
    expect(claims({ base: BASE, propel: thrice({ frontier: 90, valid: 400 }) }).get('lift-propel')).toEqual({
      id: 'lift-propel',
      claim:
        "propel: mean frontier rate ≥ 1.8 × base's, and the low end of its pooled interval ≥ 1.5 × base's pooled rate",
      verdict: 'holds',
      // Wilson of 270 of 1500: centre 0.18082, half-width 0.01943.
      figures: '10.0% (10.0, 10.0, 10.0) → 18.0% (18.0, 18.0, 18.0), × 1.80; pooled 16.1–20.0% against 15.0%',
    });
    expect(claims({ base: BASE, propel: thrice({ frontier: 89, valid: 400 }) }).get('lift-propel')!.verdict).toBe(
      'does not hold',
    );
  });

  it('needs the low end at 1.5 × base too: of 90 of 500 in one seed alone it is 14.9%', () => {
    const propel = [{ frontier: 90, valid: 400 }];
    expect(claims({ base: BASE.slice(2), propel }).get('lift-propel')!.verdict).toBe('does not hold');
  });

  it('is asked of ensembles too, not of mitigations', () => {
    const arm = thrice({ frontier: 90, valid: 400 });
    const found = claims({ base: BASE, propel: arm, 'propel-wco': arm, 'propel-crowding': arm });
    expect([...found.keys()].filter((id) => id.startsWith('lift-'))).toEqual(['lift-propel', 'lift-propel-wco']);
  });
});

describe('beyond validity', () => {
  // In band / valid, pooled: base 150 of 1200 = 12.5%; validity-only 165 of 1500; propel 300 of 1200 = 25%.
  const arms = {
    base: BASE,
    propel: thrice({ frontier: 100, valid: 400 }),
    'validity-only': thrice({ frontier: 55, valid: 500 }),
    'random-reward': thrice({ frontier: 50, valid: 420 }),
    'length-reward': thrice({ frontier: 95, valid: 400 }),
  };

  it('is claimed of in band / valid, against each control', () => {
    const found = claims(arms);
    expect(found.get('of-valid')).toMatchObject({ verdict: 'holds', figures: expect.stringMatching(/× 2\.00$/) });
    expect(found.get('above-validity-only')!.verdict).toBe('holds');
    expect(found.get('above-random-reward')!.verdict).toBe('holds');
    // 285 of 1200: 21.4 to 26.2, against 22.6 to 27.5.
    expect(found.get('above-length-reward')).toMatchObject({
      verdict: 'does not hold',
      figures: '25.0% (22.6–27.5) against 23.8% (21.4–26.2)',
    });
  });

  it('has the random reward do as the gate alone: their difference is within 5 points', () => {
    // 150 of 1260, 10.2 to 13.8, and 165 of 1500, 9.5 to 12.7.
    expect(claims(arms).get('random-as-valid')).toMatchObject({
      verdict: 'holds',
      // Newcombe: 0.90 − √(1.676² + 1.688²), 0.90 + √(1.908² + 1.489²).
      figures: '11.9% (10.2–13.8) and 11.0% (9.5–12.7); difference −1.5 to 3.3 points',
    });
    const apart = { ...arms, 'random-reward': thrice({ frontier: 80, valid: 420 }) };
    expect(claims(apart).get('random-as-valid')).toMatchObject({
      verdict: 'does not hold',
      figures: expect.stringMatching(/difference 5\.\d to 1\d\.\d points$/),
    });
  });
});

it('too few generations to tell a difference from none judge no likeness', () => {
  // 3 of 30 and 2 of 40: overlapping intervals, which any two arms have when little was measured.
  const few = { 'validity-only': [{ frontier: 2, valid: 40 }], 'random-reward': [{ frontier: 3, valid: 30 }] };
  expect(claims({ base: BASE.slice(2), ...few }).get('random-as-valid')!.verdict).toBe('cannot be judged');
});

describe('what nothing was measured of', () => {
  const none = thrice({ frontier: 0, valid: 0 });

  it('a base with nothing in band cannot be multiplied', () => {
    const found = claims({ base: thrice({ frontier: 0, valid: 400 }), propel: thrice({ frontier: 90, valid: 400 }) });
    expect(found.get('lift-propel')).toMatchObject({
      verdict: 'cannot be judged',
      figures: expect.stringContaining('× –;'),
    });
    expect(found.get('of-valid')!.verdict).toBe('cannot be judged');
  });

  it('an arm without a valid task is neither above nor below another', () => {
    const found = claims({ base: BASE, propel: none, 'validity-only': BASE });
    expect(found.get('above-validity-only')!.verdict).toBe('cannot be judged');
    expect(found.get('of-valid')).toMatchObject({
      verdict: 'cannot be judged',
      figures: '12.5% (12.5, 12.5, 12.5) → – (–, –, –), × –',
    });
    expect(found.get('lift-propel')!.verdict).toBe('does not hold');
  });

  it('a single probe without a lift has none to keep', () => {
    const found = claims({
      base: BASE,
      propel: BASE,
      'propel-crowding': thrice({ frontier: 90, valid: 400, top: 0.1 }),
    });
    expect(found.get('mode-collapse')!.verdict).toBe('cannot be judged');
  });
});

it('thresholds are the comparison’s own settings', () => {
  const arms = compare({ base: BASE, propel: thrice({ frontier: 90, valid: 400 }) });
  const strict = comparisonClaims(arms, [0, 1, 2], { ...CLAIM_THRESHOLDS, timesBase: 1.9, generations: 600 });
  const verdicts = Object.fromEntries(strict.map(({ id, verdict }) => [id, verdict]));
  expect(verdicts).toMatchObject({ 'enough-measured': 'does not hold', 'lift-propel': 'does not hold' });
  expect(strict[1]!.claim).toMatch(/≥ 1\.9 × base's/);
});

describe('against the solver in the loop', () => {
  const trials = { offline: 12_000 };
  const sil = thrice({ frontier: 150, valid: 400, inLoop: 24_000 }); // 20 points of lift

  it('80% of the lift with fewer trials is enough: 16 points', () => {
    const found = claims({ base: BASE, sil, propel: thrice({ frontier: 130, valid: 400, ...trials }) });
    expect(found.get('solver-in-loop')).toMatchObject({
      verdict: 'holds',
      figures:
        'propel 16.0 points for 12,000 trials; sil 20.0 points for 24,000 trials: 80% of its lift, reached at matched steps',
    });
  });

  it('fewer points, or as many trials, are not', () => {
    const less = claims({ base: BASE, sil, propel: thrice({ frontier: 129, valid: 400, ...trials }) });
    expect(less.get('solver-in-loop')!.verdict).toBe('does not hold');
    const dear = claims({ base: BASE, sil, propel: thrice({ frontier: 140, valid: 400, offline: 24_000 }) });
    expect(dear.get('solver-in-loop')!.verdict).toBe('does not hold');
  });

  it('the lift of a solver in the loop that has spent as many trials is enough too', () => {
    const propel = thrice({ frontier: 120, valid: 400, ...trials });
    const matched = (frontier: number, inLoop: number): Verdict =>
      claims({ base: BASE, sil, 'sil-matched-trials': thrice({ frontier, valid: 400, inLoop }), propel }).get(
        'solver-in-loop',
      )!.verdict;
    expect(matched(120, 12_000)).toBe('holds');
    expect(matched(121, 12_000)).toBe('does not hold');
    // 12,000 are within 1.1 × 11,000, not within 1.1 × 10,900.
    expect(matched(120, 11_000)).toBe('holds');
    expect(matched(120, 10_900)).toBe('does not hold');
  });

  it('the best probe arm is the one with most lift', () => {
    const propel = thrice({ frontier: 60, valid: 400, ...trials });
    const wco = thrice({ frontier: 70, valid: 400, ...trials });
    expect(claims({ base: BASE, sil, propel, 'propel-wco': wco }).get('solver-in-loop')!.figures).toMatch(
      /^propel-wco 4\.0 points/,
    );
  });

  it('a solver in the loop that lifts nothing is no measure, neither of a gain nor of a loss', () => {
    const flat = thrice({ frontier: 50, valid: 400, inLoop: 24_000 });
    const worse = thrice({ frontier: 30, valid: 400, inLoop: 12_000 });
    const gained = thrice({ frontier: 70, valid: 400, ...trials });
    const lost = thrice({ frontier: 30, valid: 400, ...trials });
    expect(claims({ base: BASE, sil: flat, propel: gained }).get('solver-in-loop')).toMatchObject({
      verdict: 'cannot be judged',
      figures: expect.stringMatching(/: no share of its lift, no lift to reach at matched steps$/),
    });
    // Both fall by 4 points: to have fallen no further is no lift.
    const both = claims({ base: BASE, sil: flat, 'sil-matched-trials': worse, propel: lost });
    expect(both.get('solver-in-loop')).toMatchObject({
      verdict: 'cannot be judged',
      figures: expect.stringContaining('propel −4.0 points'),
    });
    // A lift at matched steps is one to judge by, whatever the arm at matched trials did.
    expect(claims({ base: BASE, sil, 'sil-matched-trials': worse, propel: lost }).get('solver-in-loop')!.verdict).toBe(
      'does not hold',
    );
  });
});

describe('mode collapse', () => {
  const propel = thrice({ frontier: 150, valid: 400, top: 0.7 });

  it('is mitigated by an arm whose interval lies below at 80% of the lift', () => {
    // 840 of 1200, 67.3 to 72.5; 720 of 1200, 57.2 to 62.7.
    const crowding = thrice({ frontier: 130, valid: 400, top: 0.6 });
    expect(claims({ base: BASE, propel, 'propel-crowding': crowding }).get('mode-collapse')).toMatchObject({
      verdict: 'holds',
      figures: 'propel 70.0% (67.3–72.5); propel-crowding 60.0% (57.2–62.7) at 80% of the lift; so by propel-crowding',
    });
  });

  it('is not by one that gives up more lift, or whose interval overlaps', () => {
    const dear = thrice({ frontier: 129, valid: 400, top: 0.3 });
    const slight = thrice({ frontier: 150, valid: 400, top: 0.68 });
    const found = claims({ base: BASE, propel, 'propel-wco': slight, 'propel-crowding': dear });
    expect(found.get('mode-collapse')).toMatchObject({
      verdict: 'does not hold',
      figures: expect.stringMatching(/; none does at this scale$/),
    });
  });
});

describe('another family', () => {
  it('rises when its intervals are apart', () => {
    const arms = {
      base: BASE,
      'transfer-base': thrice({ frontier: 30, valid: 300 }),
      transfer: thrice({ frontier: 50, valid: 300 }),
    };
    // 90 of 1500, 4.9 to 7.3, and 150 of 1500, 8.6 to 11.6.
    expect(claims(arms).get('transfer-transfer')).toMatchObject({
      verdict: 'holds',
      figures: expect.stringMatching(/pooled 4\.9–7\.3% and 8\.6–11\.6%$/),
    });
    const near = { ...arms, transfer: thrice({ frontier: 38, valid: 300 }) };
    expect(claims(near).get('transfer-transfer')!.verdict).toBe('does not hold');
  });
});

it('an arm that is not there makes no claim', () => {
  expect([...claims({ base: BASE }).keys()]).toEqual(['enough-measured']);
});
