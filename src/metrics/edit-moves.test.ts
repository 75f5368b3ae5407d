import { expect, it } from 'vitest';
import { editMoves } from './edit-moves.js';

it('rises, lifts and moves of a kind, by hand', () => {
  const edit = (kind: string, after: number | null) => ({ kind, after });
  const moves = editMoves(
    [
      { before: -1, highest: 2, edits: [edit('rename', 1), edit('pad', -2), edit('pad', null)] },
      { before: 0, highest: 0.4, edits: [edit('rename', -0.5), edit('comment', null)] },
      // In the band by the probe as it is.
      { before: 2, highest: 2, edits: [] },
    ],
    { even: 0.5, perTask: 3, kinds: ['comment', 'pad', 'rename'], seed: 1 },
  );
  expect(moves).toMatchObject({
    tasks: 3,
    perTask: 3,
    // (3 + 0.4 + 0)/3
    rise: { value: 3.4 / 3 },
    lifted: { count: 1, of: 2 },
    kinds: [
      { kind: 'comment', tried: 1, kept: 0, mean: null, least: null, most: null },
      { kind: 'pad', tried: 2, kept: 1, mean: -1, least: -1, most: -1 },
      { kind: 'rename', tried: 2, kept: 2, mean: 0.75, least: -0.5, most: 2 },
    ],
  });
  const [low, high] = moves.rise.interval;
  expect(low).toBeGreaterThanOrEqual(0);
  expect(low).toBeLessThan(3.4 / 3);
  expect(high).toBeGreaterThan(3.4 / 3);
  expect(high).toBeLessThanOrEqual(3);
});
