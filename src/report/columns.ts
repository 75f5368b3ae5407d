/** The columns of the table of arms, shared by the terminal and the HTML report. */
import { wilsonInterval } from '../metrics/interval.js';
import { count, decimal, duration, MISSING, percent, percentRange, totalSeconds } from './format.js';
import type { ArmResult } from './results.js';

export interface ArmColumn {
  readonly heading: string;
  /** What the number means, for the report's reader. */
  readonly meaning: string;
  readonly value: (arm: ArmResult) => string;
}

export const ARM_COLUMNS: readonly ArmColumn[] = [
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
    value: ({ uniqueFrontierRate, n }) =>
      `${percent(uniqueFrontierRate)} (${percentRange(wilsonInterval(Math.round(uniqueFrontierRate * n), n))})`,
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
