import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { codeWords, distinctN, selfBleu3 } from './diversity.js';

interface Fixture {
  words: { text: string; words: string[] }[];
  sets: { name: string; texts: string[]; selfBleu3: number; distinct3: number | null }[];
}
const fixture = JSON.parse(readFileSync(new URL('fixtures/diversity.json', import.meta.url), 'utf8')) as Fixture;

describe('words of code', () => {
  test('names, digits, punctuation, and a line break with its indentation', () => {
    expect(codeWords('def f(x1):\n    return x_ - 20')).toEqual([
      'def',
      'f',
      '(',
      'x',
      '1',
      ')',
      ':',
      '\n    ',
      'return',
      'x_',
      '-',
      '20',
    ]);
  });

  test.each(fixture.words)("as Python's regular expression: $text", ({ text, words }) => {
    expect(codeWords(text)).toEqual(words);
  });
});

describe('equal to NLTK', () => {
  test.each(fixture.sets)('$name', ({ texts, selfBleu3: expected, distinct3 }) => {
    const words = texts.map(codeWords);
    expect(Math.abs(selfBleu3(words)! - expected)).toBeLessThan(1e-9);
    expect(distinctN(words, 3)).toBe(distinct3);
  });
});

describe('by hand', () => {
  test('Distinct-3: "a b c d" and "a b c" hold abc twice and bcd once', () => {
    expect(
      distinctN(
        [
          ['a', 'b', 'c', 'd'],
          ['a', 'b', 'c'],
        ],
        3,
      ),
    ).toBeCloseTo(2 / 3, 12);
    expect(distinctN([['a', 'b']], 3)).toBeNull();
  });

  test('Self-BLEU-3 of "a b c d" against "a b c e": precisions 3/4, 2/3, 1/2 both ways', () => {
    const expected = Math.cbrt((3 / 4) * (2 / 3) * (1 / 2));
    expect(
      selfBleu3([
        ['a', 'b', 'c', 'd'],
        ['a', 'b', 'c', 'e'],
      ]),
    ).toBeCloseTo(expected, 12);
  });

  test('equal texts score 1, a single text has no score', () => {
    expect(
      selfBleu3([
        ['a', 'b', 'c'],
        ['a', 'b', 'c'],
      ]),
    ).toBeCloseTo(1, 12);
    expect(selfBleu3([['a', 'b', 'c']])).toBeNull();
  });
});

test('time grows with the number of n-grams, not of pairs of texts', () => {
  const seconds = (count: number): number => {
    const texts = Array.from({ length: count }, (_, text) =>
      Array.from({ length: 60 }, (_, word) => `w${(text * 31 + word * word) % 40}`),
    );
    const takes = Array.from({ length: 5 }, () => {
      const start = performance.now();
      selfBleu3(texts);
      return performance.now() - start;
    });
    return Math.min(...takes);
  };
  // Eight times the texts: 8 if linear, 64 if every pair were compared.
  expect(seconds(1600) / seconds(200)).toBeLessThan(32);
});
