import { expect, test } from 'vitest';
import { seededRandom } from '../metrics/random.js';
import type { Candidate } from './candidates.js';
import { byLoss, fitChoice, rankChoices } from './selection.js';

const random = seededRandom('selection');
const ROWS = 200;
/** One column that says whether a task is in band, but for a tenth, and one that says nothing. */
const counts = Array.from({ length: ROWS }, () => (random() < 0.5 ? 1 : 4));
function columnOf(value: (row: number) => number): Candidate {
  const data = Float32Array.from({ length: ROWS }, (_, row) => value(row));
  return { name: 'column', standardised: true, features: () => ({ rows: ROWS, columns: 1, data }) };
}
const telling = columnOf((row) => ((counts[row] === 1) !== random() < 0.1 ? 1 : 0));
const silent = columnOf(() => random());
const labels = { counts, k: 4, band: { min: 1, max: 2 } };
const rows = Array.from({ length: ROWS }, (_, row) => row);
const parts = { train: rows.slice(0, 120), validation: rows.slice(120) };

test('the best penalty of a candidate is the one with the least loss on the validation part, wherever it stands', async () => {
  for (const penalties of [
    [0.01, 100],
    [100, 0.01],
  ]) {
    const [best] = await rankChoices(labels, [telling], ['band'], penalties, parts);
    expect(best!.l2).toBe(0.01);
    expect(best!.validationLoss).toBeLessThan(0.5);
  }
  // What the training part tells is wrong of the validation part: the less of it is believed the better.
  const misleading = columnOf((row) => ((counts[row] === 1) === row < 120 ? 1 : 0));
  const [cautious] = await rankChoices(labels, [misleading], ['band'], [0.01, 100], parts);
  expect(cautious!.l2).toBe(100);
});

test('candidates are ranked by that loss, best first, and the losses are those of their logits', async () => {
  const ranked = await rankChoices(labels, [silent, telling], ['band'], [0.01], parts);
  expect(ranked.map(({ candidate }) => candidate)).toEqual([telling, silent]);
  for (const { validationLogits, validationLoss } of ranked) {
    expect(validationLogits).toHaveLength(80);
    const losses = parts.validation.map((row, i) =>
      Math.log1p(Math.exp((counts[row] === 1 ? -1 : 1) * validationLogits[i]!)),
    );
    expect(validationLoss).toBeCloseTo(losses.reduce((a, b) => a + b, 0) / losses.length, 9);
  }
  expect(byLoss([...ranked].reverse())).toEqual(ranked);
});

test('a choice is fitted on the rows it is given, and scores all', async () => {
  const [best] = await rankChoices(labels, [telling], ['band'], [0.01], parts);
  const { head, logits } = await fitChoice(labels, best!, parts.train);
  expect(logits).toHaveLength(ROWS);
  parts.validation.forEach((row, i) => expect(logits[row]).toBeCloseTo(best!.validationLogits[i]!, 1));
  expect(head.kind).toBe('band');
});
