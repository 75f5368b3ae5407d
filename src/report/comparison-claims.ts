/**
 * What the comparison must show for PROPEL's case to hold, line by line: each claim with its rule, its numbers, and whether it holds.
 * "Pooled" is over the generations of all seeds together; intervals are Wilson 95% of pooled counts, and overlap when they share a point.
 */
import { smallest } from '../metrics/extremes.js';
import { disjoint } from '../metrics/interval.js';
import type { Interval } from '../metrics/interval.js';
import { armRoles, trialsOf } from './comparison.js';
import type { ArmRoles, Claim, ComparedArm } from './comparison.js';
import { count, percent, percentRange } from './format.js';

/** Fewest seeds, and fewest fresh generations of an arm and seed, that a comparison is believed with. */
const SEEDS = 3;
const GENERATIONS = 500;
/** PROPEL's rate in band over the base generator's: in the mean, and at the low end of its interval. */
const TIMES_BASE = 1.8;
const LOW_END_TIMES_BASE = 1.5;
/** The same in band / valid, where validity alone gains nothing. */
const TIMES_BASE_OF_VALID = 1.3;
/** Share of a lift that counts as the lift. */
const MOST_OF_LIFT = 0.8;
/** Trials of an arm that may exceed another's at "matched" trials: labels end with a batch, training with a step. */
const TRIALS_SLACK = 1.1;

/** Every claim that the arms allow; an arm that is not there makes no claim. */
export function comparisonClaims(arms: readonly ComparedArm[], seeds: readonly number[]): Claim[] {
  const roles = armRoles(arms);
  return [
    enoughMeasured(arms, seeds),
    ...roles.plain.map((arm) => lift(arm, roles.base)),
    ...beyondValidity(roles),
    ...solverInLoop(roles),
    ...modeCollapse(roles),
    ...roles.transfers.map(({ arm, base }) => transfer(arm, base)),
  ];
}

function enoughMeasured(arms: readonly ComparedArm[], seeds: readonly number[]): Claim {
  const fewest = smallest(arms.map(({ smallestN }) => smallestN));
  return {
    id: 'enough-measured',
    claim: `at least ${SEEDS} seeds, and ${GENERATIONS} fresh generations of every arm and seed`,
    holds: seeds.length >= SEEDS && fewest >= GENERATIONS,
    figures: `${seeds.length} ${seeds.length === 1 ? 'seed' : 'seeds'}, at least ${count(fewest)} generations`,
  };
}

function lift(arm: ComparedArm, base: ComparedArm): Claim {
  const times = arm.timesBase ?? Number.NaN;
  const floor = LOW_END_TIMES_BASE * base.frontierRate.pooled.rate;
  const { interval } = arm.frontierRate.pooled;
  return {
    id: `lift-${arm.name}`,
    claim: `${arm.name}: mean frontier rate ≥ ${TIMES_BASE} × ${base.name}'s, and the low end of its pooled interval ≥ ${LOW_END_TIMES_BASE} × ${base.name}'s pooled rate`,
    holds: reaches(times, TIMES_BASE) && reaches(interval[0], floor),
    figures: `${seedRates(base.frontierRate)} → ${seedRates(arm.frontierRate)}, × ${fixed(times)}; pooled ${percentRange(interval)}% against ${percent(floor)}`,
  };
}

/** In band / valid: what is gained beyond the gate, against every reward that knows nothing of the solver. */
function beyondValidity({ single, base, validOnly, random, length }: ArmRoles): Claim[] {
  const claims: Claim[] = [];
  if (single !== undefined) {
    const times = single.inBandOfValid.mean! / base.inBandOfValid.mean!;
    claims.push({
      id: 'of-valid',
      claim: `${single.name}: mean in band / valid ≥ ${TIMES_BASE_OF_VALID} × ${base.name}'s`,
      holds: reaches(times, TIMES_BASE_OF_VALID),
      figures: `${seedRates(base.inBandOfValid)} → ${seedRates(single.inBandOfValid)}, × ${fixed(times)}`,
    });
    for (const control of [validOnly, random, length]) {
      if (control === undefined) continue;
      const [own, other] = [single.inBandOfValid.pooled, control.inBandOfValid.pooled];
      claims.push({
        id: `above-${control.name}`,
        claim: `${single.name}: pooled interval of in band / valid above ${control.name}'s`,
        holds: own.interval[0] > other.interval[1],
        figures: `${rateAndRange(own)} against ${rateAndRange(other)}`,
      });
    }
  }
  if (random !== undefined && validOnly !== undefined) {
    const [chance, gate] = [random.inBandOfValid.pooled, validOnly.inBandOfValid.pooled];
    const within = chance.rate >= gate.interval[0] && chance.rate <= gate.interval[1];
    claims.push({
      id: 'random-as-valid',
      claim: `${random.name} within ${validOnly.name}: the pooled intervals of in band / valid overlap`,
      holds: !disjoint(chance.interval, gate.interval),
      figures: `${rateAndRange(chance)} and ${rateAndRange(gate)}; the rate lies ${within ? 'within' : 'outside'} ${validOnly.name}'s interval`,
    });
  }
  return claims;
}

/** The best probe arm against the solver in the loop, at matched steps or at matched trials: one of them is enough. */
function solverInLoop({ probe, solver, solverMatchedTrials }: ArmRoles): Claim[] {
  const best = [...probe].sort((a, b) => b.lift.mean! - a.lift.mean!)[0];
  if (best === undefined || solver === undefined) return [];
  const ofLift = liftShare(best, solver);
  // A solver in the loop that lifts nothing is reached by any lift.
  const enough = ofLift === null ? best.lift.mean! > 0 : reaches(ofLift, MOST_OF_LIFT);
  const atSteps = enough && trialsOf(best) < trialsOf(solver);
  const matched = solverMatchedTrials;
  const atTrials =
    matched !== undefined &&
    reaches(best.lift.mean!, matched.lift.mean!) &&
    trialsOf(best) <= TRIALS_SLACK * trialsOf(matched);
  const words = (arm: ComparedArm): string =>
    `${points(arm.lift.mean!)} points for ${count(Math.round(trialsOf(arm)))} trials`;
  return [
    {
      id: 'solver-in-loop',
      claim: `the best probe arm reaches ${percent(MOST_OF_LIFT, 0)} of ${solver.name}'s lift at matched steps with fewer trials, or the lift of a solver in the loop at matched trials`,
      holds: atSteps || atTrials,
      figures: [
        `${best.name} ${words(best)}`,
        `${solver.name} ${words(solver)}: ${shareOf(ofLift)} of its lift, ${atSteps ? 'reached' : 'not reached'} at matched steps`,
        ...(matched === undefined
          ? []
          : [`${matched.name} ${words(matched)}: ${atTrials ? 'reached' : 'not reached'} at matched trials`]),
      ].join('; '),
    },
  ];
}

/** An arm's mean lift as a share of another's; null where the other has none to share. */
export function liftShare(arm: ComparedArm, other: ComparedArm): number | null {
  return other.lift.mean! > 0 ? arm.lift.mean! / other.lift.mean! : null;
}

function modeCollapse({ single, mitigations }: ArmRoles): Claim[] {
  if (single === undefined || mitigations.length === 0) return [];
  const own = single.topTopicShare.pooled;
  const holding = mitigations.filter(
    (arm) =>
      reaches(liftShare(arm, single) ?? 0, MOST_OF_LIFT) && arm.topTopicShare.pooled.interval[1] < own.interval[0],
  );
  const words = (arm: ComparedArm): string =>
    `${arm.name} ${rateAndRange(arm.topTopicShare.pooled)} at ${shareOf(liftShare(arm, single))} of the lift`;
  return [
    {
      id: 'mode-collapse',
      claim: `an arm reduces the top topic's share at ≥ ${percent(MOST_OF_LIFT, 0)} of ${single.name}'s lift: its pooled interval lies below ${single.name}'s`,
      holds: holding.length > 0,
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
    holds: own.interval[0] > other.interval[1],
    figures: `${seedRates(base.frontierRate)} → ${seedRates(arm.frontierRate)}; pooled ${percentRange(other.interval)}% and ${percentRange(own.interval)}%`,
  };
}

/** `figure ≥ threshold`, whatever the last bits of a mean of rates are. */
function reaches(figure: number, threshold: number): boolean {
  return figure >= threshold - 1e-9;
}

/** `40.1% (44.4, 35.0, 41.3)`: the mean, and every seed. */
function seedRates({ mean, values }: ComparedArm['frontierRate']): string {
  const each = values.map((value) => (value === null ? '–' : (100 * value).toFixed(1))).join(', ');
  return `${percent(mean!)} (${each})`;
}

function rateAndRange({ rate, interval }: { readonly rate: number; readonly interval: Interval }): string {
  return `${percent(rate)} (${percentRange(interval)})`;
}

function shareOf(share: number | null): string {
  return share === null ? 'no share' : percent(share, 0);
}

/** A difference of rates in percentage points. */
function points(difference: number): string {
  return (100 * difference).toFixed(1).replace('-', '−');
}

function fixed(times: number): string {
  return Number.isNaN(times) ? '–' : times.toFixed(2);
}
