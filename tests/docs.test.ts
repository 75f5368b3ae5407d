/** What the documents show of settings is what the schema reads. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { documentedSchema, loadComparison } from '../src/pipeline/compare-config.js';
import { settingsPage } from '../src/pipeline/settings-page.js';

const DOCUMENTS = [
  'README.md',
  'CONTRIBUTING.md',
  'data/topics/README.md',
  'probes/README.md',
  'sandbox/README.md',
  ...['docs', 'docs/decisions'].flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => name.endsWith('.md'))
      .map((name) => `${folder}/${name}`),
  ),
];
const FENCED = /^```ya?ml\n(.*?)^```/gms;

describe('docs/settings.md', () => {
  it('is what propel config --reference prints', () => {
    expect(readFileSync('docs/settings.md', 'utf8')).toBe(settingsPage(documentedSchema()));
  });

  it('says of every setting what it is', () => {
    const rows = settingsPage(documentedSchema())
      .split('\n')
      .filter((line) => line.startsWith('| `'));
    expect(rows.length).toBeGreaterThan(150);
    expect(rows.filter((row) => row.endsWith('|  |'))).toEqual([]);
  });
});

describe('YAML in a document', () => {
  const blocks = DOCUMENTS.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(FENCED)].map(([, yaml], index) => [`${file}, block ${index + 1}`, yaml!]),
  );
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'propel-docs-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('is there', () => expect(blocks.length).toBeGreaterThan(4));

  // Settings that stand in comments, one a line, are shown as settings too.
  it.each(blocks)('%s is a configuration, or a part of one', (_, yaml) => {
    const shown = parse(yaml.replaceAll(/^(\s*)# (?=\w+: )/gm, '$1')) as Record<string, object>;
    const whole = parse(readFileSync('pipelines/azr-micro.yaml', 'utf8')) as Record<string, object>;
    const merged = Object.entries(shown).map(([key, value]) => [
      key,
      // What a document shows of models and arms is all of them.
      key === 'models' || key === 'arms' || typeof value !== 'object' ? value : { ...whole[key], ...value },
    ]);
    const file = join(folder, 'shown.yaml');
    writeFileSync(file, stringify({ ...whole, ...Object.fromEntries(merged) }));
    expect(loadComparison(file).config.name).toMatch(/./);
  });
});
