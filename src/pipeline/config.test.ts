import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { toJSONSchema } from 'zod';
import { UserError } from '../errors.js';
import { armTrain } from './arm-config.js';
import { loadConfig } from './config-file.js';
import { configSchema, ensembleSize, phasesNeeded } from './config.js';
import { rescoredSteps } from './evaluate.js';

const folder = mkdtempSync(join(tmpdir(), 'propel-config-'));
afterAll(() => rmSync(folder, { recursive: true }));

const MICRO = 'pipelines/azr-micro.yaml';

function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    expect(error).toBeInstanceOf(UserError);
    return (error as Error).message;
  }
  throw new Error('nothing was refused');
}

it('documents the poolings as the engine computes them: the mean leaves the first token out', () => {
  const schema = JSON.stringify(toJSONSchema(configSchema, { io: 'input' }));
  expect(schema).toContain('mean is over the tokens after the first, last is the last token’s');
});

describe('loadConfig', () => {
  it('reads the embedded default', () => {
    const config = loadConfig(MICRO);
    expect(config.name).toBe('azr-micro');
    expect(config.band).toEqual({ min: 1, max: 3, of: 8 });
    expect(Object.keys(config.arms)).toEqual(['base', 'propel', 'propel-wco']);
    expect(ensembleSize(config)).toBe(2);
  });

  it('applies overrides, each as YAML', () => {
    const config = loadConfig(MICRO, [
      'train.steps=7',
      'train.klStop=null',
      'arms.propel.probes=3',
      'policy.stops=["\\n"]',
    ]);
    expect(config.train.steps).toBe(7);
    expect(config.train.klStop).toBeNull();
    expect(config.arms['propel']).toEqual({ reward: 'probe', probes: 3 });
    expect(config.policy.stops).toEqual(['\n']);
  });

  it('takes the file of a comparison for one of its seeds', () => {
    const file = join(folder, 'comparison.yaml');
    writeFileSync(file, `extends: ${join(process.cwd(), MICRO)}\nname: compared\nseeds: [4, 5]\nparallel: 2\n`);
    const config = loadConfig(file, ['seed=4']);
    expect(config).toEqual({ ...loadConfig(MICRO), name: 'compared', seed: 4 });
    expect(refusal(() => loadConfig(file, ['seeds=[1]']))).toContain('unknown key seeds');
  });

  it('refuses a type that the named provider does not compute in', () => {
    const engine = (setting: string) => refusal(() => loadConfig(MICRO, [`engine=${setting}`]));
    expect(engine('{provider: cpu, dtype: float16}')).toContain(
      'engine.dtype: cpu computes in float32, not in float16: set dtype: auto, or another provider',
    );
    expect(engine('{provider: webgpu, dtype: bfloat16}')).toContain(
      'engine.dtype: webgpu computes in float32 and float16, not in bfloat16',
    );
    expect(loadConfig(MICRO, ['engine={provider: cuda, dtype: bfloat16}']).engine.dtype).toBe('bfloat16');
    expect(loadConfig(MICRO, ['engine={dtype: float16}']).engine.dtype).toBe('float16');
    expect(loadConfig(MICRO, ['engine={}']).engine.dtype).toBe('auto');
  });

  it('names an unknown key, wherever it stands', () => {
    expect(refusal(() => loadConfig(MICRO, ['trian.steps=7']))).toContain('unknown key trian');
    expect(refusal(() => loadConfig(MICRO, ['train.stepz=7']))).toContain('unknown key train.stepz');
  });

  it('names the key of a wrong type', () => {
    expect(refusal(() => loadConfig(MICRO, ['train.steps=many']))).toContain('train.steps: ');
  });

  it('refuses a penalty that a valid task could rank under', () => {
    expect(refusal(() => loadConfig(MICRO, ['train.invalidPenalty=-2.5']))).toContain('train.invalidPenalty');
    expect(loadConfig(MICRO, ['train.invalidPenalty=-2.6']).train.invalidPenalty).toBe(-2.6);
  });

  it('refuses a band without an outside', () => {
    expect(refusal(() => loadConfig(MICRO, ['band={min: 0, max: 8, of: 8}']))).toContain('band');
  });

  it('names the line of malformed YAML', () => {
    const file = join(folder, 'bad.yaml');
    writeFileSync(file, 'name: x\nseed: [1\nmodels: {}\n');
    expect(refusal(() => loadConfig(file))).toMatch(/bad\.yaml:\d+: not valid YAML/);
  });
});

describe('arms', () => {
  const withArm = (arm: unknown, ...overrides: string[]) =>
    loadConfig(MICRO, [`arms=${JSON.stringify({ mine: arm })}`, ...overrides]);

  it('fill in their own settings and no others', () => {
    expect(withArm({ reward: 'solver', trials: 4000 }).arms['mine']).toEqual({ reward: 'solver', trials: 4000 });
    expect(withArm({ reward: 'probe', adversarial: {} }).arms['mine']).toEqual({
      reward: 'probe',
      probes: 1,
      adversarial: { every: 10, mine: 100, share: 0.5 },
    });
    expect(withArm({ reward: 'valid', crowding: { by: 'topic', weight: 0.5 } }).arms['mine']).toEqual({
      reward: 'valid',
      crowding: { by: 'topic', weight: 0.5, window: 2 },
    });
  });

  it('override settings of the train section, and keep the others', () => {
    const config = withArm({ reward: 'valid', train: { steps: 3, lora: { rank: 4 } } });
    const train = armTrain(config.train, config.arms['mine']!);
    expect(train).toEqual({ ...config.train, steps: 3, lora: { ...config.train.lora, rank: 4 } });
    expect(config.arms['mine']).toEqual({ reward: 'valid', train: { steps: 3, lora: { rank: 4 } } });
  });

  it.each([
    [{ reward: 'praise' }, 'arms.mine.reward: give none, probe, solver, valid, random or length, not "praise"'],
    [{}, 'arms.mine.reward: missing; give none, probe, solver, valid, random or length'],
    [3, 'arms.mine: give a map, not 3'],
    [{ reward: 'solver', trials: 0 }, 'arms.mine.trials: give a number above 0, not 0'],
    [{ reward: 'solver', adversarial: { every: 5 } }, 'unknown key arms.mine.adversarial'],
    [{ reward: 'none', train: { steps: 3 } }, 'unknown key arms.mine.train'],
    [{ reward: 'valid', train: { stepz: 3 } }, 'unknown key arms.mine.train.stepz'],
    [
      { reward: 'probe', adversarial: { every: 5, mine: 0 } },
      'arms.mine.adversarial.mine: give a number above 0, not 0',
    ],
    [
      { reward: 'length', crowding: { by: 'activations', weight: 1 } },
      'arms.mine.crowding.by: activations are those that a probe reads, and reward length has none; give topic',
    ],
    [
      { reward: 'probe', train: { invalidPenalty: -1 } },
      'arms.mine.train.invalidPenalty: the invalid penalty (-1) must be below the smallest reward of a valid task (-2.5)',
    ],
    [
      { reward: 'probe', train: { rewardClip: 4 } },
      'arms.mine.train.rewardClip: the invalid penalty (-3) must be below',
    ],
    [{ reward: 'solver', train: { invalidPenalty: 0 } }, 'smallest reward of a valid task (0)'],
  ])('%j is refused', (arm, fault) => {
    expect(refusal(() => withArm(arm))).toContain(fault);
  });

  it('hold the penalty below what their own valid tasks can earn', () => {
    expect(
      armTrain(withArm({ reward: 'solver' }, 'train.invalidPenalty=-0.5').train, { reward: 'solver' }),
    ).toMatchObject({
      invalidPenalty: -0.5,
    });
  });

  it('need labels where their reward is learnt from them, and probes for a probe’s', () => {
    const needed = (...rewards: string[]) =>
      phasesNeeded(
        loadConfig(MICRO, [
          `arms=${JSON.stringify(Object.fromEntries(rewards.map((reward) => [reward, { reward }])))}`,
        ]),
      );
    expect(needed('none', 'solver', 'valid', 'random')).toEqual({ labels: false, probes: false });
    expect(needed('none', 'length')).toEqual({ labels: true, probes: false });
    expect(needed('valid', 'probe')).toEqual({ labels: true, probes: true });
  });
});

describe('rescoredSteps', () => {
  it('takes the first step and every n-th', () => {
    expect(rescoredSteps(40, 10)).toEqual([1, 10, 20, 30, 40]);
    expect(rescoredSteps(12, 5)).toEqual([1, 5, 10]);
    expect(rescoredSteps(40, 0)).toEqual([]);
    expect(rescoredSteps(0, 10)).toEqual([]);
  });
});
