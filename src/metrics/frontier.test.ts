import { describe, expect, test } from 'vitest';
import {
  type Band,
  type Generation,
  inBand,
  passCountHistogram,
  summariseEvaluation,
  topicShares,
  validateBand,
} from './frontier.js';
import { wilsonInterval } from './interval.js';
import { seededRandom } from './random.js';

const BAND: Band = { min: 1, max: 3, of: 8 };

test('a band holds both of its ends', () => {
  expect([0, 1, 3, 4].map((passes) => inBand(passes, BAND))).toEqual([false, true, true, false]);
});

test.each([
  { min: 3, max: 1, of: 8 },
  { min: 1, max: 9, of: 8 },
  { min: 0, max: 8, of: 8 },
  { min: -1, max: 2, of: 8 },
  { min: 0.5, max: 2, of: 8 },
])('$min to $max of $of is no band', (band) => {
  expect(() => validateBand(band)).toThrow(RangeError);
});

test('pass counts from 0 to K', () => {
  expect(passCountHistogram([0, 2, 2, 3], 3)).toEqual([1, 0, 2, 1]);
  expect(() => passCountHistogram([4], 3)).toThrow('4 passes of 3 attempts');
});

test('topics by count, equals by name', () => {
  expect(topicShares(['b', 'a', 'c', 'c'])).toEqual([
    { name: 'c', count: 2, share: 0.5 },
    { name: 'a', count: 1, share: 0.25 },
    { name: 'b', count: 1, share: 0.25 },
  ]);
});

describe('an evaluation of eight generations', () => {
  const valid = (text: string, passes: number | null, topic: string): Generation => ({
    type: 'code_o',
    valid: true,
    text,
    passes,
    topic,
  });
  const invalid = (text: string): Generation => ({
    type: 'code_o',
    valid: false,
    text,
    passes: null,
    topic: 'unparsable',
  });
  const summary = summariseEvaluation(
    [
      valid('a b c', 1, 'loops'), // in band
      valid('a b c', 0, 'loops'), // a repeat, out of band this time
      valid('a b d', 8, 'slices'),
      valid('a b d', 2, 'slices'), // in band, but the first occurrence decides for unique tasks
      valid('a b e', 3, 'loops'), // in band
      valid('a b f', null, 'loops'), // attempts lost to errors
      invalid('a b'),
      invalid('a b'),
    ],
    BAND,
  );
  const measured = 7;

  test('counts', () => {
    expect(summary).toMatchObject({ n: 8, unique: 5, valid: 6, ungraded: 1, frontier: 3 });
    expect(summary.passCounts).toEqual([1, 1, 1, 1, 0, 0, 0, 0, 1]);
  });

  test('rates in band, over all whose attempts are there and over such valid tasks; validity over all', () => {
    expect(summary.frontierRate).toBe(3 / measured);
    expect(summary.frontierInterval).toEqual(wilsonInterval(3, measured));
    expect(summary.validity).toBe(6 / 8);
    expect(summary.validityInterval).toEqual(wilsonInterval(6, 8));
    expect(summary.inBandOfValid).toBe(3 / 5);
  });

  test('unique frontier: "a b c" and "a b e"', () => {
    expect(summary.uniqueFrontierRate).toBe(2 / measured);
    expect(summary.uniqueFrontierInterval).toEqual(wilsonInterval(2, measured));
  });

  test('diversity and topics of the valid tasks, repeats kept', () => {
    expect(summary.distinct3).toBeCloseTo(4 / 6, 12); // abc, abd, abe, abf in six texts
    expect(summary.topTopic).toEqual({ name: 'loops', share: 4 / 6, interval: wilsonInterval(4, 6) });
  });
});

test('a text whose first occurrence is not graded is decided by its next', () => {
  const of = (text: string, passes: number | null): Generation => ({
    type: 'code_o',
    valid: true,
    passes,
    text,
    topic: 't',
  });
  const summary = summariseEvaluation([of('a', null), of('a', 2), of('b', 8), of('c', null)], BAND);
  expect(summary).toMatchObject({ n: 4, unique: 3, ungraded: 2, frontierRate: 1 / 2, uniqueFrontierRate: 1 / 2 });
});

test('nothing graded: rates in band are zero with the widest interval, validity stands', () => {
  const lost = { type: 'code_o', valid: true, passes: null, text: 'a', topic: 't' };
  expect(summariseEvaluation([lost], BAND)).toMatchObject({
    ungraded: 1,
    frontierRate: 0,
    frontierInterval: [0, 1],
    inBandOfValid: 0,
    validity: 1,
  });
});

test('the same text of another type is another task', () => {
  const generations = ['code_o', 'code_i', 'code_i'].map((type) => ({
    type,
    valid: true,
    passes: 2,
    text: 'a',
    topic: 't',
  }));
  expect(summariseEvaluation(generations, BAND)).toMatchObject({ unique: 2, uniqueFrontierRate: 2 / 3 });
});

test('what is not valid has no part in diversity, wherever it stands', () => {
  const one = (text: string, valid: boolean): Generation => ({
    type: 'code_o',
    valid,
    text,
    passes: valid ? 2 : null,
    topic: 'slicing',
  });
  const valid = ['a b c d', 'a b c e', 'x y z w'].map((text) => one(text, true));
  const mixed = [one('q r s t u', false), valid[0]!, one('a b c d', false), ...valid.slice(1)];
  const { selfBleu3, distinct3 } = summariseEvaluation(valid, BAND);
  expect(summariseEvaluation(mixed, BAND)).toMatchObject({ selfBleu3, distinct3 });
  const first = summariseEvaluation(valid.slice(0, 2), BAND);
  expect(summariseEvaluation(mixed, BAND, { diversityTexts: 2 }).distinct3).toBe(first.distinct3);
});

test('diversity over the first texts only, so that arms compare at equal numbers', () => {
  const generations = ['a b c', 'a b c', 'x y z'].map((text) => ({
    type: 'code_o',
    valid: true,
    passes: 0,
    text,
    topic: 't',
  }));
  expect(summariseEvaluation(generations, BAND, { diversityTexts: 2 }).distinct3).toBe(0.5);
  expect(summariseEvaluation(generations, BAND).distinct3).toBeCloseTo(2 / 3, 12);
});

test('nothing valid: rates are zero, diversity and topic are undefined', () => {
  const summary = summariseEvaluation([{ type: 'code_o', valid: false, passes: null, text: '', topic: '' }], BAND);
  expect(summary).toMatchObject({
    frontierRate: 0,
    inBandOfValid: 0,
    selfBleu3: null,
    distinct3: null,
    topTopic: null,
  });
});

test('the interval of the unique frontier rate covers its expectation at least 95 times in 100, many repeats or few', () => {
  for (const kinds of [60, 2000]) {
    // 300 draws of a skewed distribution over so many texts, a third of them in band.
    const random = seededRandom(`coverage ${kinds}`);
    const sample = (): Generation[] =>
      Array.from({ length: 300 }, () => {
        const kind = Math.floor(kinds * random() ** 2);
        return { type: 'code_o', valid: true, passes: kind % 3 === 0 ? 2 : 8, text: String(kind), topic: 't' };
      });
    const runs = Array.from({ length: 400 }, () => summariseEvaluation(sample(), BAND, { diversityTexts: 0 }));
    const expectation = runs.reduce((sum, run) => sum + run.uniqueFrontierRate, 0) / runs.length;
    const covered = runs.filter(
      ({ uniqueFrontierInterval: [low, high] }) => low <= expectation && expectation <= high,
    ).length;
    expect(covered / runs.length).toBeGreaterThanOrEqual(0.94);
  }
});
