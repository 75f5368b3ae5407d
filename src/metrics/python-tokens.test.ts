import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { pythonTokens, skeleton } from './python-tokens.js';

interface Fixture {
  sources: { source: string; tokens: [kind: string, text: string][] }[];
}
const fixture = JSON.parse(readFileSync(new URL('fixtures/python-tokens.json', import.meta.url), 'utf8')) as Fixture;

describe("tokens are those of CPython's tokenizer", () => {
  test.each(fixture.sources)('$source', ({ source, tokens }) => {
    expect(pythonTokens(source).map(({ kind, text }) => [kind, text])).toEqual(tokens);
  });

  test('what Python would refuse gives tokens all the same', () => {
    expect(pythonTokens("x = ')\n  )").map(({ text }) => text)).toEqual(['x', '=', "'", ')', '', '', ')', '', '']);
  });
});

const written = (source: string): string => skeleton(source).join(' ');

describe('a skeleton', () => {
  test('names variables by order of appearance and masks constants', () => {
    expect(written("def f(x, n):\n    z = x + 'AB'\n    return z[:n] * 3")).toBe(
      "def v0 ( v1 , v2 ) : newline indent v3 = v1 + '' newline return v3 [ : v2 ] * 0 newline dedent",
    );
  });

  test('is the same for other names, numbers, layout and comments', () => {
    const one = 'def f(x):\n    y = x - 5  # less\n\n    return y\n';
    const other = 'def g(a):\n  b = (a - 12)\n  return b';
    expect(written(one)).toBe(written(other.replace('(a - 12)', 'a-12')));
    expect(written(one)).not.toBe(written(other));
  });

  test.each([
    ['another operator', 'return x + 1', 'return x - 1'],
    ['another variable used', 'return x + x', 'return x + y'],
    ['another builtin', 'return max(x)', 'return min(x)'],
    ['another method', 'return x.upper()', 'return x.lower()'],
    ['another keyword argument', 'return sorted(x, reverse=y)', 'return sorted(x, key=y)'],
    ['another imported function', 'from math import floor\nfloor(x)', 'from math import ceil\nceil(x)'],
    ['another flag', 'return sorted(x, reverse=True)', 'return sorted(x, reverse=False)'],
    ['a backward slice', 'return x[::-1]', 'return x[::2]'],
  ])('differs by %s', (_, one, other) => {
    expect(written(one)).not.toBe(written(other));
  });

  test('parameters with a default are variables, not keyword arguments', () => {
    expect(written('def f(x=1):\n    return x')).toBe(written('def f(count=2):\n    return count'));
  });

  test('of text that is no program is there in time linear in it', () => {
    expect(written("don't")).toBe("v0 ' v1 newline");
    expect(written('x = """a')).toBe(`v0 = " '' v1 newline`);
    for (const piece of ["\\'", "'\\", '"""\\', "'a", '0.']) {
      const started = performance.now();
      skeleton(piece.repeat(500_000 / piece.length));
      expect(performance.now() - started).toBeLessThan(3000);
    }
  });
});
