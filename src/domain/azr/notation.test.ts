import { describe, expect, it } from 'vitest';
import { doctest } from './doctest.js';
import { fenced } from './fenced.js';
import { withoutCall } from './notation.js';

const block = (label: string, text: string): string => `\`\`\`${label}\n${text}\n\`\`\``;

describe('fenced notation', () => {
  it('reads the last block of each label', () => {
    const completion = [
      'A first try:',
      block('python', 'def f(x):\n    return 0'),
      block('input', '1'),
      'Better:',
      block('python', 'def f(x):\n    return x'),
      block('input', "'a', [\n  1\n]"),
    ].join('\n');
    expect(fenced.readProgramAndInput(completion)).toEqual({
      snippet: 'def f(x):\n    return x',
      input: "'a', [\n  1\n]",
    });
  });

  it('reads the program, and not an example of its use after it', () => {
    const program = block('python', 'def f(x):\n    return x');
    const usage = `Example usage:\n${block('python', 'if True:\n    def g(): pass\nprint(f(1))')}`;
    expect(fenced.readProgramAndInput(`${program}\n${usage}\n${block('input', '1')}`)?.snippet).toBe(
      'def f(x):\n    return x',
    );
    expect(
      fenced.readFunction([program, usage, block('input', '1'), block('message', 'Itself.')].join('\n'))?.snippet,
    ).toBe('def f(x):\n    return x');
  });

  it('reads only the answer of a model that thinks aloud', () => {
    const draft = `<think>${block('output', '1')}`;
    expect(
      fenced.readAnswer(
        `${draft}</think><answer>\n${block('output', '2')}\n</answer> bye ${block('output', '3')}`,
        'output',
      ),
    ).toBe('2');
    expect(fenced.readAnswer(`${draft}</think>\n${block('output', '2')}`, 'output')).toBe('2');
    expect(fenced.readAnswer(`${draft}</think> I do not know`, 'output')).toBeNull();
    expect(fenced.readAnswer(`<answer>${block('output', '1')}</answer>`, 'output')).toBe('1');
    expect(fenced.readAnswer(`<answer>\n${block('output', '1')}`, 'output')).toBe('1');
  });

  it('takes no block that is cut off, misses its label or is not there', () => {
    expect(fenced.readProgramAndInput('```python\ndef f(x):\n    return x\n```\n```input\n1')).toBeNull();
    expect(fenced.readProgramAndInput(block('python', 'def f(x): return x'))).toBeNull();
    expect(fenced.readAnswer(block('rust', 'x'), 'python')).toBeNull();
    expect(fenced.readAnswer('```output\n```', 'output')).toBe('');
    expect(fenced.readAnswer('```output\r\n5\r\n```\r\n', 'output')).toBe('5');
  });

  it('takes a whole call for its arguments', () => {
    expect(withoutCall(' f(1, (2, 3)) ')).toBe('1, (2, 3)');
    expect(withoutCall('(1, 2), 3')).toBe('(1, 2), 3');
    expect(fenced.readProgramAndInput(`${block('python', 'p')}\n${block('input', 'f([1])')}`)?.input).toBe('[1]');
  });

  it('takes the last program that defines f, whatever tests follow it', () => {
    const tests = block('python', 'def test_f():\n    assert f(1) == 1');
    const written = `${block('python', 'f = lambda x: x')}\n${tests}\n${block('input', '2')}`;
    expect(fenced.readProgramAndInput(written)).toEqual({ snippet: 'f = lambda x: x', input: '2' });
    expect(fenced.readFunction(`${written}\n${block('message', 'm')}`)?.snippet).toBe('f = lambda x: x');
  });

  it('reads what it writes', () => {
    const task = { snippet: "def f(x):\n    '''\n    doc\n    '''\n    return x", input: "'`', 2" };
    expect(fenced.readProgramAndInput(fenced.writeProgramAndInput(task))).toEqual(task);
    expect(fenced.writeProgramAndInput({ snippet: 'p', input: 'i' })).toBe('```python\np\n```\n\n```input\ni\n```\n');
  });
});

describe('a solver’s fenced answer', () => {
  const read = (text: string, kind: 'output' | 'input' | 'python' = 'output') => fenced.readAnswer(text, kind);

  it('survives prose around it, drafts, and thinking', () => {
    const draft = `First I thought:\n\n${block('output', '[9]')}\n\nbut no.`;
    expect(read(`${draft}\n\nSo the answer is\n\n${block('output', '[1]')}\n\nHope this helps!`)).toBe('[1]');
    expect(read(`<think>${draft}</think>\n${block('output', '[1]')}`)).toBe('[1]');
    expect(read(`${draft}</think>\n${block('output', '[1]')}`)).toBe('[1]');
    expect(read(`<think>\n${draft}`)).toBeNull();
    expect(read('1. So:\n   ```python\n   def f(x):\n     return x\n\n   ```', 'python')).toBe(
      'def f(x):\n  return x\n',
    );
  });

  it('may stand in other fences and under other names for the same', () => {
    expect(read('~~~output\n[1]\n~~~')).toBe('[1]');
    expect(read('~~~~ Output\n[1]\n```\n~~~\n~~~~~')).toBe('[1]\n```\n~~~');
    expect(read('````markdown\n```output\n[1]\n```\n````')).toBe('[1]');
    expect(read('```output\r\n[1,\r\n2]\r\n```\r\nDone.')).toBe('[1,\n2]');
    expect(read('```{.output}\n[1]\n```')).toBe('[1]');
    for (const label of ['py', 'python3', 'Python title="f.py"']) {
      expect(read(block(label, 'def f(x): return x'), 'python')).toBe('def f(x): return x');
    }
  });

  it('is the last program that defines f, whatever tests it or shows how to use it', () => {
    const right = 'def f(x):\n    return x + 1';
    const after = [
      'def test_f():\n    assert f(1) == 2\n\ntest_f()',
      'def main():\n    print(f(3))\n\nmain()',
      'async def check():\n    return f(1)',
      'class Test:\n    def f(self):\n        return f(1)',
      'import unittest\nassert f(1) == 2 and f == f',
      'def solve(x):\n    return f(x)',
      'result = f(3)\nf(3) == 4\nfoo = [f]\n# f = 1\nfrom m import f as g, ff',
    ];
    for (const text of after) {
      expect(read(`${block('python', right)}\nTests:\n${block('python', text)}`, 'python')).toBe(right);
    }
    const definitions = [
      'async def f(x):\n    return 1',
      'f = lambda x: x + 1',
      'f=lambda x: x',
      'f: Callable[[int], int] = lambda x: x',
      'g = f = lambda x: x',
      'class f:\n    def __new__(cls, x):\n        return x',
      'class f(int): pass',
      'from operator import neg as f',
      'from operator import (neg, neg as f)',
      'from mine import g, f',
      'import operator as f',
      '@functools.cache\ndef f(x):\n    return x',
      'def f[T](x: T) -> T:\n    return x',
      'def helper(x):\n    return x\n\nf = helper',
    ];
    for (const text of definitions) {
      expect(
        read(`${block('python', right)}\nBetter:\n${block('py', text)}\n${block('python', after[0]!)}`, 'python'),
      ).toBe(text);
    }
  });

  it('may be a program in a block that does not say so, if that defines f', () => {
    const right = 'def f(x):\n    return x + 1';
    expect(read(`${block('', right)}\n${block('', 'print(f(1))')}`, 'python')).toBe(right);
    expect(read(`${block('text', right)}\n${block('python', 'def test():\n    assert f(1) == 2')}`, 'python')).toBe(
      right,
    );
    expect(read(`${block('', 'print(1)')}\n${block('', 'print(2)')}`, 'python')).toBeNull();
  });

  it('is the last function where none is called f, but for tests and main', () => {
    const draft = block('python', 'def f(x):\n    return 0');
    const program = block('python', 'import math\n\nasync def f(x):\n    return x');
    const usage = block('python', 'print(f(1))  # def');
    expect(read(`${draft}\nBetter:\n${program}\nExample usage:\n${usage}`, 'python')).toBe(
      'import math\n\nasync def f(x):\n    return x',
    );
    const solve = 'def solve(x):\n    return x';
    const tests = block('python', 'def test_solve():\n    assert solve(1) == 1\n\ndef main():\n    test_solve()');
    expect(
      read(`${block('python', 'def double(x):\n    return x')}\n${block('python', solve)}\n${tests}`, 'python'),
    ).toBe(solve);
    expect(read(`${block('python', 'f = 1')}\n${block('python', 'f = lambda x: x')}`, 'python')).toBe(
      'f = lambda x: x',
    );
  });

  it('may stand in lists and quotes, without what marks them on its lines', () => {
    expect(read('- ```output\n  [1, 1]\n  ```')).toBe('[1, 1]');
    expect(read('1. Answer\n2. ```output\n   [1,\n    1]\n   ```')).toBe('[1,\n 1]');
    expect(read('10) ~~~output\n    [1]\n    ~~~')).toBe('[1]');
    expect(read('> ```output\n> [1,\n>  2]\n> ```')).toBe('[1,\n 2]');
    expect(read('>```output\n>[1]\n>```')).toBe('[1]');
    expect(read('> > ```output\n> >\n> > [1]\n> > ```')).toBe('\n[1]');
    expect(read('> * ```output\n>   [1]\n>   ```')).toBe('[1]');
    expect(read('- > ```output\n  > [1]\n  > ```')).toBe('[1]');
    expect(read('- - + ```output\n      [1]\n      ```\nDone.')).toBe('[1]');
    expect(read('* ```python\n  def f(x):\n      return x\n  ```', 'python')).toBe('def f(x):\n    return x');
    expect(read('-\t```python\n\tdef f(x):\n\t\treturn x\n\t```', 'python')).toBe('def f(x):\n\treturn x');
    expect(read('   ```python\n\tif x:\n   \ty\n   ```', 'python')).toBe(' if x:\n\ty');
    expect(read('> ```python\n> >>> f(1)\n> ```', 'python')).toBe('>>> f(1)');
    // A second item begins its block anew; a closing fence is no item.
    expect(read('- ```output\n  [1]\n- ```output\n  [2]\n  ```')).toBe('[2]');
    expect(read('```output\n- ```\n```')).toBe('- ```');
    expect(read('-```output\n[1]\n```')).toBeNull();
    expect(read('Answer: ```output\n[1]')).toBeNull();
    expect(read('````md\n> ```output\n> [1]\n> ```\n````')).toBe('[1]');
  });

  it('may lack its label when it is the only block that does', () => {
    expect(read(`The result:\n${block('', '[1]')}`)).toBe('[1]');
    expect(read(`${block('python', 'f([1])')}\ngives\n${block('text', '[1]')}`)).toBe('[1]');
    expect(read(`${block('', '[1]')}\nor\n${block('', '[2]')}`)).toBeNull();
    expect(read(`${block('', '[1]')}\n${block('output', '[2]')}`)).toBe('[2]');
    expect(read(`${block('output', '[2]')}\n${block('', 'python3 program.py')}`)).toBe('[2]');
    expect(read(block('python', '[1]'))).toBeNull();
    expect(read(block('input', '[1]'))).toBeNull();
    expect(read(block('', 'def f(x): return x'), 'python')).toBe('def f(x): return x');
  });

  it('may stand without a block where it is marked, and closed', () => {
    expect(read('So it is <answer> [3, 4]\n</answer>.')).toBe('[3, 4]');
    expect(read('<answer>[1]</answer> no, <answer>output: [2]</answer>')?.trim()).toBe('[2]');
    expect(read(`<answer>${block('output', '[1]')}</answer>`)).toBe('[1]');
    expect(read(`<answer>[1]</answer>, which Python shows as\n${block('output', '[2]')}`)).toBe('[1]');
    expect(read(`<think>Is it <answer>[9]</answer>?</think>\n${block('output', '[1]')}`)).toBe('[1]');
    expect(read('<answer>[3, 4')).toBeNull();
    expect(read('<think>Maybe <answer>[9]</answer>?</think> I do not know.')).toBeNull();
    expect(read('<answer>def f(x): return x</answer>', 'python')).toBe('def f(x): return x');
  });

  it('may say its name once more within', () => {
    expect(read(block('output', 'output: [1]'))?.trim()).toBe('[1]');
    expect(read(block('output', 'Output = [1]'))?.trim()).toBe('[1]');
    expect(read(block('output', "'output: 1'"))).toBe("'output: 1'");
    expect(read(block('input', 'input: [1], 2'), 'input')?.trim()).toBe('[1], 2');
    // A parameter may be called so.
    expect(read(block('input', 'input=[1]'), 'input')).toBe('input=[1]');
  });

  it('is none when it is cut off, or inline', () => {
    expect(read('```output\n[1]')).toBeNull();
    expect(read('```output\n[1]\n``')).toBeNull();
    expect(read('```output\n[1]\n~~~')).toBeNull();
    expect(read('The output is ```[1]```.')).toBeNull();
    expect(read('output: [1]')).toBeNull();
    expect(read(`\`\`\`python\ndef f(x):\n${block('output', '[1]')}`)).toBe('[1]');
    expect(read(`\`\`\`python\ndef f(x):\n${block('output', '[1]')}`, 'python')).toBeNull();
  });

  it('is found in time that grows with the text, whatever is in it', () => {
    const hostile = [
      '```output\n',
      '```output\n[1]\n',
      '~~~\n',
      '`'.repeat(50),
      ' \t',
      '<think>',
      '<answer>',
      'output:',
      '```markdown\n~~~markdown\n',
      '> ',
      '- ',
      '1. > ```output\n',
      '- ```output\n  [1]\n  ```\n',
      '\n',
      '```python\nf = f = ',
      '```python\nfrom a import f, ',
      '```python\nimport a as f\n```\n',
    ];
    for (const piece of hostile) {
      for (const kind of ['output', 'python'] as const) {
        const started = performance.now();
        read(piece.repeat(Math.ceil(1e6 / piece.length)), kind);
        expect(performance.now() - started).toBeLessThan(2000);
      }
    }
    const wrapped = Array.from({ length: 60_000 }, (_, i) => `${i % 2 ? '```' : '~~~'}markdown\n`).join('');
    const closed = Array.from({ length: 60_000 }, (_, i) => `${i % 2 ? '~~~' : '```'}\n`).join('');
    const indented = `${' '.repeat(50_000)}\`\`\`output\n${`${' '.repeat(49_999)}1\n`.repeat(20)}\`\`\``;
    for (const text of [`${wrapped}[1]\n${closed}`, indented]) {
      const started = performance.now();
      read(text);
      expect(performance.now() - started).toBeLessThan(2000);
    }
  });
});

describe('doctest notation', () => {
  const task = { snippet: 'def f(x, n):\n    return x[n:]', input: '[1, 2], 1' };

  it('reads what it writes, with or without the last line break', () => {
    expect(doctest.writeProgramAndInput(task)).toBe('def f(x, n):\n    return x[n:]\n>>> f([1, 2], 1)\n');
    expect(doctest.readProgramAndInput('def f(x, n):\n    return x[n:]\n>>> f([1, 2], 1)\n')).toEqual(task);
    expect(doctest.readProgramAndInput('def f(x, n):\n    return x[n:]\n>>> f([1, 2], 1)')).toEqual(task);
  });

  it.each([
    ['no call', 'def f(x):\n    return x\n'],
    ['a call cut off', 'def f(x):\n    return x\n>>> f([1, 2'],
    ['text before the program', 'x = 1\ndef f(x):\n    return x\n>>> f(1)\n'],
    ['text after the call', 'def f(x):\n    return x\n>>> f(1)\n1\n'],
    ['two calls', 'def f(x):\n    return x\n>>> f(1)\n>>> f(2)\n'],
    ['a call of another function', 'def f(x):\n    return x\n>>> g(1)\n'],
    ['an argument that is no literal', 'def f(x):\n    return x\n>>> f(x)\n'],
    ['a keyword argument', 'def f(x):\n    return x\n>>> f(x=1)\n'],
    ['a comment that swallows the bracket', 'def f(x):\n    return x\n>>> f(1 #)\n'],
    ['brackets that close the call early', 'def f(x):\n    return x\n>>> f(1), (2)\n'],
  ])('refuses %s', (_, completion) => {
    expect(doctest.readProgramAndInput(completion)).toBeNull();
  });

  it('takes the first line of a solver’s text for the answer', () => {
    expect(doctest.readAnswer('[1, 2]\ndef f(', 'output')).toBe('[1, 2]');
    expect(doctest.readAnswer('7', 'output')).toBe('7');
  });
});
