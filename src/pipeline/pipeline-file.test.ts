import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { loadConfig } from './config-file.js';
import { writePipeline } from './pipeline-file.js';

function temporary(): string {
  const folder = mkdtempSync(join(tmpdir(), 'propel-pipeline-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

it.each([
  ['pipelines/azr-micro.yaml', ['train.steps=3', 'seed=7', 'arms.valid={"reward":"valid"}']],
  ['pipelines/azr-mixed.yaml', ['solver.endpoint=http://localhost:1/v1', 'solver.model=m', 'models.solver=null']],
  ['pipelines/azr-comparison.yaml', []],
])('the settings of %s come back as they were, and the file says where they came from', (file, overrides) => {
  const folder = temporary();
  const config = loadConfig(file, overrides);
  writePipeline(folder, config, `${file} --set train.steps=3\nignored: 1`, '0.1.0');
  const path = join(folder, 'pipeline.yaml');
  expect(loadConfig(path)).toEqual(config);
  expect(readFileSync(path, 'utf8').split('\n').slice(0, 3)).toEqual([
    '# The settings of the run in this folder, every default filled in.',
    `# Written by propel 0.1.0, from ${file} --set train.steps=3 ignored: 1`,
    `# The same run again: propel run ${path} --out ANOTHER-FOLDER`,
  ]);
});

it('takes the place of one that a run has written, not of one’s own', () => {
  const folder = temporary();
  const path = join(folder, 'pipeline.yaml');
  writePipeline(folder, loadConfig('pipelines/azr-micro.yaml'), undefined, '0.1.0');
  writePipeline(folder, loadConfig('pipelines/azr-micro.yaml', ['train.steps=3']), undefined, '0.1.0');
  expect(loadConfig(path).train.steps).toBe(3);
  writeFileSync(path, 'extends: azr-micro.yaml\n');
  writePipeline(folder, loadConfig('pipelines/azr-micro.yaml'), undefined, '0.1.0');
  expect(readFileSync(path, 'utf8')).toBe('extends: azr-micro.yaml\n');
});
