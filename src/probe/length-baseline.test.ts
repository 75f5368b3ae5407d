import { expect, test } from 'vitest';
import { standInReference } from '../../tests/planted-tasks.js';
import { seededRandom } from '../metrics/random.js';
import { fitLengthBaseline } from './length-baseline.js';

/** Texts of 1 to 40 letters, the long ones in band but for every fifth. */
const tasks = Array.from({ length: 120 }, (_, i) => {
  const length = 1 + (i % 40);
  const inBand = length > 20 !== (i % 5 === 0);
  const letters = 'abc'[Math.floor(i / 40)]!;
  return { id: `${i}`, text: letters.repeat(length), passes: inBand ? 1 : 4 };
});
const settings = { head: 'band', l2: [0.01], validationShare: 0.2, seed: 1 } as const;
const baseline = await fitLengthBaseline(standInReference, tasks, { k: 4, band: { min: 1, max: 2 } }, settings);

test('what is longer is likelier in band, whatever it says', () => {
  const [short, long, other] = baseline.logits(['a'.repeat(3), 'a'.repeat(35), 'z'.repeat(35)]);
  expect(long).toBeGreaterThan(0);
  expect(short).toBeLessThan(0);
  expect(other).toBe(long);
});

test('the scale is that of the labels', () => {
  const logits = [...baseline.logits(tasks.map(({ text }) => text))];
  const mean = logits.reduce((a, b) => a + b, 0) / logits.length;
  const variance = logits.reduce((sum, logit) => sum + (logit - mean) ** 2, 0) / logits.length;
  expect(baseline.scale.mean).toBeCloseTo(mean, 5);
  expect(baseline.scale.sd).toBeCloseTo(Math.sqrt(variance), 5);
});

test('a fit follows from the labels: made again, it is the same', async () => {
  const again = await fitLengthBaseline(standInReference, tasks, { k: 4, band: { min: 1, max: 2 } }, settings);
  expect(again.scale).toEqual(baseline.scale);
  expect(again.logits(['abc'])).toEqual(baseline.logits(['abc']));
});

const BAND = { k: 4, band: { min: 1, max: 2 } };

test('a text that is labelled again does not count again', async () => {
  const again = tasks.map((task) => ({ ...task, passes: 0 }));
  const twice = await fitLengthBaseline(standInReference, [...tasks, ...again], BAND, settings);
  expect(twice.logits(['abc', 'a'.repeat(35)])).toEqual(baseline.logits(['abc', 'a'.repeat(35)]));
});

test('it takes the head that is asked for where that is better than a logistic: the middle can be in band', async () => {
  // Short ones are solved always, long ones never, those between sometimes.
  const middle = tasks.map(({ id, text }) => {
    const passes = text.length <= 13 ? 4 : text.length <= 27 ? 1 : 0;
    return { id, text, passes };
  });
  const fitted = await fitLengthBaseline(standInReference, middle, BAND, { ...settings, head: 'counts', l2: [0.003] });
  const [short, between, long] = fitted.logits(['a'.repeat(4), 'a'.repeat(20), 'a'.repeat(37)]);
  expect(between).toBeGreaterThan(Math.max(short!, long!) + 1);
});

test('the penalty is chosen by labels that were not learnt from: where length says nothing, the strong one', async () => {
  const random = seededRandom('nothing in length');
  const chance = tasks.slice(0, 60).map((task) => ({ ...task, passes: Math.floor(5 * random()) }));
  const choosing = { ...settings, head: 'counts', l2: [1e-5, 30], validationShare: 0.4, seed: 2 } as const;
  const fitted = await fitLengthBaseline(standInReference, chance, BAND, choosing);
  expect(fitted.scale.sd).toBeLessThan(0.1);
});
