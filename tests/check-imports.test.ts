/** The rules of the house, on small houses. */
import { describe, expect, it } from 'vitest';
import { violations } from '../scripts/check-imports.mjs';

const check = (files: Record<string, string>): string[] => violations(new Map(Object.entries(files)));
const empty = '';

describe('floors', () => {
  it('lets a room import from lower floors, from itself, and the errors', () => {
    const files = {
      'src/pipeline/run.ts': "import { a } from '../store/a.js';\nimport { b } from './b.js';",
      'src/pipeline/b.ts': "import { UserError } from '../errors.js';",
      'src/store/a.ts': empty,
      'src/errors.ts': empty,
    };
    expect(check(files)).toEqual([]);
  });

  it.each([
    ["import { a } from '../cli/a.js';", 'values'],
    ["import type { A } from '../cli/a.js';", 'types'],
    ["export { a } from '../cli/a.js';", 'what is passed on'],
    ["import '../cli/a.js';", 'effects'],
    ["const { a } = await import('../cli/a.js');", 'what is loaded late'],
    ["import {\n  type A,\n} from '../cli/a.js';", 'over several lines'],
  ])('refuses an import from above: %s', (line) => {
    expect(check({ 'src/store/b.ts': line, 'src/cli/a.ts': empty })).toEqual([
      'src/store/b.ts imports src/cli/a.ts: cli (floor 6) is above store (floor 1)',
    ]);
  });

  it('refuses an import from a room of the same floor', () => {
    expect(check({ 'src/rl/a.ts': "import { b } from '../probe/b.js';", 'src/probe/b.ts': empty })).toEqual([
      'src/rl/a.ts imports src/probe/b.ts: probe and rl are rooms of one floor',
    ]);
  });

  it('does not read comments', () => {
    const text = "/** import { a } from '../cli/a.js'; */\n// from '../cli/a.js'\n";
    expect(check({ 'src/store/b.ts': text, 'src/cli/a.ts': empty })).toEqual([]);
  });

  it('knows every room', () => {
    expect(check({ 'src/helpers/a.ts': empty })).toEqual([
      'src/helpers is no room of the house: give it a floor in scripts/check-imports.mjs',
    ]);
  });
});

describe('what else a source may import', () => {
  it.each([
    ['src/metrics/a.ts', 'node:fs', 'metrics imports nothing'],
    ['src/pipeline/a.ts', 'better-sqlite3', 'only store uses it'],
    ['src/pipeline/a.ts', 'undici', 'only lm and solver use it'],
    ['src/store/a.ts', './missing.js', 'there is no such file'],
    ['src/store/a.ts', '../../tests/fake-sandbox.js', 'it is not in src'],
    ['src/store/a.ts', './b.test.js', 'it is a test'],
  ])('%s may not import %s: %s', (file, specifier, problem) => {
    const lines = check({ [file]: `import a from '${specifier}';`, 'src/store/b.test.ts': empty });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(new RegExp(`^${file} imports .*: ${problem}$`));
  });

  it('lets a test use any package and what lies beside src, but no floor above', () => {
    const text =
      "import { it } from 'vitest';\nimport a from '../../tests/a.js';\nimport fs from 'node:fs';\nimport b from '../lm/b.js';";
    expect(check({ 'src/metrics/a.test.ts': text, 'src/lm/b.ts': empty })).toEqual([
      'src/metrics/a.test.ts imports src/lm/b.ts: lm (floor 3) is above metrics (floor 1)',
    ]);
  });
});

describe('circles', () => {
  it('names the files of each circle once', () => {
    const files = {
      'src/lm/a.ts': "import { b } from './b.js';",
      'src/lm/b.ts': "import type { C } from './c.js';\nimport { d } from './d.js';",
      'src/lm/c.ts': "import { a } from './a.js';",
      'src/lm/d.ts': empty,
    };
    expect(check(files)).toEqual(['circle: src/lm/a.ts → src/lm/b.ts → src/lm/c.ts → src/lm/a.ts']);
  });
});
