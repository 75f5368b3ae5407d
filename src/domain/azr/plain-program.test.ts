import { describe, expect, it } from 'vitest';
import { plainProgram, plainTask } from './plain-program.js';

const lines = (...text: string[]): string => text.join('\n');

describe('a program', () => {
  it.each([
    ['def f(x, n):\n    y = x // 4\n    return y + n'],
    ['def f(x):\n  s = "a  # b"\n  return s[x:] + \'#\''],
    ['import math\ndef g(a):\n\treturn a\ndef f(x):\n\tif x: return 1; \n\telse: return g(x)'.replace('; ', '')],
    ['def f(x):\n    y = [\n        1,\n        x,\n    ]\n    return """a\n\n  # b  c\n""" + str(y)'],
    ['def f(x):\n    pass'],
    ['def f(x):\n    """all that there is"""'],
    ["def f(x):\n    return f'{x!r:>{10}}' + f'{{#}}' + rf'\\{x}' + b'#'.hex()"],
  ])('that has nothing idle stays as it is: %j', (source) => {
    expect(plainProgram(source)).toBe(source);
  });

  it('loses comments, blank lines and the blanks at the ends of lines', () => {
    const source = lines(
      '# a task',
      '',
      'def f(x):  # why',
      '    # more',
      '    y = x  ',
      '',
      '\t',
      '    return y # "done"',
      '',
      '',
    );
    expect(plainProgram(source)).toBe(lines('def f(x):', '    y = x', '    return y'));
    expect(plainProgram('def f(x):\r\n    # a\r\n    return x\r\n')).toBe('def f(x):\n    return x');
  });

  it('keeps what only looks like a comment', () => {
    const source = lines(
      `def f(x):`,
      `    a = '#' + "it's # \\" #" + r'\\\\' + '''`,
      `# no comment`,
      `''' + """ " # """`,
      `    return a  # one`,
    );
    expect(plainProgram(source)).toBe(source.replace('  # one', ''));
  });

  it('loses the comments in fields of f-strings, which may hold strings of the same quotes', () => {
    expect(plainProgram("def f(x):\n    return f'{x['#']:#x}' # a")).toBe("def f(x):\n    return f'{x['#']:#x}'");
    expect(plainProgram("def f(x):\n    return f'''{x # a\n}'''")).toBe("def f(x):\n    return f'''{x \n}'''");
    const nested = `f"{f'{f"{x}"} # {1}'} #"`;
    expect(plainProgram(`def f(x):\n    return ${nested} # ${nested}`)).toBe(`def f(x):\n    return ${nested}`);
    expect(plainProgram("y = f'\\N{NUMBER SIGN}{x}' # a")).toBe("y = f'\\N{NUMBER SIGN}{x}'");
  });

  it('loses docstrings and constants that do nothing, but no last statement of a block', () => {
    const source = lines(
      `"""Of the module."""`,
      `def f(x):`,
      `    """Of the function,`,
      `    at length."""`,
      `    "a"; y = x; 'b' "c"; ("d")`,
      `    if y:`,
      `        12345`,
      `        "e"`,
      `    while y:`,
      `        pass`,
      `        y -= 1`,
      `    ...`,
      `    f"{y}"`,
      `    return y`,
    );
    expect(plainProgram(source)).toBe(
      lines(
        'def f(x):',
        '    y = x',
        '    if y:',
        '        "e"',
        '    while y:',
        '        y -= 1',
        '    f"{y}"',
        '    return y',
      ),
    );
  });

  it('loses wide blanks, continued lines and wide indents', () => {
    expect(plainProgram('def f(x):\n    return   x[ : -1 ]  +\\\n      \\\n  x')).toBe(
      'def f(x):\n    return x[ : -1 ] + x',
    );
    expect(
      plainProgram(`def f(x):\n${' '.repeat(40)}if x:\n${' '.repeat(99)}return x\n${' '.repeat(40)}return 1`),
    ).toBe('def f(x):\n    if x:\n        return x\n    return 1');
    expect(plainProgram(`x = [1, # one\n\n\n${' '.repeat(99)}2]`)).toBe(`x = [1,\n${' '.repeat(24)}2]`);
  });

  it.each(['x = "', "x = f'{", "x = f'{a:'", '"""', "x = 'a\nb'", '# nothing else', '', '\n\n'])(
    'that Python would refuse, or that is none, stays as it is: %j',
    (source) => expect(plainProgram(source)).toBe(source),
  );

  it.each(['8 f3', 'x y', "'a' x", '((1)'])('is not made right by it: %j', (statement) => {
    const source = `def f(x):\n    ${statement}\n    return x`;
    expect(plainProgram(source)).toBe(source);
  });

  it('is read in one pass, however it is nested', () => {
    const began = performance.now();
    for (const unit of [
      "f'{",
      'f\'{f"{',
      '([{',
      '"\n',
      "'''",
      '\\\n',
      '# \n',
      ' ;',
      "f'{x:{",
      "f'\\N{",
      '"" ',
      ' \t\f',
      ')}]',
    ])
      plainProgram(unit.repeat((1 << 18) / unit.length));
    expect(performance.now() - began).toBeLessThan(10_000);
  });
});

it('a task is plain in its inputs too, and in nothing else', () => {
  const snippet = 'def f(x):\n    return x # x';
  const plain = 'def f(x):\n    return x';
  const input = '  [1,   2], # a\n\n   "b  #"  ';
  expect(plainTask({ type: 'code_o', snippet, input, output: '1  # 2' })).toEqual({
    type: 'code_o',
    snippet: plain,
    input: '[1, 2],\n   "b  #"',
    output: '1  # 2',
  });
  const induction = { type: 'code_f', message: 'a  # b', outputs: null, shown: 1 } as const;
  expect(plainTask({ ...induction, snippet, inputs: ['1  ', '"a'] })).toEqual({
    ...induction,
    snippet: plain,
    inputs: ['1', '"a'],
  });
});
