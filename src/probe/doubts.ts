/** What speaks against rewarding by a probe: that it tells tasks in band no better than chance, or than what needs no model. */
import type { Difference, Estimate } from './held-out.js';

export interface Doubt {
  /** What the probe is not better than. */
  readonly about: 'chance' | 'length' | 'ngram';
  /** Whether its lead is less than none as measured, or chance within its interval; else more labels may yet show a lead. */
  readonly isGrave: boolean;
  /** Read after the probe's name. */
  readonly text: string;
}

/** AUROC of a guess. */
const CHANCE = 0.5;
const BASELINES = { length: 'length alone', ngram: 'token n-grams alone' } as const;
type Baseline = keyof typeof BASELINES;

type Measured = { readonly auroc: Estimate };

/**
 * Of a probe on held-out labels: the 95% interval of its AUROC reaches down to a guess's, or its AUROC lies below a baseline's on the same
 * labels.
 */
export function probeDoubts(
  { auroc }: Measured,
  baselines: Readonly<Record<Baseline, Measured>>,
  labels: number,
): Doubt[] {
  return [
    ...chanceDoubt(auroc, labels),
    ...baselineNames().flatMap((about): Doubt[] => {
      const other = baselines[about].auroc.value;
      if (auroc.value >= other) return [];
      return [
        {
          about,
          isGrave: true,
          text: `is below ${BASELINES[about]}: AUROC ${fixed(auroc.value)} against ${fixed(other)}`,
        },
      ];
    }),
  ];
}

/** Of what a study chose, on its test labels: the same, and where the paired interval of its lead over a baseline reaches down to none. */
export function studyDoubts(
  { auroc }: Measured,
  over: Readonly<Record<Baseline, Difference>>,
  labels: number,
): Doubt[] {
  return [
    ...chanceDoubt(auroc, labels),
    ...baselineNames().flatMap((about): Doubt[] => {
      const { value, interval } = over[about];
      if (interval[0] > 0) return [];
      const [low, high] = interval.map(signed);
      const isGrave = value < 0;
      const what = isGrave ? 'is below' : 'is not told apart from';
      return [{ about, isGrave, text: `${what} ${BASELINES[about]}: AUROC ${signed(value)} (${low} to ${high})` }];
    }),
  ];
}

function chanceDoubt({ value, interval: [low, high] }: Estimate, labels: number): Doubt[] {
  if (low > CHANCE) return [];
  const text = `is no better than chance: AUROC ${fixed(value)} (${fixed(low)}–${fixed(high)}) on ${labels} labels`;
  return [{ about: 'chance', isGrave: true, text }];
}

const baselineNames = (): Baseline[] => ['length', 'ngram'];
const fixed = (value: number): string => value.toFixed(3);
const signed = (value: number): string => `${value > 0 ? '+' : ''}${fixed(value)}`;
