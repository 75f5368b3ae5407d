import { mkdtempSync, rmSync, writeFileSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { UserError } from '../errors.js';
import { plainValue, readLayers } from './config-layers.js';

const folder = mkdtempSync(join(tmpdir(), 'propel-layers-'));
afterAll(() => rmSync(folder, { recursive: true }));
mkdirSync(join(folder, 'sub'));

function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

function refusal(file: string): string {
  try {
    readLayers(file);
  } catch (error) {
    expect(error).toBeInstanceOf(UserError);
    return (error as Error).message;
  }
  throw new Error('nothing was refused');
}

const BASE = write(
  'base.yaml',
  'name: base\ntrain: { steps: 40, lora: { rank: 8, alpha: 16 } }\nstops: [a, b]\narms: { base: { reward: none }, propel: { reward: probe } }\n',
);

describe('a file that extends another', () => {
  const middle = write('sub/middle.yaml', 'extends: ../base.yaml\ntrain: { lora: { rank: 4 } }\nstops: [c]\n');
  const top = write('top.yaml', 'extends: sub/middle.yaml\nname: top\narms: { base: { reward: valid } }\n');

  it('merges maps key by key; lists, single values and arms replace', () => {
    const { document } = readLayers(top);
    expect(plainValue(document, top)).toEqual({
      name: 'top',
      train: { steps: 40, lora: { rank: 4, alpha: 16 } },
      stops: ['c'],
      arms: { base: { reward: 'valid' } },
    });
  });

  it('knows which file gives a setting; one that none gives is the outermost’s', () => {
    const { fileOf } = readLayers(top);
    expect(fileOf(['train', 'steps'])).toBe(BASE);
    expect(fileOf(['train', 'lora', 'rank'])).toBe(middle);
    expect(fileOf(['name'])).toBe(top);
    expect(fileOf(['models', 'policy'])).toBe(top);
  });

  it('reads a setting that is put to null as null', () => {
    const file = write('null.yaml', 'extends: base.yaml\ntrain: { steps: null }\n');
    expect(plainValue(readLayers(file).document, file)).toMatchObject({ train: { steps: null, lora: { rank: 8 } } });
  });
});

describe('a file that cannot be extended', () => {
  it('because it is not there', () => {
    const file = write('orphan.yaml', 'extends: nowhere.yaml\n');
    expect(refusal(file)).toBe(
      `${file}: extends: ${join(folder, 'nowhere.yaml')} does not exist; give a path from ${folder}`,
    );
  });

  it('because it extends the file that extends it', () => {
    const one = write('one.yaml', 'extends: two.yaml\n');
    const two = write('two.yaml', 'extends: one.yaml\n');
    expect(refusal(one)).toBe(`${two}: extends: a circle, ${one} → ${two} → ${one}; take one 'extends' out`);
    const self = write('self.yaml', 'extends: self.yaml\n');
    expect(refusal(self)).toBe(`${self}: extends: a circle, ${self} → ${self}; take one 'extends' out`);
  });

  it('because it is not YAML, holds no settings, or is no path', () => {
    const broken = write('broken.yaml', 'name: x\nseed: [1\nmodels: {}\n');
    expect(refusal(write('a.yaml', 'extends: broken.yaml\n'))).toMatch(
      new RegExp(`^${broken}:\\d+: not valid YAML: .*; correct that line$`),
    );
    const list = write('list.yaml', '- 1\n');
    expect(refusal(write('b.yaml', 'extends: list.yaml\n'))).toBe(
      `${list}: holds no settings; give a map of settings to extend`,
    );
    const many = write('c.yaml', 'extends: [base.yaml]\n');
    expect(refusal(many)).toBe(`${many}: extends: give the path of one YAML file, from this file's folder`);
    expect(refusal(write('d.yaml', 'extends: sub\n'))).toBe(`${join(folder, 'sub')} is a folder; give a YAML file`);
  });
});
