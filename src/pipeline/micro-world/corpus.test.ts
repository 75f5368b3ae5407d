import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { keptShare, readCorpus, sampleCorpus, writeCorpus } from './corpus.js';
import type { Evaluate } from './evaluation.js';

/** The output, and seven others of which so many are distinct from it and one another. */
const outputs = (output: string | null, distinct = 8): (string | null)[] =>
  Array.from({ length: 8 }, (_, index) => (index === 0 || index >= distinct ? output : `${index}`));

const always =
  (output: string | null): Evaluate =>
  (programs) =>
    Promise.resolve(programs.map(() => outputs(output)));

describe('sampleCorpus', () => {
  it('gives the same documents for the same seed, and a larger count only adds some', async () => {
    const few = await sampleCorpus({ seed: 5, count: 100, evaluate: always('[1, 2]') });
    const many = await sampleCorpus({ seed: 5, count: 3000, evaluate: always('[1, 2]') });
    const other = await sampleCorpus({ seed: 6, count: 100, evaluate: always('[1, 2]') });
    expect(few).toHaveLength(100);
    expect(many).toHaveLength(3000);
    expect(many.slice(0, 100)).toEqual(few);
    expect(other).not.toEqual(few);
  });

  it('ends task and output in a newline, and has no task twice', async () => {
    const documents = await sampleCorpus({ seed: 5, count: 5000, evaluate: always('[1, 2]') });
    expect(new Set(documents.map(({ task }) => task)).size).toBe(5000);
    for (const { task, output } of documents) {
      expect(task.endsWith(')\n')).toBe(true);
      expect(output).toBe('[1, 2]\n');
    }
  });

  it('leaves out programs that raise, that answer at length, or whose answer can be guessed', async () => {
    const evaluate: Evaluate = (programs) =>
      Promise.resolve(
        programs.map((_, index) => {
          if (index % 4 === 0) return outputs(null);
          if (index % 4 === 1) return outputs(`'${'A'.repeat(35)}'`);
          if (index % 4 === 2) return outputs('[5, 5]', 5);
          return outputs(`'${'B'.repeat(34)}'`, 6);
        }),
      );
    const documents = await sampleCorpus({ seed: 5, count: 500, evaluate });
    expect(new Set(documents.map(({ output }) => output))).toEqual(new Set([`'${'B'.repeat(34)}'\n`]));
  });

  it('asks `accept` last', async () => {
    const accept = ({ task }: { task: string }): boolean => task.includes('while');
    const documents = await sampleCorpus({ seed: 5, count: 50, evaluate: always('[1, 2]'), accept });
    expect(documents.every(({ task }) => task.includes('while'))).toBe(true);
  });
});

describe('keptShare', () => {
  it('thins small integers most and keeps lists and strings', () => {
    const shares = { True: 0.2, '[1]': 1, '[]': 0.3, "'AB'": 1, "'A'": 0.4, '7': 0.22, '17': 0.45, '-7': 0.45 };
    for (const [output, share] of Object.entries(shares)) expect(keptShare(output), output).toBe(share);
  });
});

describe('the corpus files', () => {
  const directory = mkdtempSync(join(tmpdir(), 'propel-corpus-'));
  afterAll(() => rmSync(directory, { recursive: true }));
  const documents = [
    { task: [115, 92, 3], output: [20, 3] },
    { task: [258, 3], output: [3] },
  ];

  it('hold token ids in two bytes, little-endian, and two lengths a document', () => {
    writeCorpus(directory, documents);
    expect([...readFileSync(join(directory, 'documents.u16'))]).toEqual([
      115, 0, 92, 0, 3, 0, 20, 0, 3, 0, 2, 1, 3, 0, 3, 0,
    ]);
    expect([...readFileSync(join(directory, 'lengths.u8'))]).toEqual([3, 2, 2, 1]);
  });

  it('give back what was written', () => {
    writeCorpus(directory, documents);
    expect(readCorpus(directory)).toEqual(documents);
  });

  it('are refused when they do not belong together', () => {
    writeCorpus(directory, documents);
    writeFileSync(join(directory, 'lengths.u8'), Uint8Array.of(3, 2, 2, 2));
    expect(() => readCorpus(directory)).toThrow(/shorter/);
    writeFileSync(join(directory, 'lengths.u8'), Uint8Array.of(3, 2));
    expect(() => readCorpus(directory)).toThrow(/longer/);
  });

  it('cannot hold a part beyond 255 tokens', () => {
    const long = { task: Array.from({ length: 256 }, () => 5), output: [3] };
    expect(() => writeCorpus(directory, [long])).toThrow(RangeError);
  });
});
