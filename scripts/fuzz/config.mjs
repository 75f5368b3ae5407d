// Parsers of what a user configures a run by: a pipeline's YAML, a file that another extends, and settings given on the command line.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadComparison } from '../../dist/pipeline/compare-config.js';
import { loadConfig } from '../../dist/pipeline/config-file.js';

/** @param {string} name */
const pipeline = (name) =>
  readFileSync(fileURLToPath(new URL(`../../pipelines/${name}.yaml`, import.meta.url)), 'utf8');

const folder = mkdtempSync(join(tmpdir(), 'propel-fuzz-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

/** @param {string} name @param {string | Uint8Array} content */
function write(name, content) {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

const OVER = `extends: azr-micro.yaml
name: mine # of my own
train: { steps: 3, lora: { rank: 4 }, klStop: null }
arms:
  base: { reward: none }
  mine: &mine { reward: probe, probes: 2, crowding: { by: topic, weight: 1 } }
  other: { reward: solver, trials: 400, train: { invalidPenalty: -0.5 } }
  propel: null
  propel-wco: { train: { kl: 0.5 } }
solver: { body: { top_p: 0.95, stop: ["a", "b"], deep: [[{ x: 1 }]] } }
`;
const LETTERS = [...'bcdefgh'];

/** Texts that are deep, long, wide or odd. */
const HOSTILE = [
  '',
  '\uFEFFname: x',
  '\0',
  'null',
  '- a',
  '--- a\n--- b\n',
  '%YAML 9.9\n---\nname: x',
  '__proto__: { polluted: 1 }',
  'train: { __proto__: { steps: 1 } }',
  'arms: { constructor: { reward: none }, prototype: { reward: none } }',
  '"\\u005f_proto__": { seed: 1 }',
  'name: !!js/function "function () {}"',
  'seed: !!binary aGVsbG8=',
  '? [a, b]\n: c',
  '? { a: b }\n: c',
  '<<: *x',
  'a: &a { x: *a }',
  'a: *b',
  'seed: 1e999',
  'seed: .nan',
  'seed: 0o777777777777777777777777',
  'seed: 99999999999999999999999999',
  `seed: ${'9'.repeat(200_000)}`,
  'extends: /dev/zero',
  'extends: /',
  'extends: .',
  `extends: ${'../'.repeat(5000)}x.yaml`,
  `extends: ${'a'.repeat(100_000)}`,
  'extends: "\\0"',
  'extends: pipeline.yaml',
  '['.repeat(200_000),
  '{a: '.repeat(50_000),
  '- '.repeat(100_000),
  '? '.repeat(100_000),
  ': '.repeat(100_000),
  '&a '.repeat(60_000),
  '! '.repeat(100_000),
  '"'.repeat(200_000),
  "'".repeat(200_000),
  'a: |\n'.repeat(50_000),
  '#\n'.repeat(100_000),
  '---\n'.repeat(60_000),
  '\n'.repeat(250_000),
  ' '.repeat(250_000),
  '\t'.repeat(250_000),
  `a: ${'x'.repeat(5_000_000)}`,
  Array.from({ length: 600 }, (_, i) => `${' '.repeat(i)}a:`).join('\n'),
  Array.from({ length: 20_000 }, (_, i) => `k${i}: ${i}`).join('\n'),
  Array.from({ length: 20_000 }, (_, i) => `k${i}: &k${i} 1`).join('\n'),
  `arms: {${Array.from({ length: 9000 }, (_, i) => `a${i}: {reward: x}`).join(', ')}}`,
  `probe: { features: [${'[{layer: 1, pooling: mean}],'.repeat(5000)}] }`,
  ['a: &a [1,1,1,1,1,1,1,1,1,1]', ...LETTERS.map((c, i) => `${c}: &${c} [${`*${'abcdefgh'[i]},`.repeat(10)}]`)].join(
    '\n',
  ),
  `a: &a [${'1,'.repeat(1900)}]\nb: [${'*a,'.repeat(99)}]`,
];

const SETTINGS = [
  'train.steps=20',
  'band={min: 1, max: 2, of: 4}',
  'arms.propel=null',
  'arms={base: {reward: none}}',
  'policy.stops=["\\n", ";"]',
  'probe.features.0.0.layer=2',
  'engine.memory=24GiB',
  'solver.body={top_p: 0.9}',
  'domain.types=[code_o, code_f]',
];

/** @param {Uint8Array} bytes */
const textOf = (bytes) => Buffer.from(bytes).toString('utf8');

export const parsers = [
  {
    name: 'pipeline YAML',
    seeds: [pipeline('azr-micro'), pipeline('azr-qwen2.5-3b')],
    hostile: HOSTILE,
    /** @param {Uint8Array} bytes */
    parse: (bytes) => loadConfig(write('pipeline.yaml', bytes)),
  },
  {
    name: 'pipeline YAML that extends another',
    seeds: [OVER, pipeline('azr-mixed'), pipeline('azr-comparison')],
    hostile: HOSTILE.map((text) => `extends: azr-micro.yaml\n${text}`),
    /** @param {Uint8Array} bytes */
    parse: (bytes) => loadComparison(write('over.yaml', bytes)),
  },
  {
    name: 'pipeline YAML that is extended',
    seeds: [pipeline('azr-micro'), OVER],
    hostile: HOSTILE,
    /** @param {Uint8Array} bytes */
    parse(bytes) {
      write('base.yaml', bytes);
      return loadConfig(write('top.yaml', 'extends: base.yaml\narms: { extra: { reward: valid } }\n'));
    },
  },
  {
    name: '--set',
    seeds: SETTINGS,
    hostile: [
      '=',
      '=1',
      'a',
      '.=1',
      '...=1',
      'train..steps=1',
      '__proto__.x=1',
      'arms.__proto__.reward=none',
      'arms.constructor.prototype.reward=none',
      'probe.features.99999999999.0.layer=1',
      'probe.features.-1=1',
      'probe.features.length=0',
      `${'a.'.repeat(50_000)}b=1`,
      `arms.${'a'.repeat(100_000)}={reward: none}`,
      ...HOSTILE.map((text) => `train.steps=${text}`),
      ...HOSTILE.map((text) => `solver.body=${text}`),
    ],
    /** @param {Uint8Array} bytes */
    parse: (bytes) => loadConfig('pipelines/azr-micro.yaml', [textOf(bytes)]),
  },
];
