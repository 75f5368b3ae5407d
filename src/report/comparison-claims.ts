/**
 * What the comparison must show for PROPEL's case to hold, line by line: each claim with its rule, its numbers, and its verdict.
 * "Pooled" is over the generations of all seeds together; intervals are Wilson 95% of pooled counts, and overlap when they share a point.
 *
 * A claim whose numbers say nothing about it, such as a share of a lift that is none, **cannot be judged**: it neither holds nor fails.
 */
import { smallest } from '../metrics/extremes.js';
import { differenceInterval } from '../metrics/interval.js';
import type { Interval } from '../metrics/interval.js';
import { armRoles, trialsOf } from './comparison.js';
import type { ArmRoles, Claim, ComparedArm, Rate, Verdict } from './comparison.js';
import { count, MISSING, percent, percentRange } from './format.js';

/** What the claims ask for; the settings `claims` of a comparison. */
export interface ClaimThresholds {
  /** Fewest seeds, and fewest fresh generations of an arm and seed, that a comparison is believed with. */
  readonly seeds: number;
  readonly generations: number;
  /** PROPEL's rate in band over the base generator's: in the mean, and at the low end of its pooled interval. */
  readonly timesBase: number;
  readonly lowEndTimesBase: number;
  /** The same in band / valid, where validity alone gains nothing. */
  readonly timesBaseOfValid: number;
  /** Share of a lift that counts as the lift. */
  readonly shareOfLift: number;
  /** Trials of an arm over another's at "matched" trials: labels end with a batch, training with a step. */
  readonly trialsSlack: number;
  /** Two rates are alike when the 95% interval of their difference lies within this, either way. */
  readonly alike: number;
}

export const CLAIM_THRESHOLDS: ClaimThresholds = {
  seeds: 3,
  generations: 500,
  timesBase: 1.8,
  lowEndTimesBase: 1.5,
  timesBaseOfValid: 1.3,
  shareOfLift: 0.8,
  trialsSlack: 1.1,
  alike: 0.05,
};

/** Every claim that the arms allow; an arm that is not there makes no claim. */
export function comparisonClaims(
  arms: readonly ComparedArm[],
  seeds: readonly number[],
  thresholds: ClaimThresholds = CLAIM_THRESHOLDS,
): Claim[] {
  const roles = armRoles(arms);
  return [
    enoughMeasured(arms, seeds, thresholds),
    ...roles.plain.map((arm) => lift(arm, roles.base, thresholds)),
    ...beyondValidity(roles, thresholds),
    ...solverInLoop(roles, thresholds),
    ...modeCollapse(roles, thresholds),
    ...roles.transfers.map(({ arm, base }) => transfer(arm, base)),
  ];
}

function enoughMeasured(
  arms: readonly ComparedArm[],
  measured: readonly number[],
  { seeds, generations }: ClaimThresholds,
): Claim {
  const fewest = smallest(arms.map(({ smallestN }) => smallestN));
  return {
    id: 'enough-measured',
    claim: `at least ${seeds} seeds, and ${count(generations)} fresh generations of every arm and seed`,
    verdict: verdictOf(measured.length >= seeds && fewest >= generations),
    figures: `${measured.length} ${measured.length === 1 ? 'seed' : 'seeds'}, at least ${count(fewest)} generations`,
  };
}

function lift(arm: ComparedArm, base: ComparedArm, { timesBase, lowEndTimesBase }: ClaimThresholds): Claim {
  const floor = lowEndTimesBase * base.frontierRate.pooled.rate;
  const { interval } = arm.frontierRate.pooled;
  const times = arm.timesBase;
  return {
    id: `lift-${arm.name}`,
    claim: `${arm.name}: mean frontier rate ≥ ${timesBase} × ${base.name}'s, and the low end of its pooled interval ≥ ${lowEndTimesBase} × ${base.name}'s pooled rate`,
    verdict: times === null ? UNJUDGED : verdictOf(reaches(times, timesBase) && reaches(interval[0], floor)),
    figures: `${seedRates(base.frontierRate)} → ${seedRates(arm.frontierRate)}, × ${fixed(times)}; pooled ${percentRange(interval)}% against ${percent(floor)}`,
  };
}

/** In band / valid: what is gained beyond the gate, against every reward that knows nothing of the solver. */
function beyondValidity({ single, base, validOnly, random, length }: ArmRoles, thresholds: ClaimThresholds): Claim[] {
  const claims: Claim[] = [];
  if (single !== undefined) {
    const [own, before] = [single.inBandOfValid.mean, base.inBandOfValid.mean];
    const times = own === null || before === null || before === 0 ? null : own / before;
    const { timesBaseOfValid } = thresholds;
    claims.push({
      id: 'of-valid',
      claim: `${single.name}: mean in band / valid ≥ ${timesBaseOfValid} × ${base.name}'s`,
      verdict: times === null ? UNJUDGED : verdictOf(reaches(times, timesBaseOfValid)),
      figures: `${seedRates(base.inBandOfValid)} → ${seedRates(single.inBandOfValid)}, × ${fixed(times)}`,
    });
    for (const control of [validOnly, random, length]) {
      if (control === undefined) continue;
      const [ours, other] = [single.inBandOfValid.pooled, control.inBandOfValid.pooled];
      claims.push({
        id: `above-${control.name}`,
        claim: `${single.name}: pooled interval of in band / valid above ${control.name}'s`,
        verdict: bothMeasured(ours, other) ? verdictOf(ours.interval[0] > other.interval[1]) : UNJUDGED,
        figures: `${rateAndRange(ours)} against ${rateAndRange(other)}`,
      });
    }
  }
  if (random !== undefined && validOnly !== undefined) {
    const [chance, gate] = [random.inBandOfValid.pooled, validOnly.inBandOfValid.pooled];
    const { alike } = thresholds;
    const difference = differenceInterval([chance.count, chance.of], [gate.count, gate.of]);
    claims.push({
      id: 'random-as-valid',
      claim: `${random.name} as ${validOnly.name}: the 95% interval of their difference in band / valid, pooled, lies within ${pointsText(alike)} points`,
      verdict: likeness(difference, alike),
      figures: `${rateAndRange(chance)} and ${rateAndRange(gate)}; difference ${difference.map(pointsText).join(' to ')} points`,
    });
  }
  return claims;
}

/** Too few generations leave an interval that holds both no difference and one that matters. */
function likeness([low, high]: Interval, alike: number): Verdict {
  if (low >= -alike && high <= alike) return 'holds';
  return low > 0 || high < 0 ? 'does not hold' : UNJUDGED;
}

/**
 * The best probe arm against the solver in the loop, at matched steps or at matched trials: one of them is enough. A solver in the loop
 * that lifted nothing is no measure of another arm's lift.
 */
function solverInLoop(
  { probe, solver, solverMatchedTrials: matched }: ArmRoles,
  { shareOfLift, trialsSlack }: ClaimThresholds,
): Claim[] {
  const best = [...probe].sort((a, b) => (b.lift.mean ?? 0) - (a.lift.mean ?? 0))[0];
  if (best === undefined || solver === undefined) return [];
  const ofLift = liftShare(best, solver);
  const atSteps: Verdict =
    ofLift === null ? UNJUDGED : verdictOf(reaches(ofLift, shareOfLift) && trialsOf(best) < trialsOf(solver));
  const ofMatched = matched === undefined ? null : liftShare(best, matched);
  const atTrials: Verdict =
    matched === undefined || ofMatched === null
      ? UNJUDGED
      : verdictOf(reaches(ofMatched, 1) && trialsOf(best) <= trialsSlack * trialsOf(matched));
  const either = [atSteps, atTrials];
  const words = (arm: ComparedArm): string =>
    `${pointsText(arm.lift.mean ?? 0)} points for ${count(Math.round(trialsOf(arm)))} trials`;
  return [
    {
      id: 'solver-in-loop',
      claim: `the best probe arm reaches ${percent(shareOfLift, 0)} of ${solver.name}'s lift at matched steps with fewer trials, or the lift of a solver in the loop at matched trials`,
      verdict:
        either.find((verdict) => verdict === 'holds') ?? either.find((verdict) => verdict !== UNJUDGED) ?? UNJUDGED,
      figures: [
        `${best.name} ${words(best)}`,
        `${solver.name} ${words(solver)}: ${shareOf(ofLift)} of its lift, ${REACHED[atSteps]} at matched steps`,
        ...(matched === undefined ? [] : [`${matched.name} ${words(matched)}: ${REACHED[atTrials]} at matched trials`]),
      ].join('; '),
    },
  ];
}

const REACHED: Readonly<Record<Verdict, string>> = {
  holds: 'reached',
  'does not hold': 'not reached',
  'cannot be judged': 'no lift to reach',
};

/** An arm's mean lift as a share of another's; null where the other has none to share. */
export function liftShare(arm: ComparedArm, other: ComparedArm): number | null {
  const [own, whole] = [arm.lift.mean, other.lift.mean];
  return own !== null && whole !== null && whole > 0 ? own / whole : null;
}

function modeCollapse({ single, mitigations }: ArmRoles, { shareOfLift }: ClaimThresholds): Claim[] {
  if (single === undefined || mitigations.length === 0) return [];
  const own = single.topTopicShare.pooled;
  const keeping = mitigations.filter((arm) => {
    const share = liftShare(arm, single);
    return share !== null && reaches(share, shareOfLift);
  });
  const holding = keeping.filter(({ topTopicShare: { pooled } }) => pooled.interval[1] < own.interval[0]);
  const isJudged = liftShare(single, single) !== null && own.of > 0;
  const words = (arm: ComparedArm): string =>
    `${arm.name} ${rateAndRange(arm.topTopicShare.pooled)} at ${shareOf(liftShare(arm, single))} of the lift`;
  return [
    {
      id: 'mode-collapse',
      claim: `an arm reduces the top topic's share at ≥ ${percent(shareOfLift, 0)} of ${single.name}'s lift: its pooled interval lies below ${single.name}'s`,
      verdict: isJudged ? verdictOf(holding.length > 0) : UNJUDGED,
      figures: [
        `${single.name} ${rateAndRange(own)}`,
        ...mitigations.map(words),
        holding.length > 0 ? `so by ${holding.map(({ name }) => name).join(', ')}` : 'none does at this scale',
      ].join('; '),
    },
  ];
}

function transfer(arm: ComparedArm, base: ComparedArm): Claim {
  const [own, other] = [arm.frontierRate.pooled, base.frontierRate.pooled];
  return {
    id: `transfer-${arm.name}`,
    claim: `${arm.name}: another family's pooled frontier rate rises, its interval above ${base.name}'s`,
    verdict: bothMeasured(own, other) ? verdictOf(own.interval[0] > other.interval[1]) : UNJUDGED,
    figures: `${seedRates(base.frontierRate)} → ${seedRates(arm.frontierRate)}; pooled ${percentRange(other.interval)}% and ${percentRange(own.interval)}%`,
  };
}

/** `figure ≥ threshold`, whatever the last bits of a mean of rates are. */
function reaches(figure: number, threshold: number): boolean {
  return figure >= threshold - 1e-9;
}

const UNJUDGED: Verdict = 'cannot be judged';

function verdictOf(holds: boolean): Verdict {
  return holds ? 'holds' : 'does not hold';
}

/** An interval of nothing measured spans everything, and is neither above nor below another. */
function bothMeasured(one: Rate['pooled'], other: Rate['pooled']): boolean {
  return one.of > 0 && other.of > 0;
}

/** `40.1% (44.4, 35.0, 41.3)`: the mean, and every seed. */
function seedRates({ mean, values }: ComparedArm['frontierRate']): string {
  const each = values.map((value) => (value === null ? MISSING : (100 * value).toFixed(1))).join(', ');
  return `${mean === null ? MISSING : percent(mean)} (${each})`;
}

function rateAndRange({ rate, interval }: { readonly rate: number; readonly interval: Interval }): string {
  return `${percent(rate)} (${percentRange(interval)})`;
}

function shareOf(share: number | null): string {
  return share === null ? 'no share' : percent(share, 0);
}

/** A difference of rates in percentage points. */
function pointsText(difference: number): string {
  return (100 * difference).toFixed(1).replace('-', '−');
}

function fixed(times: number | null): string {
  return times === null ? MISSING : times.toFixed(2);
}
