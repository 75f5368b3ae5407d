/** `comparison.json`: arms × seeds. What several runs of the same arms measured, put together: plain numbers from plain results. */
import { smallest } from '../metrics/extremes.js';
import type { Band } from '../metrics/frontier.js';
import { type Interval, wilsonInterval } from '../metrics/interval.js';
import { mean, studentInterval } from '../metrics/student.js';
import type { Json } from '../store/rows.js';
import { totalSeconds } from './format.js';
import type { ArmResult, Results } from './results.js';

/** What an arm is, from its settings. */
export interface ArmSetup {
  readonly name: string;
  /** `none`, `probe`, `solver`, … */
  readonly reward: string;
  /** Checkpoint of a generator of its own; null for the run's. */
  readonly policy: string | null;
  /** The untrained arm of the same policy that this one is compared with; its own name for that arm itself. */
  readonly base: string;
  /** How it differs from the plain arm of its reward: `2 probes`, `crowding by topic`, `kl 0.3`; none for the plain one. */
  readonly variation: readonly string[];
}

/** A figure over seeds: each seed's value, in the order of the seeds, their mean and Student's 95% interval of the mean. */
export interface OverSeeds {
  readonly mean: number | null;
  /** Null below two seeds. */
  readonly interval: Interval | null;
  /** Null where a seed has no such figure. */
  readonly values: readonly (number | null)[];
}

/** A rate over seeds, and over all their generations together with its Wilson 95% interval. */
export interface Rate extends OverSeeds {
  readonly pooled: { readonly count: number; readonly of: number; readonly rate: number; readonly interval: Interval };
}

/** What is measured of an arm in all, and of each task type. */
export interface ArmRates {
  /** Fresh generations over all seeds. */
  readonly n: number;
  /** Valid tasks among them that lost attempts to failures of the infrastructure; rates in band are over all others. */
  readonly ungraded: number;
  /** In band / all but the ungraded. */
  readonly frontierRate: Rate;
  /** In band / graded. */
  readonly inBandOfValid: Rate;
  readonly validity: Rate;
}

export interface ComparedArm extends ArmSetup, ArmRates {
  /** Seeds whose training collapsed, and why; what is measured of them is an earlier checkpoint. */
  readonly collapsed: readonly { readonly seed: number; readonly reason: string }[];
  /** Fresh generations of the seed that has fewest. */
  readonly smallestN: number;
  /** Distinct tasks in band / all but the ungraded; repeats are told apart within a seed. */
  readonly uniqueFrontierRate: Rate;
  /** Mean frontier rate / the base arm's. */
  readonly timesBase: number | null;
  /** Frontier rate − the base arm's of the same seed. */
  readonly lift: OverSeeds;
  /** Share of the most frequent topic among valid tasks, and each seed's topic. */
  readonly topTopicShare: Rate;
  readonly topTopics: readonly (string | null)[];
  readonly selfBleu3: OverSeeds;
  readonly distinct3: OverSeeds;
  readonly diversity: {
    /** Share of valid tasks that come nearly as one before them did. */
    readonly nearDuplicates: OverSeeds;
    /** Share of valid tasks unlike every task that was labelled. */
    readonly novelty: OverSeeds;
    /** exp of the entropy over topics, and over cells of the space of structures; cells that tasks are in. */
    readonly effectiveTopics: OverSeeds;
    readonly structureCells: OverSeeds;
    readonly effectiveStructureCells: OverSeeds;
  };
  readonly klPerSequence: OverSeeds;
  readonly claimedInBand: OverSeeds;
  readonly measuredInBand: OverSeeds;
  /** Graded solver attempts a seed. */
  readonly solverTrials: { readonly offline: OverSeeds; readonly inLoop: OverSeeds };
  /** One entry a task type, in the order of the runs. */
  readonly byType: { readonly [type: string]: ArmRates };
  /** Work behind the arm; start-up is left out. */
  readonly seconds: OverSeeds;
}

export type Verdict = 'holds' | 'does not hold' | 'cannot be judged';

export interface Claim {
  /** Stable name, `lift-propel`. */
  readonly id: string;
  /** What must hold, with the exact rule. */
  readonly claim: string;
  readonly verdict: Verdict;
  /** The numbers behind the verdict. */
  readonly figures: string;
}

export interface Comparison {
  readonly name: string;
  readonly seeds: readonly number[];
  /** Seeds that were asked for and have no results. */
  readonly missing: readonly { readonly seed: number; readonly why: string }[];
  readonly band: Band;
  readonly arms: readonly ComparedArm[];
  readonly claims: readonly Claim[];
  readonly versions: { readonly [name: string]: Json };
  readonly config: { readonly [key: string]: Json };
}

/** The arms over all seeds. Every run must hold every arm. */
export function compareArms(setups: readonly ArmSetup[], runs: readonly Results[]): ComparedArm[] {
  const perArm = new Map(setups.map(({ name }) => [name, runs.map((run) => armOf(run, name))]));
  return setups.map((setup) => compareArm(setup, perArm.get(setup.name)!, perArm.get(setup.base)!));
}

function armOf({ arms, seed }: Results, name: string): ArmResult {
  const arm = arms.find((other) => other.name === name);
  if (arm === undefined) throw new RangeError(`the results of seed ${seed} hold no arm ${name}`);
  return arm;
}

function compareArm(setup: ArmSetup, seeds: readonly ArmResult[], base: readonly ArmResult[]): ComparedArm {
  const rates = armRates(seeds);
  const baseMean = mean(base.map(({ frontierRate }) => frontierRate));
  return {
    ...setup,
    ...rates,
    collapsed: seeds.flatMap(({ seed, training }) =>
      training?.status === 'collapsed' ? [{ seed, reason: training.reason! }] : [],
    ),
    smallestN: smallest(seeds.map(({ n }) => n)),
    uniqueFrontierRate: rate(
      seeds.map((seed) => [Math.round(seed.uniqueFrontierRate * measuredOf(seed)), measuredOf(seed)]),
    ),
    timesBase: baseMean === 0 ? null : rates.frontierRate.mean! / baseMean,
    lift: overSeeds(seeds.map(({ frontierRate }, i) => frontierRate - base[i]!.frontierRate)),
    topTopicShare: rate(seeds.map(({ topTopic, valid }) => [Math.round((topTopic?.share ?? 0) * valid), valid])),
    topTopics: seeds.map(({ topTopic }) => topTopic?.name ?? null),
    selfBleu3: overSeeds(seeds.map(({ selfBleu3 }) => selfBleu3)),
    distinct3: overSeeds(seeds.map(({ distinct3 }) => distinct3)),
    diversity: {
      nearDuplicates: overSeeds(seeds.map(({ diversity }) => diversity.duplicates?.near ?? null)),
      novelty: overSeeds(seeds.map(({ diversity }) => diversity.novelty?.share ?? null)),
      effectiveTopics: overSeeds(seeds.map(({ diversity }) => diversity.effectiveTopics?.value ?? null)),
      structureCells: overSeeds(seeds.map(({ diversity }) => diversity.coverage?.cells.value ?? null)),
      effectiveStructureCells: overSeeds(
        seeds.map(({ diversity }) => diversity.coverage?.effectiveCells.value ?? null),
      ),
    },
    klPerSequence: overSeeds(seeds.map(({ klPerSequence }) => klPerSequence)),
    claimedInBand: overSeeds(seeds.map(({ claimedInBand }) => claimedInBand)),
    measuredInBand: overSeeds(seeds.map(({ measuredInBand }) => measuredInBand)),
    solverTrials: {
      offline: overSeeds(seeds.map(({ solverTrials }) => solverTrials.offline)),
      inLoop: overSeeds(seeds.map(({ solverTrials }) => solverTrials.inLoop)),
    },
    byType: ratesByType(seeds),
    seconds: overSeeds(seeds.map(({ seconds }) => totalSeconds(seconds))),
  };
}

function ratesByType(seeds: readonly ArmResult[]): { [type: string]: ArmRates } {
  const types = [...new Set(seeds.flatMap(({ byType }) => Object.keys(byType)))];
  return Object.fromEntries(
    types.map((type) => [type, armRates(seeds.flatMap(({ byType }) => byType[type] ?? []))] as const),
  );
}

type Counts = Pick<ArmResult, 'n' | 'valid' | 'frontier' | 'passCounts'>;

/** From the pass counts, as results of earlier versions do not tell the ungraded. */
const gradedOf = ({ passCounts }: Counts): number => passCounts.reduce((sum, count) => sum + count, 0);

/** Generations of which it is known whether they are in band. */
const measuredOf = (counts: Counts): number => counts.n - counts.valid + gradedOf(counts);

function armRates(seeds: readonly Counts[]): ArmRates {
  return {
    n: seeds.reduce((sum, { n }) => sum + n, 0),
    ungraded: seeds.reduce((sum, counts) => sum + counts.valid - gradedOf(counts), 0),
    frontierRate: rate(seeds.map((counts) => [counts.frontier, measuredOf(counts)])),
    inBandOfValid: rate(seeds.map((counts) => [counts.frontier, gradedOf(counts)])),
    validity: rate(seeds.map(({ valid, n }) => [valid, n])),
  };
}

/** A rate from each seed's count and what it is counted among; a seed that has nothing to count among has no rate. */
export function rate(counts: readonly (readonly [count: number, of: number])[]): Rate {
  const [count, of] = counts.reduce(([k, n], [seedCount, seedOf]) => [k + seedCount, n + seedOf], [0, 0]);
  return {
    ...overSeeds(counts.map(([seedCount, seedOf]) => (seedOf === 0 ? null : seedCount / seedOf))),
    pooled: { count, of, rate: of === 0 ? 0 : count / of, interval: wilsonInterval(count, of) },
  };
}

/** A figure from each seed's value. */
export function overSeeds(values: readonly (number | null)[]): OverSeeds {
  const known = values.filter((value) => value !== null);
  return { mean: known.length === 0 ? null : mean(known), interval: studentInterval(known), values };
}

/** Graded solver attempts behind an arm, on labels and in the loop, in the mean over seeds. */
export function trialsOf({ solverTrials }: ComparedArm): number {
  return (solverTrials.offline.mean ?? 0) + (solverTrials.inLoop.mean ?? 0);
}

/** The arms by what they are for in the paper's comparison. */
export interface ArmRoles {
  /** The untrained generator of the run's own policy. */
  readonly base: ComparedArm;
  /** The plain single probe. */
  readonly single: ComparedArm | undefined;
  /** The single probe and plain ensembles: PROPEL as published. */
  readonly plain: readonly ComparedArm[];
  /** Every arm that a probe rewards. */
  readonly probe: readonly ComparedArm[];
  /** Arms that a probe rewards and that differ from the single probe: each a try at keeping diversity. */
  readonly mitigations: readonly ComparedArm[];
  /** Solver in the loop for as many steps as the probe arms, and for as many trials. */
  readonly solver: ComparedArm | undefined;
  readonly solverMatchedTrials: ComparedArm | undefined;
  readonly validOnly: ComparedArm | undefined;
  readonly random: ComparedArm | undefined;
  readonly length: ComparedArm | undefined;
  /** Trained arms of other policies, with their own base. */
  readonly transfers: readonly { readonly base: ComparedArm; readonly arm: ComparedArm }[];
}

const ENSEMBLE = /^\d+ probes$/;
const TRIALS = /^\d+ trials$/;

export function armRoles(arms: readonly ComparedArm[]): ArmRoles {
  const base = arms.find(({ reward, policy }) => reward === 'none' && policy === null);
  if (base === undefined) throw new RangeError("no arm is the run's own generator, untrained");
  const own = arms.filter((arm) => arm.base === base.name);
  const ofReward = (reward: string): ComparedArm[] => own.filter((arm) => arm.reward === reward);
  const probe = ofReward('probe');
  const single = fewestVariations(probe);
  const [matched, free] = partition(ofReward('solver'), ({ variation }) => variation.some((is) => TRIALS.test(is)));
  return {
    base,
    single,
    plain: probe.filter((arm) => arm === single || arm.variation.every((is) => ENSEMBLE.test(is))),
    probe,
    mitigations: probe.filter((arm) => arm !== single),
    solver: fewestVariations(free),
    solverMatchedTrials: matched[0],
    validOnly: fewestVariations(ofReward('valid')),
    random: fewestVariations(ofReward('random')),
    length: fewestVariations(ofReward('length')),
    transfers: arms
      .filter((arm) => arm.base !== base.name && arm.base !== arm.name)
      .map((arm) => ({ base: arms.find(({ name }) => name === arm.base)!, arm })),
  };
}

/** The plainest of the arms, the first of several. */
function fewestVariations(arms: readonly ComparedArm[]): ComparedArm | undefined {
  return [...arms].sort((a, b) => a.variation.length - b.variation.length)[0];
}

function partition<Item>(items: readonly Item[], holds: (item: Item) => boolean): [Item[], Item[]] {
  return [items.filter(holds), items.filter((item) => !holds(item))];
}
