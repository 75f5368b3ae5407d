import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { UserError } from '../errors.js';
import { loadConfig } from './config-file.js';
import { ensembleSize } from './config.js';
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
    expect(config.arms['propel']!.probes).toBe(3);
    expect(config.policy.stops).toEqual(['\n']);
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

describe('rescoredSteps', () => {
  it('takes the first step and every n-th', () => {
    expect(rescoredSteps(40, 10)).toEqual([1, 10, 20, 30, 40]);
    expect(rescoredSteps(12, 5)).toEqual([1, 5, 10]);
    expect(rescoredSteps(40, 0)).toEqual([]);
    expect(rescoredSteps(0, 10)).toEqual([]);
  });
});
