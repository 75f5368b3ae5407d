import { expect, it } from 'vitest';
import { isPlainCode } from './plain-code.js';

const plain = (text: string, recorded = 'lambda x: x'): boolean => isPlainCode(text, recorded);

it.each([
  '[6, 4], lambda x: x.reverse()',
  "lambda x, *rest: sorted(x)[0] if rest else 'no __class__'",
  '[x * 2 for (x, y) in zip([1], [2]) if x > y], {1: {2}}',
  "sum(len(x) for x in ['a'])",
  '1, k=lambda: None',
])('%s is functions over data', (text) => {
  expect(plain(text)).toBe(true);
});

it.each([
  "type('T', (), {'__call__': lambda s, *a: s})()",
  '(lambda t: t)(type)',
  'lambda x, t=type: t(1)',
  'lambda type: type',
  'lambda f: f',
  'f(1)',
  '(1).__class__',
  '(x for x in [1]).gi_frame.f_globals',
  '(lambda: 1).__code__',
  "f'{x}'",
  "Rf'{().__class__}'",
  '(y := 1)',
  "__import__('types')",
  'globals()',
  'np.array([1])',
  'helper',
  'await x',
])('%s may be anything', (text) => {
  expect(plain(text)).toBe(false);
});

it('may name what the recorded input names, but for what makes objects of any kind', () => {
  expect(plain('Point(2, 3)', 'Point(1, 2)')).toBe(true);
  expect(plain('deque([2]).rotate(1)', 'deque([1]).rotate(2)')).toBe(true);
  expect(plain("type('A', (), {})", "type('B', (), {})")).toBe(false);
  expect(plain('x.__class__', 'y.__class__')).toBe(false);
});
