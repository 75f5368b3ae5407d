import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { KeptWork } from './kept-work.js';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'propel-work-'))));
afterEach(() => rmSync(folder, { recursive: true }));

let done = 0;
const work = (of: string, name: string): Promise<Uint8Array> =>
  new KeptWork(join(folder, 'work'), of).part(name, async () => Uint8Array.of(++done, 7));

test('a part is done once, for one computation and one name', async () => {
  done = 0;
  expect(await work('a', 'x')).toEqual(Uint8Array.of(1, 7));
  expect(await work('a', 'x')).toEqual(Uint8Array.of(1, 7));
  expect(await work('a', 'y')).toEqual(Uint8Array.of(2, 7));
  expect(await work('b', 'x')).toEqual(Uint8Array.of(3, 7));
  expect(readdirSync(join(folder, 'work'))).toEqual(['x', 'y']);
});

test('a damaged part, or one under the name of another, is done again', async () => {
  done = 0;
  await work('a', 'x');
  const path = join(folder, 'work', 'x');
  const bytes = readFileSync(path);
  writeFileSync(join(folder, 'work', 'y'), bytes);
  expect(await work('a', 'y')).toEqual(Uint8Array.of(2, 7));
  for (const damaged of [bytes.subarray(0, -1), Buffer.from(''), Buffer.from(bytes.map((byte) => byte ^ 1))]) {
    writeFileSync(path, damaged);
    const before = done;
    expect(await work('a', 'x')).toEqual(Uint8Array.of(before + 1, 7));
  }
});

test('a part that fails is not kept', async () => {
  const kept = new KeptWork(join(folder, 'work'), 'a');
  await expect(kept.part('x', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(await kept.part('x', async () => Uint8Array.of(1))).toEqual(Uint8Array.of(1));
});
