import { expect, test } from 'vitest';
import { standInReference } from '../../tests/planted-tasks.js';
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
