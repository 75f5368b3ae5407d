import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AutoTokenizer, env, type PreTrainedTokenizer } from '@huggingface/transformers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seededRandom } from '../../metrics/random.js';
import { sampleProgram, taskText } from './language.js';
import { preTokens, trainBytePairEncoding, writeTokenizer } from './tokenizer-training.js';

function tasks(seed: string, count: number): string[] {
  const random = seededRandom(seed);
  return Array.from({ length: count }, () => taskText(sampleProgram(random)));
}

const outputs = ['[3, 2, 1]\n', "'FEED'\n", '-17\n', '[]\n', "''\n", 'True\n', '120\n', '[10, -2, 0]\n'];
const documents = tasks('tokenizer', 5000).map((task, index) => task + outputs[index % outputs.length]!);
const encoding = trainBytePairEncoding(documents, 280);
const newline = encoding.vocabulary.indexOf('\n');

describe('preTokens', () => {
  it('joins a newline to what follows it in a program, and leaves the last one alone', () => {
    expect(preTokens('def f(x):\n    return x[0]\n>>> f([17])\n')).toEqual([
      'def f(',
      'x',
      '):',
      '\n    return ',
      'x',
      '[',
      '0',
      ']',
      '\n>>> f(',
      '[',
      '1',
      '7',
      '])',
      '\n',
    ]);
  });
});

describe('trainBytePairEncoding', () => {
  it('merges the most frequent pair first; ties go to the pair that sorts last', () => {
    // Pre-tokens: 'low ' 20 times and 'lot' 5 times, so lo 25, ow 20, 'w ' 20, ot 5.
    const texts = [...Array<string>(20).fill('low '), ...Array<string>(5).fill('lot')];
    const { merges, vocabulary } = trainBytePairEncoding(texts, 3 + 96 + 10);
    // After lo: 'lo'+'w' 20 ties with 'w'+' ' 20, and 'w' sorts after 'lo'. Then 'lo'+'w ' 20; what is left is rarer than 20.
    expect(merges).toEqual([
      ['l', 'o'],
      ['w', ' '],
      ['lo', 'w '],
    ]);
    expect(vocabulary.slice(0, 3)).toEqual(['<pad>', '<bos>', '<eos>']);
    expect(vocabulary.slice(-3)).toEqual(['lo', 'w ', 'low ']);
  });

  it('stops at the vocabulary size, or when no pair is frequent', () => {
    expect(trainBytePairEncoding(documents, 150).vocabulary).toEqual(encoding.vocabulary.slice(0, 150));
    expect(trainBytePairEncoding(['x'], 150).vocabulary).toHaveLength(3 + 96);
  });

  it('keeps digits and capitals single and gives boilerplate one token', () => {
    const merged = encoding.vocabulary.slice(99);
    expect(merged.filter((token) => /[0-9A-Z]/.test(token))).toEqual([]);
    for (const token of ['def f(', '\n>>> f(', '\n    return ', '\n    ']) expect(merged).toContain(token);
  });

  it('takes documents apart and puts them together again', () => {
    for (const document of documents) expect(encoding.decode(encoding.encode(document))).toBe(document);
  });

  it('refuses characters outside the alphabet', () => {
    expect(() => encoding.encode('é')).toThrow(RangeError);
  });
});

describe('the bare newline token', () => {
  it('ends a task and is nowhere else in it', () => {
    for (const task of tasks('newline', 5000)) {
      const ids = encoding.encode(task);
      expect(ids.indexOf(newline), task).toBe(ids.length - 1);
    }
  });

  it('splits a document into task and output without changing a token', () => {
    for (const document of documents) {
      const ids = encoding.encode(document);
      const end = ids.indexOf(newline) + 1;
      expect(encoding.encode(encoding.decode(ids.slice(0, end)))).toEqual(ids.slice(0, end));
      expect(ids.indexOf(newline, end)).toBe(ids.length - 1);
    }
  });
});

describe('writeTokenizer', () => {
  const directory = mkdtempSync(join(tmpdir(), 'propel-tokenizer-'));
  let peer: PreTrainedTokenizer;

  beforeAll(async () => {
    writeTokenizer(encoding, join(directory, 'model'));
    env.allowRemoteModels = false;
    env.localModelPath = directory;
    peer = await AutoTokenizer.from_pretrained('model');
  });

  afterAll(() => rmSync(directory, { recursive: true }));

  it('is read by transformers.js, which encodes and decodes 5,000 documents alike', () => {
    for (const document of documents) {
      const ids = encoding.encode(document);
      expect(peer.encode(document, { add_special_tokens: false })).toEqual(ids);
      expect(peer.decode(ids, { skip_special_tokens: true })).toBe(document);
    }
  });

  it('names the special tokens and puts the begin token before a text, as the models were trained', () => {
    expect([peer.pad_token_id, peer.bos_token_id, peer.eos_token_id]).toEqual([0, 1, 2]);
    expect(peer.encode('x')).toEqual([1, encoding.vocabulary.indexOf('x')]);
    expect(peer.encode('<eos>x', { add_special_tokens: false })).toEqual([2, encoding.vocabulary.indexOf('x')]);
  });
});
