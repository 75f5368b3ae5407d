/** Scripts that no compiler looks at: what they import is there, and a benchmark runs. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../src/pipeline/paths.js';

const SCRIPTS = join(packageRoot(), 'scripts');
const IMPORT = /import\s*\{(?<names>[^}]*)\}\s*from\s*'(?<path>\.[^']*)'/g;

const files = readdirSync(SCRIPTS, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.mjs'));

describe('scripts', () => {
  it('are there', () => {
    expect(files.length).toBeGreaterThan(10);
  });

  it.each(files)('%s imports what is exported', async (file) => {
    const missing: string[] = [];
    for (const { groups } of readFileSync(join(SCRIPTS, file), 'utf8').matchAll(IMPORT)) {
      const path = resolve(SCRIPTS, dirname(file), groups!['path']!);
      const exported = (await import(path)) as object;
      const names = groups!['names']!.split(',').map((name) => name.trim().split(/\s+as\s+/)[0]!);
      for (const name of names) if (name && !(name in exported)) missing.push(`${name} of ${relative(SCRIPTS, path)}`);
    }
    expect(missing).toEqual([]);
  });

  it('measure: a reward by the probe is cheaper than the solver’s attempts', () => {
    const script = join(SCRIPTS, 'bench', 'main.mjs');
    const json = execFileSync(process.execPath, [script, '--json', '--rounds', '1', 'reward'], { stdio: 'pipe' });
    const { rows } = JSON.parse(json.toString()) as { rows: readonly { readonly ratio: number }[] };
    expect(rows).toHaveLength(1);
    expect(rows[0]!.ratio).toBeGreaterThan(1);
  }, 120_000);
});
