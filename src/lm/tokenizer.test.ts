/** A tokenizer's chat template and end tokens, of folders made like those of instructed models. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { addTokenizer, temporaryFolder } from '../../tests/tiny-checkpoint.js';
import { Tokenizer } from './tokenizer.js';

/** ChatML in the micro-world's characters; `<eos>` is one token. */
const TEMPLATE =
  "{% for m in messages %}{{ '# ' + m['role'] + '\n' + m['content'] + '<eos>' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '# assistant\n' }}{% endif %}";

/** The micro-world's begin token. */
const BOS = 1;

function folderWith(files: Readonly<Record<string, unknown>>): string {
  const folder = temporaryFolder();
  addTokenizer(folder);
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content));
  }
  return folder;
}

/** Rewrite a JSON file of a folder. */
function changeJson(folder: string, name: string, change: (content: Record<string, unknown>) => unknown): void {
  const file = join(folder, name);
  writeFileSync(file, JSON.stringify(change(JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>)));
}

function withTemplate(chat_template: unknown): string {
  const folder = folderWith({});
  const file = join(folder, 'tokenizer_config.json');
  const config = JSON.parse(readFileSync(file, 'utf8')) as object;
  writeFileSync(file, JSON.stringify({ ...config, chat_template }));
  return folder;
}

describe('a question', () => {
  const turn = (tokenizer: Tokenizer): number[] => [
    ...tokenizer.encode('# user\n1 + 1'),
    tokenizer.eos,
    ...tokenizer.encode('# assistant\n'),
  ];

  it('is a user’s turn and the answer’s beginning, special tokens as such', async () => {
    const tokenizer = await Tokenizer.open(withTemplate(TEMPLATE));
    expect(tokenizer.hasChat).toBe(true);
    expect(tokenizer.question('1 + 1', 'auto')).toEqual(turn(tokenizer));
    expect(tokenizer.question('1 + 1', 'never')).toEqual([BOS, ...tokenizer.encode('1 + 1')]);
  });

  it('follows chat_template.jinja, and the template named default of several', async () => {
    const beside = await Tokenizer.open(folderWith({ 'chat_template.jinja': TEMPLATE }));
    expect(beside.question('1 + 1', 'auto')).toEqual(turn(beside));
    const several = await Tokenizer.open(
      withTemplate([
        { name: 'other', template: 'x' },
        { name: 'default', template: TEMPLATE },
      ]),
    );
    expect(several.question('1 + 1', 'auto')).toEqual(turn(several));
  });

  it('is the prompt of a model without a template', async () => {
    const tokenizer = await Tokenizer.open(folderWith({}));
    expect(tokenizer.hasChat).toBe(false);
    expect(tokenizer.question('1 + 1', 'auto')).toEqual(tokenizer.prompt('1 + 1'));
  });

  it('has the same date every day', async () => {
    const dated =
      "{% if not date_string is defined %}{% set date_string = strftime_now('%d %b %Y') %}{% endif %}{{ date_string }}";
    const tokenizer = await Tokenizer.open(withTemplate(dated));
    expect(tokenizer.decode(tokenizer.question('', 'auto'))).toBe('26 Jul 2024');
  });

  it('that the template refuses says so, and what to do', async () => {
    const tokenizer = await Tokenizer.open(withTemplate("{{ raise_exception('a system turn comes first') }}"));
    expect(() => tokenizer.question('1', 'auto')).toThrow(
      /^the model's chat template cannot be filled in: a system turn comes first; set chat: never to do without$/,
    );
  });
});

describe('a text that reads like a special token', () => {
  it('is text: in a prompt, and in a turn, whose own special tokens stay', async () => {
    const tokenizer = await Tokenizer.open(withTemplate(TEMPLATE));
    const text = 'a <eos> <bos><eos>';
    const ids = tokenizer.question(text, 'auto');
    expect(ids.filter((id) => id === tokenizer.eos || id === BOS)).toEqual([tokenizer.eos]);
    expect(tokenizer.decode(ids)).toBe(`# user\n${text}# assistant\n`);
    expect(tokenizer.question(text, 'never')).toEqual([BOS, ...tokenizer.encode(text)]);
    expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
  });

  it('can still be a stop', async () => {
    const tokenizer = await Tokenizer.open(folderWith({}));
    expect(tokenizer.controlToken('<eos>')).toBe(tokenizer.eos);
    expect(tokenizer.controlToken('a')).toBeUndefined();
  });
});

describe('what stands before a text', () => {
  const template = (names: readonly string[], ids: readonly number[]): object => ({
    type: 'TemplateProcessing',
    single: [...names.map((id) => ({ SpecialToken: { id, type_id: 0 } })), { Sequence: { id: 'A', type_id: 0 } }],
    pair: [],
    special_tokens: Object.fromEntries(names.map((id, i) => [id, { id, ids: [ids[i]], tokens: [id] }])),
  });
  const bytes = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };
  const begin = template(['<bos>'], [BOS]);
  const end = {
    ...begin,
    single: [{ Sequence: { id: 'A', type_id: 0 } }, { SpecialToken: { id: '<bos>', type_id: 0 } }],
  };

  // What transformers 5.24 puts before a text, of the same files.
  it.each([
    ['nothing', null, []],
    ['bytes', bytes, []],
    ['a template', begin, [BOS]],
    ['a template of two tokens', template(['<eos>', '<bos>'], [2, 1]), [2, BOS]],
    ['a template whose token comes behind', end, []],
    ['bytes and a template', { type: 'Sequence', processors: [bytes, begin] }, [BOS]],
    ['a pair of tokens around', { type: 'BertProcessing', sep: ['<eos>', 2], cls: ['<bos>', BOS] }, [BOS]],
  ])(
    'is what tokenizer.json’s post-processor puts there, of %s, whatever add_bos_token says',
    async (_, post_processor, prefix) => {
      const folder = folderWith({});
      changeJson(folder, 'tokenizer.json', (tokenizer) => ({ ...tokenizer, post_processor }));
      for (const add_bos_token of [undefined, true, false, null]) {
        changeJson(folder, 'tokenizer_config.json', (config) => ({ ...config, add_bos_token }));
        const tokenizer = await Tokenizer.open(folder);
        expect(tokenizer.prefix).toEqual(prefix);
        expect(tokenizer.prompt('1')).toEqual([...prefix, ...tokenizer.encode('1')]);
        expect(tokenizer.prompt('')).toEqual(prefix);
      }
    },
  );

  it('is the begin token in the micro-world, whose models were trained with it', async () => {
    for (const model of ['generator', 'second-generator', 'solver']) {
      const tokenizer = await Tokenizer.open(join('data', 'micro-world', model));
      expect(tokenizer.prompt('def f(x):')).toEqual([BOS, ...tokenizer.encode('def f(x):')]);
    }
  });
});

describe('what ends a text', () => {
  const ends = async (files: Readonly<Record<string, unknown>>): Promise<readonly number[]> =>
    (await Tokenizer.open(folderWith(files))).ends;

  it('is the tokenizer’s end of sequence and whatever the configurations list', async () => {
    expect(await ends({})).toEqual([2]);
    expect(await ends({ 'generation_config.json': { eos_token_id: [7, 2, 5] }, 'config.json': {} })).toEqual([2, 7, 5]);
    expect(await ends({ 'config.json': { eos_token_id: 9 } })).toEqual([2, 9]);
    expect(await ends({ 'generation_config.json': { eos_token_id: null } })).toEqual([2]);
  });

  it.each([
    ['tokenizer_config.json', { 'tokenizer_config.json': { eos_token: '<eos>' } }, [2]],
    ['an object there', { 'tokenizer_config.json': { eos_token: { content: '<eos>', lstrip: false } } }, [2]],
    ['special_tokens_map.json', { 'special_tokens_map.json': { eos_token: '<eos>' } }, [2]],
    ['an object there too', { 'special_tokens_map.json': { eos_token: { content: '<eos>', rstrip: false } } }, [2]],
    ['generation_config.json', { 'generation_config.json': { eos_token_id: [2, 7] } }, [2, 7]],
    ['config.json', { 'config.json': { model_type: 'llama', eos_token_id: 2 } }, [2]],
    // As transformers ranks them.
    [
      'the map before a configuration',
      { 'tokenizer_config.json': { eos_token: '<pad>' }, 'special_tokens_map.json': { eos_token: '<eos>' } },
      [2],
    ],
    [
      'a configuration that lists its tokens before the map',
      {
        'tokenizer_config.json': {
          eos_token: '<eos>',
          added_tokens_decoder: { 2: { content: '<eos>', special: true } },
        },
        'special_tokens_map.json': { eos_token: '<pad>' },
      },
      [2],
    ],
  ])('may be named by %s alone', async (_, files, expected) => {
    const tokenizer = await Tokenizer.open(folderWith({ 'tokenizer_config.json': {}, ...files }));
    expect(tokenizer.ends).toEqual(expected);
    expect(tokenizer.eos).toBe(2);
    expect(tokenizer.decode([2])).toBe('');
  });

  it('is known to a template where a file of the tokenizer’s names it, as in transformers', async () => {
    const template = { chat_template: '{{ eos_token }}{{ bos_token }}' };
    const map = { 'special_tokens_map.json': { bos_token: '<bos>' }, 'config.json': { eos_token_id: 2 } };
    const silent = await Tokenizer.open(folderWith({ 'tokenizer_config.json': template, ...map }));
    expect(silent.question('', 'auto')).toEqual([BOS]);
    const named = await Tokenizer.open(
      folderWith({ 'tokenizer_config.json': { ...template, eos_token: '<eos>' }, ...map }),
    );
    expect(named.question('', 'auto')).toEqual([2, BOS]);
  });

  it('is missed where no file names one, and it is said where to', async () => {
    await expect(ends({ 'tokenizer_config.json': {}, 'config.json': {} })).rejects.toThrow(
      /tokenizer_config\.json names no eos_token, and special_tokens_map\.json, generation_config\.json and config\.json none either; add eos_token with the token that ends a text$/,
    );
  });

  it('is among the special texts, also where the tokenizer does not call it special', async () => {
    const folder = folderWith({ 'config.json': { eos_token_id: 280 } });
    const file = join(folder, 'tokenizer.json');
    const json = JSON.parse(readFileSync(file, 'utf8')) as { added_tokens: object[] };
    const added = ['<end>', '<tool>'].map((content, i) => ({
      ...json.added_tokens[0],
      id: 280 + i,
      content,
      special: false,
    }));
    writeFileSync(file, JSON.stringify({ ...json, added_tokens: [...json.added_tokens, ...added] }));
    const tokenizer = await Tokenizer.open(folder);
    expect(tokenizer.specialTexts).toEqual(['<pad>', '<bos>', '<eos>', '<end>']);
  });

  it('is refused when it is no token', async () => {
    await expect(ends({ 'generation_config.json': { eos_token_id: '<eos>' } })).rejects.toThrow(
      /generation_config\.json: eos_token_id: .*; give a token id or a list of them$/,
    );
    await expect(ends({ 'generation_config.json': '{' })).rejects.toThrow(/generation_config\.json is not valid JSON/);
  });
});
