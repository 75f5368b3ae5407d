/** The columns of the report's tables of arms; that of results is the terminal's too. */
import type { Estimate } from '../metrics/coverage.js';
import type { RateSummary } from '../metrics/frontier.js';
import { wilsonInterval } from '../metrics/interval.js';
import { count, decimal, duration, MISSING, percent, percentRange, totalSeconds } from './format.js';
import type { ArmResult } from './results.js';

export interface Column<Row> {
  readonly heading: string;
  /** What the number means, for the report's reader. */
  readonly meaning: string;
  readonly value: (row: Row) => string;
}

export const ARM_COLUMNS: readonly Column<ArmResult>[] = [
  { heading: 'arm', meaning: 'The generator that was measured.', value: ({ name }) => name },
  {
    heading: 'validity',
    meaning: 'Valid tasks / all generations.',
    value: ({ validity }) => percent(validity),
  },
  {
    heading: 'frontier (95%)',
    meaning: 'Tasks in band / all generations, with the Wilson 95% interval.',
    value: ({ frontierRate, frontierInterval }) => `${percent(frontierRate)} (${percentRange(frontierInterval)})`,
  },
  {
    heading: 'unique (95%)',
    meaning: 'Distinct tasks in band / all generations, with the Wilson 95% interval.',
    value: ({ uniqueFrontierRate, n, ungraded }) => {
      const measured = n - ungraded;
      const interval = wilsonInterval(Math.round(uniqueFrontierRate * measured), measured);
      return `${percent(uniqueFrontierRate)} (${percentRange(interval)})`;
    },
  },
  {
    heading: 'in band/valid',
    meaning: 'Tasks in band / valid tasks: what is gained beyond validity.',
    value: ({ inBandOfValid }) => percent(inBandOfValid),
  },
  {
    heading: 'Self-BLEU-3',
    meaning: 'How much valid tasks resemble each other; 1 when they are all the same.',
    value: ({ selfBleu3 }) => decimal(selfBleu3, 3),
  },
  {
    heading: 'Distinct-3',
    meaning: 'Distinct word trigrams / all trigrams of valid tasks.',
    value: ({ distinct3 }) => decimal(distinct3, 3),
  },
  {
    heading: 'top topic',
    meaning: 'The most frequent topic and its share of valid tasks.',
    value: ({ topTopic }) => (topTopic === null ? MISSING : `${topTopic.name} ${percent(topTopic.share, 0)}`),
  },
  {
    heading: 'trials',
    meaning: 'Graded solver attempts: on labels + within reinforcement learning.',
    value: ({ solverTrials }) => `${count(solverTrials.offline)} + ${count(solverTrials.inLoop)}`,
  },
  {
    heading: 'time',
    meaning: 'Seconds of work in all the phases behind the arm; start-up is left out.',
    value: ({ seconds }) => duration(totalSeconds(seconds)),
  },
];

const ARM: Column<ArmResult> = ARM_COLUMNS[0]!;

/** The columns, and where there are ungraded tasks a last one that counts them. */
export function withUngraded<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  ungradedOf: (row: Row) => number,
): readonly Column<Row>[] {
  if (!rows.some((row) => ungradedOf(row) > 0)) return columns;
  const value = (row: Row) => count(ungradedOf(row));
  return [...columns, { heading: 'ungraded', meaning: UNGRADED, value }];
}

/** The columns of arms with those that only some runs need, last: whose training collapsed, how many tasks are not graded, and how many attempts brought no text. */
export function withFlags(
  columns: readonly Column<ArmResult>[],
  arms: readonly ArmResult[],
): readonly Column<ArmResult>[] {
  const flagged = arms.some(({ training }) => training?.status === 'collapsed') ? [...columns, TRAINING] : columns;
  return withUnanswered(
    withUngraded(flagged, arms, ({ ungraded }) => ungraded),
    arms,
  );
}

const TRAINING: Column<ArmResult> = {
  heading: 'training',
  meaning:
    'Whether it went to its end or had to be stopped, having collapsed; then the step whose checkpoint is measured, 0 being the generator before training.',
  value: ({ training }) => {
    if (training === null) return MISSING;
    const { status, steps, evaluatedStep } = training;
    return status === 'collapsed' ? `collapsed at ${steps}, measured at ${evaluatedStep}` : `${steps} steps`;
  },
};

/** The columns, and where solvers' attempts brought no text a last one that counts them. */
function withUnanswered(
  columns: readonly Column<ArmResult>[],
  arms: readonly ArmResult[],
): readonly Column<ArmResult>[] {
  const unanswered = ({ unanswered: counts }: ArmResult): number => (counts?.empty ?? 0) + (counts?.refused ?? 0);
  if (!arms.some((arm) => unanswered(arm) > 0)) return columns;
  return [...columns, { heading: 'empty', meaning: UNANSWERED, value: (arm) => count(unanswered(arm)) }];
}

const UNANSWERED =
  'Attempts of the solver that its endpoint gave without any text, or as refusals. They are fails, which say little of the solver.';

export const UNGRADED =
  'Valid tasks that lost attempts to failures of the infrastructure. Whether they are in band is not known: rates in band are over all others.';

/** The counts behind the rates. */
export const COUNT_COLUMNS: readonly Column<ArmResult>[] = [
  ARM,
  { heading: 'generations', meaning: 'Fresh generations.', value: ({ n }) => count(n) },
  { heading: 'distinct', meaning: 'Distinct texts among them.', value: ({ unique }) => count(unique) },
  { heading: 'valid', meaning: 'Valid tasks.', value: ({ valid }) => count(valid) },
  { heading: 'in band', meaning: 'Valid tasks in band.', value: ({ frontier }) => count(frontier) },
  {
    heading: 'in band, known',
    meaning: 'Tasks in band that the run has labelled or that the arm wrote in its training.',
    value: ({ seenBefore }) => count(seenBefore.frontier),
  },
];

/** How diverse the valid tasks of each arm are. */
export const DIVERSITY_COLUMNS: readonly Column<ArmResult>[] = [
  ARM,
  {
    heading: 'repeats',
    meaning:
      'Valid tasks whose text an earlier one of the same arm has, among as many valid tasks as the smallest arm has.',
    value: ({ diversity: { duplicates } }) => share(duplicates?.exact),
  },
  {
    heading: 'near dup.',
    meaning:
      'Valid tasks that are like an earlier one of the same arm: Jaccard similarity of token 3-grams ≥ 0.8, names and constants masked. Among the same number of tasks.',
    value: ({ diversity: { duplicates } }) => share(duplicates?.near),
  },
  {
    heading: 'new (95%)',
    meaning:
      'Valid tasks that are neither a repeat nor a near duplicate of a labelled task, with the Wilson 95% interval.',
    value: ({ diversity: { novelty } }) =>
      novelty === null ? MISSING : `${percent(novelty.share)} (${percentRange(novelty.interval)})`,
  },
  {
    heading: 'distance',
    meaning: 'Mean of 1 − similarity to the nearest labelled task: 0 when all are like one.',
    value: ({ diversity: { novelty } }) => decimal(novelty?.meanDistance ?? null, 3),
  },
  {
    heading: 'top topic (95%)',
    meaning: 'Share of the most frequent topic among valid tasks, with the Wilson 95% interval.',
    value: ({ topTopic }) =>
      topTopic === null ? MISSING : `${percent(topTopic.share)} (${percentRange(topTopic.interval)})`,
  },
  {
    heading: 'topics',
    meaning: 'Effective number of topics, exp of their entropy: 1 when all tasks have one topic.',
    value: ({ diversity: { effectiveTopics } }) => decimal(effectiveTopics?.value ?? null, 1),
  },
  {
    heading: 'cells (95%)',
    meaning:
      'Cells of the structural space (depth × complexity × lines × variables) that as many valid tasks as the smallest arm has occupy in the mean, with a bootstrap 95% interval.',
    value: ({ diversity: { coverage } }) => (coverage === null ? MISSING : withRange(coverage.cells)),
  },
  {
    heading: 'eff. cells',
    meaning: 'exp of the entropy over those cells, at the same number of tasks.',
    value: ({ diversity: { coverage } }) => decimal(coverage?.effectiveCells.value ?? null, 1),
  },
  {
    heading: 'shape',
    meaning: 'Means: depth of the syntax tree / cyclomatic complexity / lines / variables.',
    value: ({ diversity: { structure } }) =>
      structure === null
        ? MISSING
        : [structure.depth, structure.cyclomatic, structure.lines, structure.variables]
            .map((mean) => mean.toFixed(1))
            .join(' / '),
  },
];

/** One arm's generations of one task type. */
export interface ArmOfType {
  readonly type: string;
  readonly arm: string;
  readonly rates: RateSummary;
}

export const TYPE_COLUMNS: readonly Column<ArmOfType>[] = [
  { heading: 'type', meaning: 'What the generator was asked for.', value: ({ type }) => type },
  { heading: 'arm', meaning: ARM.meaning, value: ({ arm }) => arm },
  { heading: 'generations', meaning: 'Fresh generations of the type.', value: ({ rates }) => count(rates.n) },
  {
    heading: 'validity',
    meaning: 'Valid tasks / all generations of the type.',
    value: ({ rates }) => percent(rates.validity),
  },
  {
    heading: 'frontier (95%)',
    meaning: 'Tasks in band / all generations of the type, with the Wilson 95% interval.',
    value: ({ rates }) => `${percent(rates.frontierRate)} (${percentRange(rates.frontierInterval)})`,
  },
  {
    heading: 'in band/valid',
    meaning: 'Tasks in band / valid tasks of the type.',
    value: ({ rates }) => percent(rates.inBandOfValid),
  },
  {
    heading: 'top topic',
    meaning: 'The most frequent topic and its share of valid tasks of the type.',
    value: ({ rates: { topTopic } }) =>
      topTopic === null ? MISSING : `${topTopic.name} ${percent(topTopic.share, 0)}`,
  },
];

function share(value: number | undefined): string {
  return value === undefined ? MISSING : percent(value);
}

/** 26.5 (22.6–30.5). */
function withRange({ value, interval: [low, high] }: Estimate): string {
  return `${value.toFixed(1)} (${low.toFixed(1)}–${high.toFixed(1)})`;
}
