/** The columns of a comparison's tables, for the terminal and the HTML report: a text, a line of detail, and what a pointer shows. */
import { trialsOf } from './comparison.js';
import type { ComparedArm, OverSeeds, Rate } from './comparison.js';
import { UNGRADED } from './columns.js';
import { liftShare } from './comparison-claims.js';
import { count, decimal, duration, MISSING, percent, percentRange } from './format.js';

export interface Cell {
  readonly text: string;
  /** A second line, smaller. */
  readonly detail?: string;
  /** Counts and seeds behind the text. */
  readonly title: string;
}

export interface ComparisonColumn {
  readonly heading: string;
  readonly meaning: string;
  readonly cell: (arm: ComparedArm) => Cell;
}

const armColumn: ComparisonColumn = {
  heading: 'arm',
  meaning: 'What is trained on which reward.',
  cell: (arm) => ({ text: arm.name, title: describeArm(arm) }),
};

const frontierColumn: ComparisonColumn = {
  heading: 'in band/all',
  meaning: 'Tasks in band / all generations: the mean over seeds, and every seed.',
  cell: ({ frontierRate }) => ({ ...rateCell(frontierRate), detail: seedPercents(frontierRate) }),
};

const timesBaseColumn: ComparisonColumn = {
  heading: '× base',
  meaning: 'Mean frontier rate / that of the untrained arm of the same policy.',
  cell: (arm) => ({
    text: arm.name === arm.base ? MISSING : decimal(arm.timesBase, 2),
    title: `against ${arm.base}, n = ${count(arm.n)}`,
  }),
};

const ofValidColumn: ComparisonColumn = {
  heading: 'in band/valid',
  meaning:
    'Tasks in band / valid tasks, the mean over seeds and the pooled Wilson 95% interval: what is gained beyond validity.',
  cell: ({ inBandOfValid }) => rateCell(inBandOfValid),
};

const validityColumn: ComparisonColumn = {
  heading: 'validity',
  meaning: 'Valid tasks / all generations, the mean over seeds and the pooled Wilson 95% interval.',
  cell: ({ validity }) => rateCell(validity),
};

const topTopicColumn: ComparisonColumn = {
  heading: 'top topic',
  meaning:
    'Share of the most frequent topic among valid tasks: the mean over seeds, and every seed; each has its own topic.',
  cell: ({ topTopicShare, topTopics }) => ({
    text: rateCell(topTopicShare).text,
    detail: seedPercents(topTopicShare),
    title: `${topicNames(topTopics)}; ${rateCell(topTopicShare).title}`,
  }),
};

const trialsColumn: ComparisonColumn = {
  heading: 'trials',
  meaning: 'Graded solver attempts a seed, in the mean: on labels + within reinforcement learning.',
  cell: ({ solverTrials: { offline, inLoop }, n }) => ({
    text: meanCount(offline),
    detail: `+ ${meanCount(inLoop)}`,
    title: `on labels, seeds ${seedCounts(offline)}; in the loop, seeds ${seedCounts(inLoop)}; n = ${count(n)}`,
  }),
};

const timeColumn: ComparisonColumn = {
  heading: 'time',
  meaning:
    'Seconds of work behind the arm a seed, in the mean: labels, probes, its training and its evaluation; start-up is left out.',
  cell: ({ seconds, n }) => ({
    text: duration(seconds.mean ?? 0),
    title: `seeds ${seconds.values.map((value) => duration(value ?? 0)).join(', ')}; n = ${count(n)}`,
  }),
};

/** The columns with those that only some comparisons need, last: whose training collapsed, and how many tasks are not graded. */
export function withFlags(
  columns: readonly ComparisonColumn[],
  arms: readonly ComparedArm[],
): readonly ComparisonColumn[] {
  return [
    ...columns,
    ...(arms.some(({ collapsed }) => collapsed.length > 0) ? [collapsedColumn] : []),
    ...(arms.some(({ ungraded }) => ungraded > 0) ? [ungradedColumn] : []),
  ];
}

const collapsedColumn: ComparisonColumn = {
  heading: 'collapsed',
  meaning:
    'Seeds whose training collapsed and was stopped; what is measured of them is the last checkpoint that was trusted.',
  cell: ({ collapsed }) => ({
    text: collapsed.length === 0 ? MISSING : `seed ${collapsed.map(({ seed }) => seed).join(', ')}`,
    title: collapsed.map(({ seed, reason }) => `seed ${seed}: ${reason}`).join('; '),
  }),
};

const ungradedColumn: ComparisonColumn = {
  heading: 'ungraded',
  meaning: UNGRADED,
  cell: ({ ungraded, n }) => ({ text: count(ungraded), title: `of ${count(n)} over all seeds` }),
};

/** The main table: validity, utility, diversity, cost. */
export const MAIN_COLUMNS: readonly ComparisonColumn[] = [
  armColumn,
  frontierColumn,
  {
    heading: '95%',
    meaning: 'Wilson interval of the pooled counts; below it Student’s interval of the mean over seeds.',
    cell: ({ frontierRate: { pooled, interval } }) => ({
      text: percentRange(pooled.interval),
      detail: interval === null ? 'one seed' : `t ${percentRange(interval)}`,
      title: `pooled: ${count(pooled.count)} of ${count(pooled.of)}; t: Student’s 95% interval of the mean over seeds`,
    }),
  },
  timesBaseColumn,
  ofValidColumn,
  validityColumn,
  {
    heading: 'unique',
    meaning: 'Distinct tasks in band / all generations, the mean over seeds and the pooled Wilson 95% interval.',
    cell: ({ uniqueFrontierRate }) => rateCell(uniqueFrontierRate),
  },
  {
    heading: 'Self-BLEU-3, Distinct-3',
    meaning:
      'Large: how much valid tasks resemble each other, 1 when they are all the same. Small: distinct word trigrams / all trigrams of valid tasks. Within a seed all arms over equal numbers of tasks.',
    cell: ({ selfBleu3, distinct3, n }) => {
      const [large, small] = [numberCell(selfBleu3, n, 3), numberCell(distinct3, n, 3)];
      return { text: large.text, detail: small.text, title: `Self-BLEU-3: ${large.title}; Distinct-3: ${small.title}` };
    },
  },
  topTopicColumn,
  {
    heading: 'KL',
    meaning: 'Nats from the policy’s start a sequence, on the last step’s samples.',
    cell: ({ klPerSequence, n }) => numberCell(klPerSequence, n, 2),
  },
  {
    heading: 'claimed, measured',
    meaning: 'Share of valid tasks in band. Large: as the arm’s probe has it. Small: as the solver measured.',
    cell: ({ claimedInBand, measuredInBand, n }) => ({
      text: claimedInBand.mean === null ? MISSING : percent(claimedInBand.mean),
      ...(measuredInBand.mean === null ? {} : { detail: percent(measuredInBand.mean) }),
      title: `claimed, seeds ${seedPercents(claimedInBand)}; measured, seeds ${seedPercents(measuredInBand)}; n = ${count(n)}`,
    }),
  },
  trialsColumn,
  timeColumn,
];

/** What fits a terminal. */
export const TERMINAL_COLUMNS: readonly ComparisonColumn[] = [
  armColumn,
  frontierColumn,
  timesBaseColumn,
  ofValidColumn,
  validityColumn,
  topTopicColumn,
  trialsColumn,
];

/** Lift against trials, and against the solver in the loop where there is one. */
export function costColumns(solver: ComparedArm | undefined, matched: ComparedArm | undefined): ComparisonColumn[] {
  const shareColumn = (reference: ComparedArm, how: string): ComparisonColumn => ({
    heading: `of ${reference.name}’s lift`,
    meaning: `Lift / the lift of ${reference.name}, the solver in the loop at matched ${how}.`,
    cell: (arm) => ({ text: shareText(liftShare(arm, reference)), title: `n = ${count(arm.n)}` }),
  });
  return [
    armColumn,
    liftColumn,
    trialsColumn,
    {
      heading: 'all trials',
      meaning: 'On labels and within reinforcement learning together.',
      cell: (arm) => ({ text: count(Math.round(trialsOf(arm))), title: `a seed, in the mean; n = ${count(arm.n)}` }),
    },
    ...(solver === undefined ? [] : [shareColumn(solver, 'steps')]),
    ...(matched === undefined ? [] : [shareColumn(matched, 'trials')]),
    timeColumn,
  ];
}

/** Topic concentration against the lift that is kept. */
export function collapseColumns(single: ComparedArm): ComparisonColumn[] {
  return [
    armColumn,
    topTopicColumn,
    {
      heading: '95%',
      meaning: 'Wilson interval of the pooled counts of each seed’s top topic.',
      cell: ({ topTopicShare: { pooled } }) => ({
        text: percentRange(pooled.interval),
        title: `${count(pooled.count)} of ${count(pooled.of)} valid tasks`,
      }),
    },
    {
      heading: 'topics',
      meaning: 'The most frequent topic of each seed.',
      cell: ({ topTopics, n }) => ({ text: topicNames(topTopics), title: `n = ${count(n)}` }),
    },
    liftColumn,
    {
      heading: `of ${single.name}’s lift`,
      meaning: `Lift / ${single.name}’s.`,
      cell: (arm) => ({ text: shareText(liftShare(arm, single)), title: `n = ${count(arm.n)}` }),
    },
    ofValidColumn,
  ];
}

/** Diversity beside topics and n-grams. Within a seed, what depends on the number of tasks is over equal numbers for all arms. */
export const DIVERSITY_COLUMNS: readonly ComparisonColumn[] = [
  armColumn,
  {
    heading: 'near duplicates',
    meaning: 'Share of valid tasks that come nearly as one before them did.',
    cell: ({ diversity: { nearDuplicates }, n }) => shareCell(nearDuplicates, n),
  },
  {
    heading: 'novel',
    meaning: 'Share of valid tasks unlike every task that the run has labelled.',
    cell: ({ diversity: { novelty }, n }) => shareCell(novelty, n),
  },
  {
    heading: 'effective topics',
    meaning: 'exp of the entropy over topics: so many equally frequent topics would be as diverse.',
    cell: ({ diversity: { effectiveTopics }, n }) => numberCell(effectiveTopics, n, 1),
  },
  {
    heading: 'structures',
    meaning: 'Cells of syntax-tree depth × cyclomatic complexity × lines × variables that valid tasks are in.',
    cell: ({ diversity: { structureCells }, n }) => numberCell(structureCells, n, 1),
  },
  {
    heading: 'effective structures',
    meaning: 'exp of the entropy over those cells.',
    cell: ({ diversity: { effectiveStructureCells }, n }) => numberCell(effectiveStructureCells, n, 1),
  },
];

/** Each family against its own base. */
export const FAMILY_COLUMNS: readonly ComparisonColumn[] = [
  armColumn,
  {
    heading: 'policy',
    meaning: 'The generator that is trained; reference and probe are the same throughout.',
    cell: ({ policy, n }) => ({ text: policy ?? 'the run’s own', title: `n = ${count(n)}` }),
  },
  frontierColumn,
  {
    heading: '95%',
    meaning: 'Wilson interval of the pooled counts.',
    cell: ({ frontierRate: { pooled } }) => ({
      text: percentRange(pooled.interval),
      title: `${count(pooled.count)} of ${count(pooled.of)}`,
    }),
  },
  timesBaseColumn,
  ofValidColumn,
  validityColumn,
];

const liftColumn: ComparisonColumn = {
  heading: 'lift (points)',
  meaning:
    'Frontier rate − the base arm’s of the same seed, in percentage points: the mean, with Student’s 95% interval over seeds.',
  cell: ({ lift, n }) => ({
    text: points(lift.mean),
    ...(lift.interval === null ? {} : { detail: `t ${lift.interval.map(points).join(' to ')}` }),
    title: `seeds ${lift.values.map(points).join(', ')}; n = ${count(n)}`,
  }),
};

/** `probe, 2 probes`: a reward and how the arm differs from the plain one. */
export function describeArm({ reward, variation }: ComparedArm): string {
  return [reward === 'none' ? 'untrained' : `reward: ${reward}`, ...variation].join(', ');
}

/** The mean, with the pooled interval below. */
export function rateCell({ mean, pooled, ...rest }: Rate): Cell {
  return {
    text: mean === null ? MISSING : percent(mean),
    detail: percentRange(pooled.interval),
    title: `n = ${count(pooled.of)}, of these ${count(pooled.count)}; seeds ${seedPercents({ mean, ...rest })}; pooled 95% ${percentRange(pooled.interval)}`,
  };
}

function shareCell(figure: OverSeeds, n: number): Cell {
  return {
    text: figure.mean === null ? MISSING : percent(figure.mean),
    detail: seedPercents(figure),
    title: `n = ${count(n)}`,
  };
}

function numberCell({ mean, values }: OverSeeds, n: number, digits: number): Cell {
  const each = values.map((value) => decimal(value, digits)).join(', ');
  return { text: decimal(mean, digits), title: `seeds ${each}; n = ${count(n)}` };
}

/** `44.4 35.0 41.3` */
function seedPercents({ values }: OverSeeds): string {
  return values.map((value) => (value === null ? MISSING : (100 * value).toFixed(1))).join(' ');
}

function seedCounts({ values }: OverSeeds): string {
  return values.map((value) => count(value ?? 0)).join(', ');
}

function meanCount({ mean }: OverSeeds): string {
  return count(Math.round(mean ?? 0));
}

/** Names once, most frequent first. */
function topicNames(topics: readonly (string | null)[]): string {
  const names = topics.filter((topic) => topic !== null);
  return [...new Set(names)].map((name) => name.replaceAll('_', ' ')).join(', ');
}

function shareText(share: number | null): string {
  return share === null ? MISSING : percent(share, 0);
}

/** A difference of rates in percentage points. */
function points(difference: number | null): string {
  return difference === null ? MISSING : decimal(100 * difference, 1);
}
