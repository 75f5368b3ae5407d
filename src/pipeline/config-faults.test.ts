/** Which place a fault of a configuration is told of. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { refusal } from '../../tests/refusal.js';
import { loadConfig } from './config-file.js';

const folder = mkdtempSync(join(tmpdir(), 'propel-faults-'));
afterAll(() => rmSync(folder, { recursive: true }));
const END = "; 'propel config --schema' documents every setting";
const file = join(folder, 'mine.yaml');

/** What is said of a file over the embedded default. */
function said(text: string, ...overrides: string[]): string {
  writeFileSync(file, `extends: azr-micro.yaml\n${text}`);
  const line = refusal(() => loadConfig(file, overrides));
  expect(line).toMatch(/^UserError: .*; 'propel config --schema' documents every setting$/);
  return line.slice('UserError: '.length, -END.length);
}

describe('an option is blamed', () => {
  it('for what it brings, also where the fault is told of a larger part or of another setting', () => {
    expect(said('', 'band.max=9')).toBe('--set band.max=9: band: needs min ≤ max ≤ of, with a count outside the band');
    expect(said('', 'seed=3', 'train.rewardClip=4', 'train.kl=1')).toMatch(
      /^--set train\.rewardClip=4: train\.invalidPenalty: the invalid penalty \(-3\) must be below/,
    );
    expect(said('', 'arms.propel.reward=valid')).toBe(
      '--set arms.propel.reward=valid: unknown key arms.propel.probes; there are reward, policy, crowding or train',
    );
  });

  it('and not for what the file has by itself, nor for what it only lets show', () => {
    expect(said('band: { max: 9 }\n', 'seed=3')).toBe(
      `${file}:2: band: needs min ≤ max ≤ of, with a count outside the band`,
    );
    // The type of seed has kept the band from being looked at.
    expect(said('seed: many\nband: { max: 9 }\n', 'seed=3')).toMatch(new RegExp(`^${file}:3: band: needs`));
  });

  it('but for the last that brings it, when one before has put it right', () => {
    expect(said('', 'band.max=9', 'band.max=2', 'band.max=10')).toMatch(/^--set band\.max=10: band: /);
  });
});

it('all faults are told at once, each with its line', () => {
  expect(said('trian: { steps: 3 }\ntrain:\n  steps: many\n  batch: 1\n', 'sandbox.kind=doker')).toBe(
    [
      '--set sandbox.kind=doker: sandbox.kind: give auto, docker or wasm, not "doker"; did you mean docker?',
      `${file}:4: train.steps: give a whole number, not "many"`,
      `${file}:5: train.batch: give a number of at least 2, not 1`,
      `${file}:2: unknown key trian; did you mean train?`,
    ].join('; '),
  );
});

describe('of an unknown key', () => {
  it.each([
    ['train: { stepz: 3 }\n', 'unknown key train.stepz; did you mean steps?'],
    ['steps: 3\n', 'unknown key steps; did you mean train.steps?'],
    ['arms: { propel: { trials: 3 } }\n', 'unknown key arms.propel.trials; there are'],
    [
      'probe: { features: [[{ layer: 1, poolin: mean }]] }\n',
      'unknown key probe.features.0.0.poolin; did you mean pooling?',
    ],
    ['domain: { validity: { distinctOutputs: { atleast: 3 } } }\n', 'distinctOutputs.atleast; did you mean atLeast?'],
    ['colour: red\n', `unknown key colour`],
  ])('%j says what was meant or what there is', (text, line) => {
    expect(said(text)).toContain(line);
  });
});

describe('one line, however long what was given is', () => {
  it.each([
    ['an option', () => said('', `train.steps=${'x'.repeat(100_000)}`), 400],
    ['its spaces', () => said('', `train.steps=${' '.repeat(100_000)}`), 400],
    ['its path', () => refusal(() => loadConfig('azr-micro', [`${'a.'.repeat(50_000)}b=1`])), 400],
    ['a path', () => refusal(() => loadConfig('a'.repeat(100_000))), 600],
    [
      'many faults',
      () => said(`arms: { ${Array.from({ length: 2000 }, (_, i) => `a${i}: { reward: x }`).join(', ')} }\n`),
      5000,
    ],
  ])('%s', { timeout: 20_000 }, (_, work, most) => {
    const line = work();
    expect(line.length).toBeLessThan(most);
    expect(line).not.toContain('\n');
  });
});
