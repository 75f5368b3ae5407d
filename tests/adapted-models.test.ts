/** Runs whose models are checkpoints with adapters: every role, export, and what is refused. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { modelHash, readAdapter, writeAdapter } from '../src/lm/adapter-folder.js';
import { openCheckpoint } from '../src/lm/checkpoint.js';
import { RunStore } from '../src/store/store.js';
import { filledAdapter } from './filled-adapter.js';
import { errorLine, PACKAGE, propelIn, sets, temporaryFolder } from './propel-process.js';

const folder = temporaryFolder();
const data = (model: string): string => join(PACKAGE, 'data/micro-world', model);
const LORA = { rank: 2, targets: ['q_proj', 'v_proj'] };

/** A small change to a model that has learnt its trade. */
function adapterOf(model: string, name: string, alpha: number): string {
  const { config } = openCheckpoint(data(model));
  const place = join(folder, name);
  writeAdapter(place, filledAdapter(config, { ...LORA, alpha }, 1), data(model));
  return place;
}

const settings = (models: object): string[] =>
  sets({
    models,
    band: { min: 2, max: 4, of: 4 },
    'domain.validity.distinctOutputs': null,
    'policy.maxNewTokens': 60,
    'solver.maxNewTokens': 30,
    'label.tasks': 50,
    'label.batch': 32,
    'probe.features': [[{ layer: 1, pooling: 'mean' }]],
    'probe.l2': [0.1],
    'train.steps': 2,
    'train.learningRate': 1e-4,
    'train.batch': 16,
    'train.lora': LORA,
    arms: { base: { reward: 'none' }, propel: { reward: 'probe' } },
    'evaluate.generations': 16,
    'evaluate.batch': 16,
    'evaluate.rescoreEvery': 0,
  });
const run = (name: string, models: object) =>
  propelIn(folder, ['run', join(PACKAGE, 'pipelines/azr-micro.yaml'), '--out', name, '--json', ...settings(models)]);

const plain = { policy: data('generator'), reference: data('generator'), solver: data('solver') };

describe('a run of models with adapters', () => {
  let generator: string;
  let solver: string;
  beforeAll(() => {
    generator = adapterOf('generator', 'generator-adapter', 0.05);
    solver = adapterOf('solver', 'solver-adapter', 0.05);
  });

  it('samples, reads, solves and trains with them, and exports what became of the generator’s', () => {
    const adapted = {
      policy: { base: data('generator'), adapter: generator },
      reference: { base: data('generator'), adapter: generator },
      solver: { base: data('solver'), adapter: solver },
    };
    expect(run('adapted', adapted)).toMatchObject({ code: 0 });
    const store = RunStore.read(join(folder, 'adapted'));
    const hashes = store.run()!.config['modelHashes'] as Record<string, string>;
    store.close();
    expect(hashes).toEqual({
      policy: modelHash(data('generator'), generator),
      reference: modelHash(data('generator'), generator),
      solver: modelHash(data('solver'), solver),
    });
    expect(hashes['policy']).not.toBe(modelHash(data('generator'), null));
    // Training began at the adapter: one step of 1e-4 a number away at most, two of them here.
    const { config } = openCheckpoint(data('generator'));
    const start = readAdapter(generator, config);
    expect(propelIn(folder, ['export', 'adapted', '--arm', 'propel', '--out', 'exported'])).toMatchObject({ code: 0 });
    const end = readAdapter(join(folder, 'exported'), config);
    expect(end.layout).toEqual(start.layout);
    const moved = [...end.factors].map(([name, { data: values }]) =>
      values.reduce((most, x, i) => Math.max(most, Math.abs(x - start.factors.get(name)!.data[i]!)), 0),
    );
    expect(Math.max(...moved)).toBeGreaterThan(0);
    expect(Math.max(...moved)).toBeLessThan(1e-3);
  }, 300_000);

  it('is refused where an adapter is missing, another model’s, or has another rank than the settings', () => {
    const refusal = (models: object): string => errorLine(run('refused', { ...plain, ...models }));
    const base = data('generator');
    expect(refusal({ policy: { base, adapter: 'nowhere' } })).toMatch(
      /models\.policy\.adapter nowhere is no PEFT folder: give the path of one that holds adapter_config\.json/,
    );
    expect(refusal({ reference: { base, adapter: solver } })).toMatch(
      /models\.reference\.adapter: .*adapter_model\.safetensors holds '.*', which adapter_config\.json does not call for/,
    );
    expect(refusal({ policy: { base: 'nowhere', adapter: generator } })).toContain(
      'models.policy.base nowhere does not exist',
    );
    const other = join(folder, 'other');
    const { config } = openCheckpoint(base);
    writeAdapter(other, filledAdapter(config, { rank: 4, alpha: 4, targets: ['o_proj', 'q_proj'] }, 1), base);
    expect(refusal({ policy: { base, adapter: other } })).toContain(
      'train.lora: the adapter of models.policy, which training goes on with, has rank 4 and the targets q_proj, o_proj; ' +
        'set train.lora.rank: 4 and train.lora.targets: [q_proj, o_proj]',
    );
    writeFileSync(join(other, 'adapter_config.json'), '{');
    expect(refusal({ policy: { base, adapter: other } })).toMatch(/models\.policy\.adapter: .*cannot be read as JSON/);
  });
});
