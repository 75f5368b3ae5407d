import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  LiteralError,
  MAX_LITERAL_LENGTH,
  literalEqual,
  parseArguments,
  parseLiteral,
  tryParseArguments,
  tryParseLiteral,
} from './literal.js';
import { pythonRepr, pythonSource } from './value-text.js';
import { valuesEqual } from './value.js';

interface Fixture {
  readonly python: string;
  readonly values: readonly [string, string | null][];
  readonly equal: readonly [string, string, boolean][];
  readonly arguments: readonly [string, [string[], Record<string, string>] | null][];
  readonly printable: readonly [number, number][];
}
const fixture = JSON.parse(readFileSync(new URL('./fixtures/literals.json', import.meta.url), 'utf8')) as Fixture;

const reprOf = (text: string): string | null => {
  const value = tryParseLiteral(text);
  return value === null ? null : pythonRepr(value);
};

describe(`literals, against CPython ${fixture.python}`, () => {
  it('takes what ast.literal_eval takes, with the same repr, and nothing else', () => {
    const differing = fixture.values
      .map(([text, repr]) => ({ text, python: repr, ours: reprOf(text) }))
      .filter(({ python, ours }) => python !== ours);
    expect(differing).toEqual([]);
    expect(fixture.values.filter(([, repr]) => repr !== null).length).toBeGreaterThan(3000);
    expect(fixture.values.filter(([, repr]) => repr === null).length).toBeGreaterThan(1500);
  });

  it('reads its own repr back as an equal value', () => {
    const read = fixture.values.flatMap(([text]) => tryParseLiteral(text) ?? []);
    const differing = read.filter((value) => !valuesEqual(parseLiteral(pythonSource(value)), value));
    expect(differing).toEqual([]);
  });

  it("agrees on == for every pair of the fixture's literals", () => {
    expect(fixture.equal.filter(([a, b, equal]) => literalEqual(a, b) !== equal)).toEqual([]);
    expect(fixture.equal.filter(([, , equal]) => equal).length).toBeGreaterThan(80);
  });

  it('agrees on argument lists', () => {
    const differing = fixture.arguments.filter(([text, expected]) => {
      const read = tryParseArguments(text);
      const ours = read && [
        read.positional.map(pythonRepr),
        Object.fromEntries(read.keywords.map(([name, value]) => [name, pythonRepr(value)])),
      ];
      return JSON.stringify(ours) !== JSON.stringify(expected);
    });
    expect(differing).toEqual([]);
  });

  it('holds the same characters printable, but for those that a newer Unicode has added', () => {
    const isPrintable = (code: number): boolean =>
      pythonRepr({ type: 'str', value: String.fromCharCode(code) }).length === 3;
    const lost = fixture.printable.flatMap(([first, last]) =>
      Array.from({ length: last - first + 1 }, (_, step) => first + step).filter(
        (code) => !isPrintable(code) && !`'"\\`.includes(String.fromCharCode(code)),
      ),
    );
    expect(lost).toEqual([]);
  });
});

describe('the host reader', () => {
  it('says what is wrong and where', () => {
    expect(() => parseLiteral('[1, x]')).toThrow('the name x is not a literal at character 5');
    expect(() => parseLiteral("'abc")).toThrow('a string that does not end at character 1');
    expect(() => parseLiteral('')).toThrow('unexpected end at character 1');
    expect(() => parseArguments('a=1, 2')).toThrow('positional argument after a keyword at character 6');
    expect(() => parseLiteral('__import__("os").system("ls")')).toThrow(LiteralError);
  });

  it('keeps integers of any size exact', () => {
    expect(parseLiteral('123456789012345678901234567890')).toEqual({
      type: 'int',
      value: 123456789012345678901234567890n,
    });
    expect(literalEqual('9007199254740993', '9007199254740992.0')).toBe(false);
    expect(literalEqual('1e23', '99999999999999991611392')).toBe(true);
  });

  it('compares values, not texts; a cut or a second value is no answer', () => {
    expect(literalEqual("{'a': 1, 'b': [2.0]}", '{"b":[2],"a":True}')).toBe(true);
    expect(literalEqual('(1, 2)', '[1, 2]')).toBe(false);
    expect(literalEqual('[1, 2]', '[1, 2')).toBe(false);
    expect(literalEqual('3', '3\n4')).toBe(false);
    expect(literalEqual(' 3 ', '3')).toBe(true);
    expect(literalEqual('x', 'x')).toBe(false);
  });

  it('holds nan equal to nothing', () => {
    const nan = { type: 'float', value: NaN } as const;
    expect(valuesEqual(nan, nan)).toBe(false);
    expect(valuesEqual({ type: 'list', items: [nan] }, { type: 'list', items: [nan] })).toBe(false);
    expect(pythonRepr({ type: 'complex', real: NaN, imaginary: -0 })).toBe('(nan-0j)');
  });

  it('refuses named escapes and surrogates, which the host cannot hold faithfully', () => {
    expect(tryParseLiteral("'\\N{BULLET}'")).toBeNull();
    expect(tryParseLiteral("'\\ud83d\\ude00'")).toBeNull();
    expect(tryParseLiteral("'\ud83d'")).toBeNull();
    expect(parseLiteral("r'\\N{BULLET}'")).toEqual({ type: 'str', value: '\\N{BULLET}' });
  });

  it('minds lines and their indent as CPython does', () => {
    for (const text of [
      '()\n',
      '()\n  \n',
      '()\n #c',
      '()\n \f',
      ' ()',
      ' \n()',
      '\f()',
      '()\\\n ',
      '\\\n()',
      '()\n\\\n\f',
    ])
      expect([text, reprOf(text)]).toEqual([text, '()']);
    for (const text of [
      '()\n  ',
      '()\n\n\t',
      '()\n#c\n ',
      '\n ()',
      '\f ()',
      '()\\',
      '()\\\n',
      '()\n\\\n',
      '()\n()',
      '#c',
    ])
      expect([text, reprOf(text)]).toEqual([text, null]);
    expect(parseArguments('a # c\n = 1, b \\\n= 2 \\').keywords).toHaveLength(2);
    // Of an answer the blanks around it are nobody's mistake.
    expect(literalEqual('()\n  ', '()')).toBe(true);
  });

  it('takes time linear in what it reads and compares', () => {
    const bits = '1'.repeat(1_200_000);
    const hostile: [string, string][] = [
      ['#\n'.repeat(600_000), '1'],
      [`[${'#\n'.repeat(600_000)}]`, '[]'],
      [`1${'\\\n'.repeat(600_000)} `, '1'],
      [`0x${bits}`, `0x${bits}`],
      [`-0b${bits}`, `-0b${bits}`],
      [`[0x${bits}, 1e308]`, `[0x${bits}, 1e308]`],
      [`${'['.repeat(199)}'${'a'.repeat(1_200_000)}'${']'.repeat(199)}`, '[]'],
      [`${'{1:'.repeat(199)}'${'a'.repeat(1_200_000)}'${'}'.repeat(199)}`, '{}'],
      [`'${'\\n'.repeat(600_000)}'`, `'${'\\n'.repeat(600_000)}'`],
      ['"" '.repeat(400_000), "''"],
      [`a${' '.repeat(1_200_000)}`, '1'],
      [`{${"'',".repeat(400_000)}}`, "{''}"],
    ];
    for (const [a, b] of hostile) {
      const started = performance.now();
      literalEqual(a, b);
      tryParseArguments(a);
      expect(performance.now() - started).toBeLessThan(4000);
    }
    const huge = parseLiteral(`0x${bits}`);
    expect(() => pythonRepr(huge)).toThrow('an integer of more than 4300 digits has no repr');
    expect(pythonSource(huge)).toBe(`0x${bits}`);
  });

  it('reads a megabyte, and stops at its bounds', () => {
    const items = Array.from({ length: 200_000 }, (_, item) => item % 10).join(', ');
    const list = parseLiteral(`[${items}]`);
    expect(list.type === 'list' && list.items.length).toBe(200_000);
    expect(parseLiteral(`{${items}}`)).toMatchObject({ type: 'set', items: { length: 10 } });
    expect(literalEqual(`[${items}]`, `[${items},]`)).toBe(true);
    expect(parseLiteral(`'${'a'.repeat(1 << 20)}'`)).toMatchObject({ type: 'str' });
    expect(parseLiteral(`0x${'f'.repeat(1 << 20)}`)).toMatchObject({ type: 'int' });
    expect(parseLiteral(`[${' \n'.repeat(600_000)}]`)).toEqual({ type: 'list', items: [] });
    expect(parseLiteral(`(${'b"a"'.repeat(200_000)})`)).toMatchObject({ type: 'bytes', value: { length: 200_000 } });
    expect(() => parseLiteral('1'.repeat(MAX_LITERAL_LENGTH + 1))).toThrow('text too long');
    expect(() => parseLiteral('['.repeat(100_000))).toThrow('nested too deeply');
    expect(() => parseLiteral('-'.repeat(100_000))).toThrow(LiteralError);
  });
});
