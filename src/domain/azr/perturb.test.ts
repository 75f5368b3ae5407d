import { describe, expect, it } from 'vitest';
import { parseArguments } from './literal.js';
import { perturbedInputs } from './perturb.js';
import { distinctOutputsSchema } from './settings.js';
import type { PythonValue } from './value.js';

const ranges = distinctOutputsSchema.parse({ of: 8, atLeast: 6 });
const perturb = (input: string, seed = 'task', count = 200): string[] =>
  perturbedInputs(parseArguments(input), count, seed, ranges);
const firstArguments = (input: string): PythonValue[] =>
  perturb(input).flatMap((text) => parseArguments(text).positional.slice(0, 1));

describe('perturbed inputs', () => {
  it('follow from the seed alone', () => {
    expect(perturb('1, [2, 3]')).toEqual(perturb('1, [2, 3]'));
    expect(perturb('1, [2, 3]')).not.toEqual(perturb('1, [2, 3]', 'another task'));
  });

  it('draw integers from 0 to 40', () => {
    const drawn = firstArguments('7').map((value) => (value.type === 'int' ? Number(value.value) : NaN));
    expect(Math.min(...drawn)).toBe(0);
    expect(Math.max(...drawn)).toBe(40);
  });

  it('draw strings over A–F, one shorter to one longer', () => {
    const drawn = firstArguments("'ABCD'").map((value) => (value.type === 'str' ? value.value : ''));
    expect(new Set(drawn.map(({ length }) => length))).toEqual(new Set([3, 4, 5]));
    expect(drawn.every((text) => /^[A-F]+$/.test(text))).toBe(true);
  });

  it('draw lists of digits, at least two', () => {
    const drawn = firstArguments('[5]').flatMap((value) => (value.type === 'list' ? [value.items] : []));
    expect(new Set(drawn.map(({ length }) => length))).toEqual(new Set([2]));
    const items = drawn.flat().map((item) => (item.type === 'int' ? Number(item.value) : NaN));
    expect(new Set(items)).toEqual(new Set([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
  });

  it('keep the types of items, the keys of dicts, the length of tuples, the names of arguments', () => {
    for (const text of perturb("['AB', 'C'], {'k': 1}, (1, True, None), n=2.5", 'task', 20)) {
      const read = parseArguments(text);
      expect(read.positional).toMatchObject([
        { type: 'list', items: expect.arrayContaining([expect.objectContaining({ type: 'str' })]) },
        { type: 'dict', entries: [[{ value: 'k' }, { type: 'int' }]] },
        { type: 'tuple', items: [{ type: 'int' }, { type: 'bool' }, { type: 'none' }] },
      ]);
      expect(read.keywords).toMatchObject([['n', { type: 'float' }]]);
    }
  });
});
