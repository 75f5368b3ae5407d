import { describe, expect, it } from 'vitest';
import { idleEdits } from './idle-edits.js';
import { plainProgram } from './plain-program.js';

const lines = (...all: string[]): string => all.join('\n');
const PROGRAM = lines(
  'def f(x, n):',
  "    y = 'n x' + str(n)",
  '    if n == 3:',
  '        return [y, x.n]',
  '    return n + 1',
);

/** All that is drawn of a program, by kind. */
function drawn(source: string, count = 1400): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const { kind, source: edited } of idleEdits(source, count, 1))
    found.set(kind, (found.get(kind) ?? new Set()).add(edited));
  return found;
}

describe('edits that leave what a program does', () => {
  const edits = drawn(PROGRAM);

  it('are of every kind, and follow from the seed', () => {
    expect([...edits.keys()].sort()).toEqual([
      'comment',
      'dead branch',
      'pad',
      'rename',
      'reorder',
      'spacing',
      'string',
    ]);
    expect(idleEdits(PROGRAM, 14, 5)).toEqual(idleEdits(PROGRAM, 14, 5));
    expect(idleEdits(PROGRAM, 14, 5)).not.toEqual(idleEdits(PROGRAM, 14, 6));
    expect(idleEdits(PROGRAM, 7, 5).length).toBeLessThanOrEqual(7);
  });

  it('rename what is bound in code alone: no text, no attribute, and to no name that is taken', () => {
    expect(edits.get('rename')).toContain(PROGRAM.replaceAll('y', 'out'));
    expect(edits.get('rename')).toContain(
      lines('def f(x, k):', "    y = 'n x' + str(k)", '    if k == 3:', '        return [y, x.n]', '    return k + 1'),
    );
    expect([...edits.get('rename')!].filter((source) => /def f\(y|def f\(\w+, [xy]\)/.test(source))).toEqual([]);
  });

  it('change sides where either order does: of == and of a number added, never of texts or within a product', () => {
    expect(edits.get('reorder')).toEqual(
      new Set([PROGRAM.replace('n == 3', '3 == n'), PROGRAM.replace('n + 1', '1 + n')]),
    );
    expect(drawn('def f(x):\n    return 2 * x + 1').get('reorder')).toBeUndefined();
    expect(drawn('def f(x, y):\n    return x + y').get('reorder')).toBeUndefined();
  });

  it('write lines where they are run for nothing, or never', () => {
    expect([...edits.get('pad')!].filter((source) => /\n {4}\w+ = x\n {4}return n \+ 1$/.test(source))).not.toEqual([]);
    expect(edits.get('pad')).toContain(PROGRAM.replace('[y, x.n]', '([y, x.n])').replace('n + 1', '(n + 1)'));
    const branches = [...edits.get('dead branch')!];
    expect(branches.filter((source) => /^def.*:\n {4}if False:\n {8}return \w+\n {4}y = /.test(source))).not.toEqual(
      [],
    );
    expect(branches.filter((source) => source.startsWith(`${PROGRAM}\n    return `))).not.toEqual([]);
  });

  it('requote texts and unspace code, not what stands in texts', () => {
    expect(edits.get('string')).toContain(PROGRAM.replace("'n x'", '"n x"'));
    expect(edits.get('spacing')).toContain(PROGRAM.replaceAll(/(?<=[,]) /g, ''));
    for (const source of edits.get('spacing')!) expect(source).toContain("'n x'");
  });

  it('comments and blank lines are of those that a plain program is without', () => {
    for (const source of edits.get('comment')!) expect(plainProgram(source)).toBe(PROGRAM);
  });

  it('of what is no program there are none, of one line some', () => {
    expect(idleEdits("def f(x): return 'a", 70, 1)).toEqual([]);
    expect([...drawn('def f(x): return x + 1').keys()]).toContain('reorder');
    expect([...drawn('def f(x): return x + 1').keys()]).not.toContain('dead branch');
  });
});
