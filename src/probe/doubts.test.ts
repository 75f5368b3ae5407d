import { describe, expect, test } from 'vitest';
import { probeDoubts, studyDoubts } from './doubts.js';

const measured = (value: number, low = value - 0.05, high = value + 0.05) => ({
  auroc: { value, interval: [low, high] as const },
});
const about = (doubts: readonly { readonly about: string }[]) => doubts.map((doubt) => doubt.about);

describe('a probe is in doubt', () => {
  const baselines = { length: measured(0.6), ngram: measured(0.7) };

  test('when the interval of its AUROC reaches down to a guess', () => {
    expect(about(probeDoubts(measured(0.75, 0.5), baselines, 9))).toEqual(['chance']);
    expect(probeDoubts(measured(0.75, 0.501), baselines, 9)).toEqual([]);
  });

  test('when it is below a baseline on the same labels, by how much', () => {
    expect(probeDoubts(measured(0.699), baselines, 9)).toEqual([
      { about: 'ngram', isGrave: true, text: 'is below token n-grams alone: AUROC 0.699 against 0.700' },
    ]);
    expect(probeDoubts(measured(0.7), baselines, 9)).toEqual([]);
    expect(probeDoubts(measured(0.43), baselines, 120)).toEqual([
      { about: 'chance', isGrave: true, text: 'is no better than chance: AUROC 0.430 (0.380–0.480) on 120 labels' },
      { about: 'length', isGrave: true, text: 'is below length alone: AUROC 0.430 against 0.600' },
      { about: 'ngram', isGrave: true, text: 'is below token n-grams alone: AUROC 0.430 against 0.700' },
    ]);
  });
});

describe('the choice of a study is in doubt', () => {
  const over = (value: number) => ({ value, interval: [value - 0.03, value + 0.03] as const });

  test('when its lead over a baseline may be none', () => {
    expect(studyDoubts(measured(0.8), { length: over(0.2), ngram: over(0.04) }, 9)).toEqual([]);
    expect(studyDoubts(measured(0.8), { length: over(0.2), ngram: over(0.03) }, 9)).toEqual([
      {
        about: 'ngram',
        isGrave: false,
        text: 'is not told apart from token n-grams alone: AUROC +0.030 (0.000 to +0.060)',
      },
    ]);
  });

  test('when it is behind one, or no better than a guess', () => {
    const doubts = studyDoubts(measured(0.52), { length: over(-0.1), ngram: over(0.01) }, 40);
    expect(about(doubts)).toEqual(['chance', 'length', 'ngram']);
    expect(doubts.map(({ isGrave }) => isGrave)).toEqual([true, true, false]);
    expect(doubts[1]!.text).toBe('is below length alone: AUROC -0.100 (-0.130 to -0.070)');
  });
});
