/** The bounds of a YAML text. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { refusal } from '../../tests/refusal.js';
import { parseYaml, readYaml } from './yaml-document.js';

const folder = mkdtempSync(join(tmpdir(), 'propel-yaml-'));
afterAll(() => rmSync(folder, { recursive: true }));

const parse = (text: string): unknown => parseYaml(text, (line) => (line === undefined ? 'x' : `x:${line}`)).value;
const refused = (text: string): string => refusal(() => parse(text)).slice('UserError: '.length);

const DEEP = 'x: is nested more than 48 levels deep; no setting is';

describe('a text', () => {
  it('may be as deep as a configuration is, and more', () => {
    expect(JSON.stringify(parse(`${'['.repeat(20)}${']'.repeat(20)}`))).toBe(`${'['.repeat(20)}${']'.repeat(20)}`);
  });

  it.each<[string, string, string | RegExp]>([
    ['brackets', '['.repeat(100_000), DEEP],
    ['maps', '{a: '.repeat(3000), DEEP],
    ['indentation', Array.from({ length: 450 }, (_, i) => `${' '.repeat(i)}a:`).join('\n'), DEEP],
    ['dashes', '- '.repeat(60_000), DEEP],
    ['question marks', '? '.repeat(60_000), DEEP],
    ['a long text', `a: ${'x'.repeat(300_000)}`, 'x: is larger than 128 KiB; give the settings alone'],
    ['many values', `[${'1,'.repeat(50_000)}]`, 'x: holds more than 5000 values; give the settings alone'],
    ['many keys', Array.from({ length: 9000 }, (_, i) => `k${i}: 1`).join('\n'), /holds more than 5000 values/],
    ['a reference to itself', 'a: &a { x: *a }', 'x: a reference holds itself; write it out'],
    [
      'references that grow',
      [
        'a: &a [1,1,1,1,1,1,1,1,1,1]',
        ...[...'bcdefgh'].map((c, i) => `${c}: &${c} [${`*${'abcdefgh'[i]},`.repeat(10)}]`),
      ].join('\n'),
      /^x: not valid YAML: Excessive alias count/,
    ],
    [
      'references to much',
      `a: &a [${'1,'.repeat(1000)}]\nb: [${'*a,'.repeat(60)}]`,
      'x: holds more than 5000 values; give the settings alone',
    ],
    ['keys that are lists', '? [a, b]\n: c', 'x:1: not valid YAML: a key is a list or a map; give each key as a text'],
    ['anchors without end', '&a '.repeat(40_000), /^x: (holds more than 5000 values|not valid YAML)/],
    ['tags without end', '! '.repeat(60_000), /^x: (holds more than 5000 values|not valid YAML)/],
    ['a key twice', 'a: 1\nb: 2\na: 3', 'x:3: not valid YAML: Map keys must be unique; correct that line'],
  ])('of %s is refused at once', { timeout: 20_000 }, (_, text, line) => {
    const said = refused(text);
    expect(line instanceof RegExp ? line.exec(said)?.input : line).toBe(said);
  });
});

describe('a file', () => {
  const of = (name: string): string => refusal(() => readYaml(name)).slice('UserError: '.length);

  it('that is a folder, missing, no text, or endless', () => {
    expect(of(folder)).toBe(`${folder} is a folder; give a YAML file`);
    expect(of(join(folder, 'none'))).toBe(`${join(folder, 'none')} does not exist; give a YAML file`);
    const binary = join(folder, 'binary');
    writeFileSync(binary, Buffer.from([0xff, 0xfe, 0x00]));
    expect(of(binary)).toBe(`${binary} is not UTF-8 text; give a YAML file`);
    expect(of('/dev/zero')).toBe('/dev/zero: is larger than 128 KiB; give the settings alone');
  });

  it('may come through a pipe', () => {
    const pipe = join(folder, 'pipe');
    execFileSync('sh', ['-c', `mkfifo ${pipe}; (sleep 0.1; echo 'seed: 3' > ${pipe}) >/dev/null 2>&1 &`]);
    expect(readYaml(pipe).value).toEqual({ seed: 3 });
  });
});
