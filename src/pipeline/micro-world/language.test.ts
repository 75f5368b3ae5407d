import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../metrics/random.js';
import { readsEveryParameter, sampleProgram, taskText, type SampledProgram } from './language.js';

function sample(seed: number | string, count: number): SampledProgram[] {
  const random = seededRandom(seed);
  return Array.from({ length: count }, () => sampleProgram(random));
}

describe('sampleProgram', () => {
  const programs = sample('language', 20_000);

  it('follows from the seed alone', () => {
    expect(sample(3, 50)).toEqual(sample(3, 50));
    expect(sample(3, 50)).not.toEqual(sample(4, 50));
  });

  it('reads every parameter', () => {
    for (const { snippet } of programs) expect(readsEveryParameter(snippet), snippet).toBe(true);
  });

  it('keeps task texts within 130 characters, most of them within 95', () => {
    const lengths = programs.map((program) => taskText(program).length);
    expect(lengths.every((length) => length <= 130)).toBe(true);
    const long = lengths.filter((length) => length > 95).length / lengths.length;
    expect(long).toBeGreaterThan(0.02);
    expect(long).toBeLessThan(0.15);
  });

  it('writes one function f and arguments that are literals in range', () => {
    const literal = String.raw`(\d|[1-3]\d|40|'[A-F]{3,6}'|\[\d(, \d){2,5}\])`;
    for (const { snippet, input } of programs) {
      expect(snippet).toMatch(/^def f\(x(, n)?\):\n {4}/);
      expect(
        snippet
          .split('\n')
          .slice(1)
          .every((line) => /^ {4,12}\S/.test(line)),
      ).toBe(true);
      expect(input).toMatch(new RegExp(`^${literal}(, ${literal})?$`));
    }
  });

  it('covers the language', () => {
    const constructs = [
      'while ',
      'for v in x:',
      'for k in x:',
      ' in range(',
      'if ',
      'else:',
      'd.get(',
      'sorted(',
      'sorted(set(',
      '[::-1]',
      '.replace(',
      '.count(',
      '.find(',
      '.index(',
      '.sort()',
      '.reverse()',
      '.append(',
      '.pop(',
      "''.join(",
      'zip(',
      ' for v in ',
      '+= ',
      ' // ',
      ' % ',
      'abs(',
      'sum(',
      'max(',
      'min(',
      'len(',
      '* 2',
    ];
    for (const construct of constructs) {
      const share = programs.filter(({ snippet }) => snippet.includes(construct)).length / programs.length;
      expect(share, construct).toBeGreaterThan(0.002);
    }
  });

  it('has while loops only over an integer that falls', () => {
    for (const { snippet } of programs) {
      for (const [, name, change] of snippet.matchAll(/while (\w) > \d:\n {8}(.*)/g)) {
        expect(change).toMatch(new RegExp(`^${name} (-= [2-9]|//= [23])$`));
      }
    }
  });

  it('brackets sums before an index or a method', () => {
    for (const { snippet } of programs) expect(snippet).not.toMatch(/[+*] ('\w+'|\d+)(\.\w|\[)/);
  });
});

describe('readsEveryParameter', () => {
  it('wants every parameter', () => {
    expect(readsEveryParameter('def f(x, n):\n    return x[n]')).toBe(true);
    expect(readsEveryParameter('def f(x, n):\n    return n + n')).toBe(false);
  });

  it('does not take an assignment for a reading', () => {
    expect(readsEveryParameter('def f(x, n):\n    n = 2\n    return x')).toBe(false);
    expect(readsEveryParameter('def f(x, n):\n    n //= 2\n    return x')).toBe(false);
    expect(readsEveryParameter('def f(x, n):\n    n -= 2\n    return x * n')).toBe(true);
    expect(readsEveryParameter('def f(x):\n    return x == 2')).toBe(true);
  });

  it('does not take a longer name for the parameter', () => {
    expect(readsEveryParameter('def f(x):\n    return max(3, 4)')).toBe(false);
  });
});

describe('taskText', () => {
  it('is the snippet, the call and a newline', () => {
    const program = { snippet: 'def f(x):\n    return x[::-1]', input: '[1, 2, 3]' };
    expect(taskText(program)).toBe('def f(x):\n    return x[::-1]\n>>> f([1, 2, 3])\n');
  });
});
