import { expect, it } from 'vitest';
import { dealOut } from './propose.js';

it('deals a batch out over the kinds in equal shares, the remainder to the first', () => {
  const kinds = ['code_o', 'code_i', 'code_f'];
  expect(dealOut(96, kinds)).toEqual(kinds.map((kind) => ({ kind, size: 32 })));
  expect(dealOut(8, kinds).map(({ size }) => size)).toEqual([3, 3, 2]);
  expect(dealOut(96, ['code_o'])).toEqual([{ kind: 'code_o', size: 96 }]);
});

it('leaves out kinds for which there is no item', () => {
  expect(dealOut(2, ['code_o', 'code_i', 'code_f'])).toEqual([
    { kind: 'code_o', size: 1 },
    { kind: 'code_i', size: 1 },
  ]);
});
