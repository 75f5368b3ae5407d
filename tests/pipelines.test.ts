/** The pipelines that ship: each is whole; those for real models have the paper's settings, and can be planned without a model. */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../src/pipeline/config-file.js';
import type { Plan } from '../src/pipeline/plan.js';
import { errorLine, PACKAGE, propelIn, temporaryFolder } from './propel-process.js';
import { QWEN_3B, QWEN_7B } from './qwen-configs.js';

const FOLDER = join(PACKAGE, 'pipelines');

it.each(readdirSync(FOLDER))('%s is a whole configuration, named as its file', (file) => {
  expect(loadConfig(join(FOLDER, file)).name).toBe(file.replace(/\.yaml$/, ''));
});

const REAL = [
  ['3b', 'Qwen/Qwen2.5-3B-Instruct', QWEN_3B],
  ['7b', 'Qwen/Qwen2.5-7B-Instruct', QWEN_7B],
] as const;

describe.each(REAL)('azr-qwen2.5-%s', (size, model, published) => {
  const file = join(FOLDER, `azr-qwen2.5-${size}.yaml`);

  it('has the paper’s settings', () => {
    const config = loadConfig(file);
    expect(config.domain).toMatchObject({
      types: ['code_f'],
      notation: 'fenced',
      induction: { inputs: 10, shown: 5 },
    });
    expect(config.band).toEqual({ min: 1, max: 3, of: 8 });
    expect(config.label.tasks * config.band.of).toBe(22_592);
    expect(config.train).toMatchObject({ steps: 30, batch: 256 });
    expect(config.models).toEqual({ policy: model, reference: model, solver: null });
    expect(config.solver).toMatchObject({ model, endpoint: 'http://localhost:8000/v1' });
    expect(Object.values(config.arms).map(({ reward }) => reward)).toEqual(['none', 'probe', 'probe', 'solver']);
    // Every candidate layer is one of the model's.
    const layers = config.probe.features.flatMap((spec) => spec.map(({ layer }) => layer));
    expect(Math.max(...layers)).toBeLessThanOrEqual(published.num_hidden_layers);
  });

  it('runs its solver here instead, if so set', () => {
    const local = [`models.solver=${model}`, 'solver.endpoint=null', 'solver.model=null'];
    expect(loadConfig(file, local).models.solver).toBe(model);
  });

  it('is planned by config.json alone', { timeout: 240_000 }, () => {
    const work = temporaryFolder();
    writeFileSync(join(work, 'config.json'), JSON.stringify(published));
    const settings = ['--model-config', `${model}=config.json`, '--set', 'engine.provider=cpu'];
    const asked = ['plan', file, '--memory', '141GB', ...settings, '--set', 'engine.threads=1'];
    const { code, stdout, stderr } = propelIn(work, [...asked, '--set', 'sandbox.kind=wasm', '--json']);
    expect(stderr).not.toContain('propel: ');
    expect(code).toBe(0);
    const plan = JSON.parse(stdout) as Plan;
    expect(plan.models).toMatchObject([{ name: model, family: 'qwen2', stored: null, problem: null }]);
    expect(plan.phases.map(({ phase, arm }) => `${phase} ${arm}`.trim())).toEqual([
      'label',
      'train-probe',
      'train-generator propel',
      'train-generator propel-wco',
      'train-generator sil',
      'evaluate base',
      'evaluate propel',
      're-score propel',
      'evaluate propel-wco',
      're-score propel-wco',
      'evaluate sil',
    ]);
    expect(plan.totals.seconds).toBeGreaterThan(3600);
    expect(plan.memory.fits).not.toBe(null);
  });

  it('says how to get a model that is not here', () => {
    const work = temporaryFolder();
    const environment = { HF_HOME: work };
    const { code, stdout } = propelIn(work, ['plan', file], undefined, environment);
    expect(code).toBe(0);
    expect(stdout).toContain(`run 'propel models pull ${model}' first, or fetch `);
    expect(stdout).toContain(`/${model}/resolve/main/config.json alone and give it by --model-config ${model}=`);
  });
});

it('a config.json of a model that nobody named is refused', () => {
  const work = temporaryFolder();
  const given = propelIn(work, ['plan', '--model-config', 'org/none=config.json']);
  expect(errorLine(given)).toBe(
    'propel: --model-config org/none: the configuration names data/micro-world/generator, data/micro-world/solver',
  );
});
