/** The frontier: tasks that a solver passes sometimes but not often, and what an evaluation says of a set of generations. */
import { codeWords, distinctN, selfBleu3 } from './diversity.js';
import { type Interval, wilsonInterval } from './interval.js';

/** A band of pass counts: a task is in band when the solver passes `min` to `max` of its `of` attempts. */
export interface Band {
  readonly min: number;
  readonly max: number;
  readonly of: number;
}

/** Throws `RangeError` unless 0 ≤ min ≤ max ≤ of, in whole numbers, with at least one attempt and a count outside the band. */
export function validateBand(band: Band): void {
  const { min, max, of } = band;
  const whole = [min, max, of].every(Number.isInteger);
  if (!whole || min < 0 || min > max || max > of || of < 1 || (min === 0 && max === of)) {
    throw new RangeError(`not a band of pass counts: ${min} to ${max} of ${of}`);
  }
}

export function inBand(passes: number, band: Band): boolean {
  return passes >= band.min && passes <= band.max;
}

/** How many tasks were passed 0, 1, …, `attempts` times. */
export function passCountHistogram(passes: Iterable<number>, attempts: number): number[] {
  const histogram = Array.from({ length: attempts + 1 }, () => 0);
  for (const count of passes) {
    if (!Number.isInteger(count) || count < 0 || count > attempts) {
      throw new RangeError(`${count} passes of ${attempts} attempts`);
    }
    histogram[count]!++;
  }
  return histogram;
}

/** One fresh generation, re-scored by the solver. */
export interface Generation {
  /** The type of task that it was asked for. */
  readonly type: string;
  readonly valid: boolean;
  /** Passed attempts out of the band's `of`; null when invalid, or when attempts were lost to infrastructure errors. */
  readonly passes: number | null;
  /** The task as text (the completion's text when there is no task); what repeats, within a type, and diversity are counted on. */
  readonly text: string;
  readonly topic: string;
}

export interface TopicShare {
  readonly name: string;
  readonly count: number;
  readonly share: number;
}

/** The most frequent topic. */
export interface TopTopic {
  readonly name: string;
  readonly share: number;
  /**
   * Wilson 95% interval of the share. The topic was picked for being the most frequent, which favours the share a little where several are
   * about as frequent.
   */
  readonly interval: Interval;
}

/**
 * How often generations are valid and in band; "all" is every generation, valid or not. Whether an ungraded task is in band is not known: it
 * counts neither as in band nor as out of it, so rates in band are over the others. (Only valid tasks can be lost, which leaves the rate over
 * all a little low, never high.)
 */
export interface RateSummary {
  /** All generations. */
  readonly n: number;
  readonly valid: number;
  /** Valid tasks that lost attempts to failures of the infrastructure, and so are not graded. */
  readonly ungraded: number;
  /** Tasks in band, repeats counted. */
  readonly frontier: number;
  /** In band / all but the ungraded, with its Wilson 95% interval. */
  readonly frontierRate: number;
  readonly frontierInterval: Interval;
  /** In band / valid tasks that are graded. */
  readonly inBandOfValid: number;
  /** Valid / all, with its Wilson 95% interval. */
  readonly validity: number;
  readonly validityInterval: Interval;
  /** Graded tasks by passed attempts, 0 to K. */
  readonly passCounts: readonly number[];
  /** Among valid tasks; null when there are none. */
  readonly topTopic: TopTopic | null;
}

/** What an evaluation measured. */
export interface EvaluationSummary extends RateSummary {
  /** Distinct texts among all generations. */
  readonly unique: number;
  /** Distinct texts in band / all but the ungraded. A text's first graded occurrence decides, so that a repeat is not another chance. */
  readonly uniqueFrontierRate: number;
  /**
   * Wilson 95% interval of the same count. Repeats make the count of distinct texts vary less than a binomial count, so the interval
   * is at least as wide as it must be. (A bootstrap is no help here: resampling with replacement makes repeats of its own.)
   */
  readonly uniqueFrontierInterval: Interval;
  /** Over the texts of valid tasks, repeats kept; null where undefined. */
  readonly selfBleu3: number | null;
  readonly distinct3: number | null;
}

export interface SummaryOptions {
  /**
   * Diversity over the first so many valid tasks. Both measures depend on the number of texts, so arms compare only at equal numbers.
   * Default: all.
   */
  readonly diversityTexts?: number;
}

/** Summarise one arm's fresh generations. */
export function summariseEvaluation(
  generations: readonly Generation[],
  band: Band,
  options: SummaryOptions = {},
): EvaluationSummary {
  const measured = generations.filter((generation) => !isUngraded(generation));
  const uniqueFrontier = firstOccurrences(measured).filter(
    ({ valid, passes }) => valid && passes !== null && inBand(passes, band),
  ).length;
  const words = generations
    .filter(({ valid }) => valid)
    .slice(0, options.diversityTexts)
    .map(({ text }) => codeWords(text));
  return {
    ...summariseRates(generations, band),
    unique: firstOccurrences(generations).length,
    uniqueFrontierRate: share(uniqueFrontier, measured.length),
    uniqueFrontierInterval: wilsonInterval(uniqueFrontier, measured.length),
    selfBleu3: selfBleu3(words),
    distinct3: distinctN(words, 3),
  };
}

/** The rates of some generations, for example of those of one task type. */
export function summariseRates(generations: readonly Generation[], band: Band): RateSummary {
  validateBand(band);
  const n = generations.length;
  const valid = generations.filter((generation) => generation.valid);
  const graded = valid.flatMap(({ passes }) => (passes === null ? [] : [passes]));
  const frontier = graded.filter((passes) => inBand(passes, band)).length;
  const ungraded = valid.length - graded.length;
  const [topTopic] = topicShares(valid.map(({ topic }) => topic));
  return {
    n,
    valid: valid.length,
    ungraded,
    frontier,
    frontierRate: share(frontier, n - ungraded),
    frontierInterval: wilsonInterval(frontier, n - ungraded),
    inBandOfValid: share(frontier, graded.length),
    validity: share(valid.length, n),
    validityInterval: wilsonInterval(valid.length, n),
    passCounts: passCountHistogram(graded, band.of),
    topTopic:
      topTopic === undefined
        ? null
        : {
            name: topTopic.name,
            share: topTopic.share,
            interval: wilsonInterval(topTopic.count, valid.length),
          },
  };
}

/** Whether a task is valid, and what the solver makes of it not known. */
const isUngraded = ({ valid, passes }: Generation): boolean => valid && passes === null;

/** Topics with their counts and shares, most frequent first, equals by name. */
export function topicShares(topics: readonly string[]): TopicShare[] {
  const counts = new Map<string, number>();
  for (const topic of topics) counts.set(topic, (counts.get(topic) ?? 0) + 1);
  return [...counts]
    .map(([name, count]) => ({ name, count, share: count / topics.length }))
    .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1));
}

function firstOccurrences(generations: readonly Generation[]): Generation[] {
  const seen = new Set<string>();
  return generations.filter(({ type, text }) => {
    const key = `${type}\n${text}`;
    return !seen.has(key) && seen.add(key);
  });
}

function share(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}
