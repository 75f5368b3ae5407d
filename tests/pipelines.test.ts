/** The pipelines that ship: each is whole; those for real models have the paper's settings, and can be planned without a model. */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hubSettings } from '../src/lm/hub/settings.js';
import { loadConfig } from '../src/pipeline/config-file.js';
import { plan } from '../src/pipeline/plan.js';
import type { Plan } from '../src/pipeline/plan.js';
import { parseConfig } from '../src/lm/config.js';
import { planModels } from '../src/pipeline/plan-models.js';
import type { GivenConfigs } from '../src/pipeline/plan-models.js';
import { RunStore } from '../src/store/store.js';
import { errorLine, PACKAGE, propelIn, temporaryFolder } from './propel-process.js';
import { QWEN_3B, QWEN_7B } from './qwen-configs.js';

/** Machines are timed, and commands take seconds to start. */
const LONG = { timeout: 600_000 };

const FOLDER = join(PACKAGE, 'pipelines');

it.each(readdirSync(FOLDER))('%s is a whole configuration, named as its file', (file) => {
  expect(loadConfig(join(FOLDER, file)).name).toBe(file.replace(/\.yaml$/, ''));
});

it('the comparison has the arms of its own file and no others, in their order', () => {
  expect(Object.keys(loadConfig('pipelines/azr-comparison.yaml').arms).join(' ')).toBe(
    'base sil sil-matched-trials propel propel-wco propel-wco4 propel-adversarial propel-crowding validity-only random-reward length-reward transfer-base transfer',
  );
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

  it('is planned by config.json alone', LONG, async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'config.json'), JSON.stringify(published));
    const here = ['engine.provider=cpu', 'engine.threads=1', 'sandbox.kind=wasm', 'sandbox.workers=1'];
    const planned = await plan({
      config: loadConfig(file, here),
      modelConfigs: new Map([[model, join(folder, 'config.json')]]),
      memory: 141e9,
      like: null,
      progress: () => ({ update: () => {}, done: () => {} }),
    });
    expect(planned.models).toMatchObject([{ name: model, family: 'qwen2', stored: ['BF16'], problem: null }]);
    expect(planned.phases.map(({ phase, arm }) => `${phase} ${arm}`.trim())).toEqual([
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
    expect(planned.phases.every(({ seconds }) => seconds !== null)).toBe(true);
    expect(planned.totals.seconds).toBeGreaterThan(3600);
    expect(planned.time.uncounted).toContain('the attempts of the endpoint');
    expect(planned.memory.fits).not.toBe(null);
  });

  it('is planned by the published sizes, in the type they are stored in, before anything is pulled', async () => {
    const hub = { ...hubSettings({}), cache: join(temporaryFolder(), 'hub') };
    const [planned] = await planModels(loadConfig(file), new Map(), hub);
    expect(planned).toMatchObject({
      name: model,
      config: parseConfig(JSON.stringify(published), 'config.json'),
      types: ['BF16'],
      assumed: `the published sizes of Qwen2.5 ${size.toUpperCase()}, in bfloat16`,
      problem: null,
    });
  });
});

describe('a model that is not here', () => {
  const hub = { ...hubSettings({}), cache: join(temporaryFolder(), 'hub') };
  const config = (...settings: string[]) => loadConfig('pipelines/azr-qwen2.5-3b.yaml', settings);
  const folder = temporaryFolder();
  const file = (name: string, json: object): string => {
    writeFileSync(join(folder, name), JSON.stringify(json));
    return join(folder, name);
  };
  const { torch_dtype: _, ...untyped } = QWEN_3B;

  it('and of which nothing is known: how to get it', async () => {
    const [planned] = await planModels(config('models.policy=org/model'), new Map(), hub);
    expect(planned).toMatchObject({ name: 'org/model', config: null });
    expect(planned!.problem).toContain(`run 'propel models pull org/model' first, or fetch ${hub.endpoint}/org/model/`);
    expect(planned!.problem).toContain(`config.json alone and give it by --config org/model=config.json`);
  });

  it.each([
    [{ ...untyped, torch_dtype: 'bfloat16' }, ['BF16'], 'and bfloat16, as it says'],
    [{ ...untyped, dtype: 'float16' }, ['F16'], 'and float16, as it says'],
    [{ ...untyped, dtype: 'torch.bfloat16' }, ['BF16'], 'and bfloat16, as it says'],
    [untyped, null, 'and float32, as it names no type that is known'],
    [{ ...untyped, dtype: 'constructor' }, null, 'and float32, as it names no type that is known'],
  ])('is taken in the type that its config.json names: %#', async (json, types, assumed) => {
    const path = file('typed.json', json);
    const [planned] = await planModels(config(), new Map([['Qwen/Qwen2.5-3B-Instruct', path]]), hub);
    expect(planned).toMatchObject({ types, assumed: `${path} as to sizes, ${assumed}` });
  });

  it('takes what config.json says of a folder without weights, too', async () => {
    const path = temporaryFolder();
    writeFileSync(join(path, 'config.json'), JSON.stringify(QWEN_3B));
    const [planned] = await planModels(config(`models.policy=${path}`, `models.reference=${path}`), new Map(), hub);
    expect(planned).toMatchObject({
      types: ['BF16'],
      assumed: `${join(path, 'config.json')} as to sizes, and bfloat16, as it says`,
    });
  });

  it('is given by its name, by its role, or for all that are not here', async () => {
    const [policy, other] = [file('policy.json', QWEN_3B), file('other.json', QWEN_7B)];
    const both = config('models.policy=org/a', 'models.reference=org/b');
    const layers = async (given: GivenConfigs) =>
      (await planModels(both, given, hub)).map(({ config: decoder }) => decoder?.layers ?? null);
    expect(await layers(new Map([['org/a', policy]]))).toEqual([36, null]);
    expect(
      await layers(
        new Map([
          ['policy', policy],
          ['models.reference', other],
        ]),
      ),
    ).toEqual([36, 28]);
    expect(await layers(new Map([[null, policy]]))).toEqual([36, 36]);
    expect(
      await layers(
        new Map([
          [null, policy],
          ['reference', other],
        ]),
      ),
    ).toEqual([36, 28]);
  });
});

describe('the command', () => {
  it('prints a plan of the embedded default, against a budget', LONG, () => {
    const { code, stdout } = propelIn(temporaryFolder(), ['plan', '--memory', '8GiB']);
    expect(code).toBe(0);
    expect(stdout).toContain(
      'models.policy, models.reference: data/micro-world/generator\n  llama, 3 layers of width 128',
    );
    expect(stdout).toMatch(/ {2}update: [\d.]+ MiB for 32 sequences of \d+ tokens \(weights [^)]*\); fits\n/);
    expect(stdout).toMatch(/\nMemory: 1\.\d GiB \(.*\); of 8\.0 GiB: fits\n/);
    expect(stdout).toMatch(/\n {2}train-generator propel {2,}3,840 {2,}3,840 {2,}0 /);
    expect(stdout).toMatch(/\nTime by a timing of cpu here, 2 threads/);
  });

  it('says what a run would be refused for, and what would make room', LONG, () => {
    const folder = temporaryFolder();
    const model = 'Qwen/Qwen2.5-3B-Instruct';
    writeFileSync(
      join(folder, 'config.json'),
      JSON.stringify({ ...QWEN_3B, torch_dtype: 'float32', max_position_embeddings: 1024 }),
    );
    const here = ['--set', 'sandbox={kind: wasm, workers: 1}', '--set', 'engine.threads=1'];
    const given = ['--memory', '8GiB', '--config', `${model}=config.json`, ...here];
    const args = ['plan', join(FOLDER, 'azr-qwen2.5-3b.yaml'), ...given];
    const refusal =
      /policy\.maxNewTokens: 1024 tokens and a prompt of \d+ are more than the 1024 positions of Qwen\/Qwen2\.5-3B-Instruct; lower it/;
    const { code, stdout } = propelIn(folder, args);
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`\\n {2}a run would be refused: ${refusal.source}\\n`));
    expect(stdout).toMatch(/rollout: [^\n]* tokens, more than the model has positions \(weights/);
    expect(stdout).toMatch(
      /\nMemory: [^\n]*; of 8\.0 GiB: does not fit\n {2}8\.0 GiB is less than process and sandbox take \([^)]*\) and the weights \(11\.5 GiB of models\.policy and models\.reference \(Qwen\/[^)]*\)\); set engine\.dtype: bfloat16 on cuda, or take smaller models\n/,
    );
    const { models, memory } = JSON.parse(propelIn(folder, [...args, '--json']).stdout) as Plan;
    expect(models[0]!.refusals).toEqual([expect.stringMatching(refusal)]);
    expect(memory.models[0]!.uses.find(({ use }) => use === 'rollout')!.beyondPositions).toBe(true);
    expect(memory.problem).toMatch(/^8\.0 GiB is less than process and sandbox take/);
  });

  it('says what it assumes, and the memory of a model that is not here', LONG, () => {
    const args = ['plan', 'azr-qwen2.5-3b', '--memory', '141GB', '--set', 'sandbox={kind: wasm, workers: 1}'];
    const { code, stdout } = propelIn(temporaryFolder(), args);
    expect(code).toBe(0);
    expect(stdout).toContain(
      '3,085,938,688 parameters: 11.5 GiB as float32, 5.7 GiB as bfloat16, 5.7 GiB as float16; its weights are not here: assumed the published sizes of Qwen2.5 3B, in bfloat16\n',
    );
    expect(stdout).toMatch(/ {2}update: [\d.]+ GiB for 1 sequence of [\d,]+ tokens \(weights 5\.7 GiB, /);
    expect(stdout).toMatch(/\nMemory: [\d.]+ GiB \(.*\); of 131\.3 GiB: fits\n/);
  });

  it('rests on the last run like it, as far as that has come', LONG, () => {
    const here = temporaryFolder();
    process.env['PROPEL_CACHE'] = join(here, 'cache');
    try {
      const small = ['--set', 'label={tasks: 20, batch: 32}', '--set', 'engine.threads=1'];
      expect(propelIn(here, ['label', '--out', 'run', ...small]).code).toBe(0);
      const { time, phases } = JSON.parse(propelIn(here, ['plan', '--json', ...small]).stdout) as Plan;
      expect(time.basis).toMatch(
        /^the last run like it on this machine \(azr-micro, [\d-]{10}\), and train-probe, train-generator, evaluate, re-score by a timing/,
      );
      const store = RunStore.read(join(here, 'run'));
      const [taken, wrote] = [store.secondsOf('label', ''), store.countTasks({ phase: 'label' })];
      store.close();
      expect(phases[0]!.seconds).toBeCloseTo((taken / wrote) * phases[0]!.generations, 6);
    } finally {
      process.env['PROPEL_CACHE'] = '';
    }
  });

  it('refuses a config.json of a model that nobody named', LONG, () => {
    const given = propelIn(temporaryFolder(), ['plan', '--model-config', 'org/none=config.json']);
    expect(errorLine(given)).toMatch(/^propel: --config org\/none: the configuration names data\/micro-world\//);
  });
});
