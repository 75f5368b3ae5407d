import { mkdtempSync, rmSync, symlinkSync, writeFileSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { UserError } from '../errors.js';
import { loadConfig } from './config-file.js';
import { placeText, readLayers } from './config-layers.js';
import { packageRoot } from './paths.js';

const folder = mkdtempSync(join(tmpdir(), 'propel-layers-'));
afterAll(() => rmSync(folder, { recursive: true }));
mkdirSync(join(folder, 'sub'));

function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    expect(error).toBeInstanceOf(UserError);
    expect((error as Error).message).not.toContain('\n');
    return (error as Error).message;
  }
  throw new Error('nothing was refused');
}
const refused = (file: string): string => refusal(() => readLayers(file));

const BASE = write(
  'base.yaml',
  'name: base\ntrain: { steps: 40, lora: { rank: 8, alpha: 16 } }\nstops: [a, b]\narms: { base: { reward: none }, propel: { reward: probe } }\n',
);

describe('a file that extends another', () => {
  const middle = write('sub/middle.yaml', 'extends: ../base.yaml\ntrain: { lora: { rank: 4 } }\nstops: [c]\n');
  const top = write('top.yaml', 'extends: sub/middle.yaml\nname: top\narms: { base: { reward: valid } }\n');

  it('merges maps key by key; lists and single values replace', () => {
    expect(readLayers(top).value).toEqual({
      name: 'top',
      train: { steps: 40, lora: { rank: 4, alpha: 16 } },
      stops: ['c'],
      arms: { base: { reward: 'valid' }, propel: { reward: 'probe' } },
    });
  });

  it('knows which line of which file gives a setting; one that none gives is where it would stand', () => {
    const { placeOf } = readLayers(top);
    const place = (...path: string[]): string => placeText(placeOf(path));
    expect(place('train', 'steps')).toBe(`${BASE}:2`);
    expect(place('train', 'lora', 'rank')).toBe(`${middle}:2`);
    expect(place('name')).toBe(`${top}:2`);
    expect(place('train', 'batch')).toBe(`${middle}:2`);
    expect(place('arms', 'propel', 'probes')).toBe(`${BASE}:4`);
    expect(place('models', 'policy')).toBe(top);
  });

  it('reads a setting that is put to null as null', () => {
    const file = write('null.yaml', 'extends: base.yaml\ntrain: { steps: null }\n');
    expect(readLayers(file).value).toMatchObject({ train: { steps: null, lora: { rank: 8 } } });
  });
});

describe('arms of a file that is extended', () => {
  const armsOf = (text: string): [string, unknown][] => {
    const { value } = readLayers(write('arms.yaml', `extends: micro.yaml\narms:\n${text}`));
    return Object.entries((value as { arms: object }).arms);
  };
  write(
    'micro.yaml',
    'arms:\n  base: { reward: none }\n  propel: { reward: probe, probes: 2, train: { kl: 1 }, crowding: { by: topic, weight: 1 } }\n  last: { reward: valid }\n',
  );
  const PROPEL = { reward: 'probe', probes: 2, train: { kl: 1 }, crowding: { by: 'topic', weight: 1 } };

  it('stay when one is added, which stands behind the one that it follows', () => {
    expect(armsOf('  mine: { reward: solver }\n')).toEqual([
      ['base', { reward: 'none' }],
      ['propel', PROPEL],
      ['last', { reward: 'valid' }],
      ['mine', { reward: 'solver' }],
    ]);
    const names = armsOf('  base: {}\n  mine: { reward: solver }\n  yours: { reward: random }\n').map(([name]) => name);
    expect(names).toEqual(['base', 'mine', 'yours', 'propel', 'last']);
  });

  it('are dropped by null, as what one of them has', () => {
    expect(armsOf('  last: null\n  propel: { crowding: null, train: { klStop: null } }\n')).toEqual([
      ['base', { reward: 'none' }],
      // In train, null is a setting's value.
      ['propel', { reward: 'probe', probes: 2, train: { kl: 1, klStop: null } }],
    ]);
  });

  it('keep what a change does not name, and nothing when the reward is another', () => {
    expect(armsOf('  propel: { probes: 3 }\n')[1]).toEqual(['propel', { ...PROPEL, probes: 3 }]);
    expect(armsOf('  propel: { reward: valid, train: { kl: 2 } }\n')[1]).toEqual([
      'propel',
      { reward: 'valid', train: { kl: 2 } },
    ]);
  });

  it('that are not there cannot be dropped', () => {
    const file = write('typo.yaml', 'extends: micro.yaml\narms:\n  propl: null\n');
    expect(refused(file)).toBe(
      `${file}:3: arms.propl: null drops an arm, and there is none of this name; did you mean propel?`,
    );
    const alone = write('alone.yaml', 'arms:\n  x: null\n');
    expect(refused(alone)).toBe(`${alone}:2: arms.x: null drops an arm, and there is none of this name`);
  });

  it('are dropped by an option too', () => {
    const micro = 'pipelines/azr-micro.yaml';
    expect(Object.keys(loadConfig(micro, ['arms.propel=null']).arms)).toEqual(['base', 'propel-wco']);
    expect(Object.keys(loadConfig(micro, ['arms.mine={reward: valid}', 'arms.base=null']).arms)).toEqual([
      'propel',
      'propel-wco',
      'mine',
    ]);
    expect(refusal(() => loadConfig(micro, ['arms.propl=null']))).toMatch(
      /^--set arms\.propl=null: arms\.propl: null drops an arm, .*; did you mean propel\?$/,
    );
  });
});

describe('a pipeline of the package', () => {
  it.each(['azr-micro.yaml', 'azr-micro', 'pipelines/azr-micro.yaml'])('is found as %s', (named) => {
    const file = write('mine.yaml', `extends: ${named}\nname: mine\narms: { mine: { reward: valid } }\n`);
    const { arms, ...config } = loadConfig(file);
    const { arms: shipped, ...micro } = loadConfig('pipelines/azr-micro.yaml');
    expect(config).toEqual({ ...micro, name: 'mine' });
    expect(arms).toEqual({ ...shipped, mine: { reward: 'valid' } });
  });

  it('stands behind a file of the user’s own with its name', () => {
    write('sub/azr-micro.yaml', 'name: own\n');
    expect(readLayers(write('sub/x.yaml', 'extends: azr-micro.yaml\n')).value).toEqual({ name: 'own' });
  });

  it('is found by its name on a command’s line as well', () => {
    expect(loadConfig('azr-mixed').name).toBe('azr-mixed');
    expect(refusal(() => loadConfig('azr-mixd.yaml'))).toBe(
      `configuration azr-mixd.yaml does not exist; give a path from the working folder or from ${packageRoot()}; did you mean azr-mixed.yaml?`,
    );
  });
});

describe('a file that cannot be extended', () => {
  it('because it is not there', () => {
    const file = write('orphan.yaml', 'name: x\nextends: bose.yaml\n');
    expect(refused(file)).toBe(
      `${file}:2: extends: bose.yaml does not exist; give a path from ${folder}, or a pipeline of the package such as azr-micro.yaml; did you mean base.yaml?`,
    );
  });

  it('because it extends the file that extends it, by whatever name', () => {
    const one = write('one.yaml', 'extends: two.yaml\n');
    const two = write('two.yaml', 'extends: one.yaml\n');
    expect(refused(one)).toBe(`${two}:1: extends: a circle, ${one} → ${two} → ${one}; take one 'extends' out`);
    const self = write('self.yaml', 'extends: self.yaml\n');
    expect(refused(self)).toBe(`${self}:1: extends: a circle, ${self} → ${self}; take one 'extends' out`);
    symlinkSync('.', join(folder, 'here'));
    const linked = write('linked.yaml', 'extends: here/linked.yaml\n');
    expect(refused(linked)).toMatch(/: a circle, /);
  });

  it('because it is not YAML, holds no settings, or is no path', () => {
    const broken = write('broken.yaml', 'name: x\nseed: [1\nmodels: {}\n');
    expect(refused(write('a.yaml', 'extends: broken.yaml\n'))).toMatch(
      new RegExp(`^${broken}:\\d+: not valid YAML: .*; correct that line$`),
    );
    const list = write('list.yaml', '- 1\n');
    expect(refused(write('b.yaml', 'extends: list.yaml\n'))).toBe(
      `${list}: holds no settings; give a map of settings to extend`,
    );
    const many = write('c.yaml', 'extends: [base.yaml]\n');
    expect(refused(many)).toBe(
      `${many}:1: extends: give one YAML file, by its path from this file's folder or as a pipeline of the package`,
    );
    expect(refused(write('d.yaml', 'extends: sub\n'))).toBe(`${join(folder, 'sub')} is a folder; give a YAML file`);
  });
});

describe('names that reach into every object', () => {
  it.each(['__proto__', 'constructor', 'prototype'])('%s is refused, wherever it stands', (name) => {
    const told = `${name} is no name of a setting; take it out`;
    const at = (text: string): string => refused(write('names.yaml', text)).slice(join(folder, 'names.yaml').length);
    expect(at(`${name}: { seed: 1 }\n`)).toBe(`:1: ${told}`);
    expect(at(`extends: base.yaml\n${name}: { seed: 1 }\n`)).toBe(`:2: ${told}`);
    expect(at(`extends: base.yaml\ntrain:\n  lora: { "${name}": { rank: 1 } }\n`)).toBe(`:3: ${told}`);
    expect(at(`solver: { body: { deep: [{ ${name}: 1 }] } }\n`)).toBe(`:1: ${told}`);
    expect(at(`arms:\n  ${name}: { reward: none }\n`)).toBe(`:2: ${told}`);
    const set = (text: string): string => refusal(() => loadConfig('pipelines/azr-micro.yaml', [text]));
    for (const text of [`${name}.seed=1`, `arms.${name}={reward: none}`, `solver.body={a: {${name}: 1}}`]) {
      expect(set(text)).toBe(`--set ${text}: ${told}`);
    }
  });
});
