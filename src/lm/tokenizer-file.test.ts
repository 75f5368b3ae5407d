/** Damaged and hostile files of a tokenizer: each is refused at once, in one line that names the file and what is wrong with it. */
import { describe, expect, it } from 'vitest';
import {
  added,
  CONTROL,
  letterTokenizer,
  metaspace,
  NAMES,
  PREPENDED,
  tokenizerFolder,
} from '../../tests/small-tokenizers.js';
import { Tokenizer } from './tokenizer.js';

async function refusal(...files: Parameters<typeof tokenizerFolder>): Promise<string> {
  const folder = tokenizerFolder(...files);
  return Tokenizer.open(folder).then(
    () => 'opened',
    ({ name, message }: Error) => `${name}: ${message}`.replaceAll(folder, 'F'),
  );
}

const { vocab } = letterTokenizer()['model'] as { vocab: Record<string, number> };
const SIZE = Object.keys(vocab).length;
const withVocab = (more: object): object => letterTokenizer({}, { vocab: { ...vocab, ...more } });
const withAdded = (...tokens: object[]): object =>
  letterTokenizer({ added_tokens: [...CONTROL.map((text, id) => added(id, text)), ...tokens] });
const nested = (depth: number, key: string): object =>
  Array.from({ length: depth }).reduce<object>((inner) => ({ type: 'Sequence', [key]: [inner] }), { type: 'NFC' });
const template = (single: unknown, special_tokens: unknown): object =>
  letterTokenizer({ post_processor: { type: 'TemplateProcessing', single, pair: [], special_tokens } });
const RULE = 'token ids are whole numbers from 0 to 16777215; fetch the file again';

describe('a tokenizer.json is refused', () => {
  it.each<[string, object | string, string | RegExp]>([
    [
      'an id that would make a table of 200 million',
      withVocab({ x: 200_000_000 }),
      `model.vocab: "x" has the id 200000000: ${RULE}`,
    ],
    ['a fraction', withVocab({ x: 1.5 }), `model.vocab: "x" has the id 1.5: ${RULE}`],
    ['a negative id', withVocab({ x: -1 }), `model.vocab: "x" has the id -1: ${RULE}`],
    ['an id that is a text', withVocab({ x: '7' }), `model.vocab: "x" has the id "7": ${RULE}`],
    [
      'one id for two tokens',
      withVocab({ x: 5, y: 60 }),
      /^model\.vocab: "[^"]+" has the id 5 of another token; fetch the file again$/,
    ],
    [
      'a huge id of an added token',
      withAdded(added(2e8, '<x>')),
      `added_tokens.3: "<x>" has the id 200000000: ${RULE}`,
    ],
    ['a fraction as such', withAdded(added(50.5, '<x>')), `added_tokens.3: "<x>" has the id 50.5: ${RULE}`],
    ['a negative one as such', withAdded(added(-1, '<x>')), `added_tokens.3: "<x>" has the id -1: ${RULE}`],
    ['none as such', withAdded({ content: '<x>' }), `added_tokens.3: "<x>" has the id nothing: ${RULE}`],
    [
      'two ids of one token',
      withAdded(added(50, '</s>')),
      'added_tokens.3: "</s>" has the id 50 here and 2 elsewhere; fetch the file again',
    ],
    [
      'one id of two added tokens',
      withAdded(added(50, '<x>'), added(50, '<y>')),
      'added_tokens.4: "<y>" has the id 50 of "<x>"; fetch the file again',
    ],
    ['an added token without text', withAdded(added(50, '')), /^added_tokens\.3\.content: is empty; /],
    [
      'a merge of three',
      letterTokenizer({}, { merges: ['a b c'] }),
      'model.merges.0 is "a b c", not two tokens; fetch the file again',
    ],
    [
      'a merge of numbers',
      letterTokenizer({}, { merges: [[1, 2]] }),
      'model.merges.0 is [1,2], not two tokens; fetch the file again',
    ],
    [
      'merges of two ways of writing',
      letterTokenizer({}, { vocab: { ...vocab, ab: 60 }, merges: [['a', 'b'], 'a b'] }),
      'model.merges.1 is "a b", not two tokens; fetch the file again',
    ],
    [
      'a merge into no token',
      letterTokenizer({}, { merges: ['a b'] }),
      'model.merges.0 makes "ab", which is not in model.vocab; fetch the file again',
    ],
    ['no merges', letterTokenizer({}, { merges: null }), 'model.merges is no list; fetch the file again'],
    [
      'no vocabulary',
      letterTokenizer({}, { vocab: null }),
      'model.vocab is not the vocabulary of such a model; fetch the file again',
    ],
    [
      'an empty one',
      letterTokenizer({ added_tokens: [] }, { vocab: {} }),
      'model.vocab has no tokens; fetch the file again',
    ],
    [
      'scores without texts',
      letterTokenizer({ model: { type: 'Unigram', unk_id: 0, vocab: [[1, 2]] } }),
      'model.vocab.0 is [1,2], not a token and its score; fetch the file again',
    ],
    [
      'a score that is none',
      letterTokenizer({ model: { type: 'Unigram', vocab: [['a', null]] } }),
      'model.vocab.0 is ["a",null], not a token and its score; fetch the file again',
    ],
    [
      'a token twice',
      letterTokenizer({
        model: {
          type: 'Unigram',
          vocab: [
            ['a', 0],
            ['a', 1],
          ],
        },
      }),
      'model.vocab has a token twice: 2 entries, 1 tokens; fetch the file again',
    ],
    [
      'an unknown token that is none',
      letterTokenizer({ model: { type: 'Unigram', unk_id: 9, vocab: [['a', 0]] } }),
      'model.unk_id 9 is no token; fetch the file again',
    ],
    [
      'a model of tomorrow',
      letterTokenizer({}, { type: 'Tomorrow' }),
      /^model\.type "Tomorrow" is not supported; supported are BPE, /,
    ],
    [
      'a normalizer of tomorrow',
      letterTokenizer({ normalizer: { type: 'Tomorrow' } }),
      'normalizer "Tomorrow" is not supported',
    ],
    [
      'a pattern that is none',
      letterTokenizer({
        pre_tokenizer: { type: 'Split', pattern: { Regex: '(\n' }, behavior: 'Isolated', invert: false },
      }),
      /^the tokenizer cannot be loaded: Invalid regular expression[^\n]*$/,
    ],
    [
      'a pattern of any length',
      letterTokenizer({ pre_tokenizer: { type: 'Split', pattern: { Regex: String.raw`\p{`.repeat(1e5) } } }),
      'pre_tokenizer has a pattern of 300000 characters, more than 10000; fetch the file again',
    ],
    [
      'a part that lacks its pattern',
      letterTokenizer({ normalizer: { type: 'Sequence', normalizers: [{ type: 'Replace', content: 'x' }] } }),
      'normalizer has a Replace without a pattern; fetch the file again',
    ],
    [
      'an added token in the place of one of the vocabulary',
      withAdded(added(9, '<x>')),
      `added token "<x>" has the id 9, where transformers gives it ${SIZE}`,
    ],
    [
      'an added token behind a gap',
      withAdded(added(SIZE + 1, '<x>')),
      `added token "<x>" has the id ${SIZE + 1}, where transformers gives it ${SIZE}`,
    ],
    [
      'a token that is only a whole word',
      withAdded(added(SIZE, '<x>', { single_word: true })),
      'added token "<x>" is single_word, which is not supported',
    ],
    [
      'white space that belongs to a token of the text',
      withAdded(added(SIZE, '<x>', { special: false, lstrip: true })),
      'added token "<x>" takes white space beside it, but is not special: not supported',
    ],
    [
      'a token of the normalised text that is another there',
      letterTokenizer({
        added_tokens: [
          ...CONTROL.map((text, id) => added(id, text)),
          added(SIZE, 'x y', { special: false, normalized: true }),
        ],
        ...PREPENDED,
      }),
      'added token "x y" is looked for in normalised texts: not supported with this normalizer and pre_tokenizer',
    ],
    [
      'a text that begins elsewhere',
      letterTokenizer({ ...metaspace('first'), normalizer: { type: 'Strip', strip_left: true, strip_right: false } }),
      'normalizer "Strip" with a pre_tokenizer that marks the first piece is not supported',
    ],
    [
      'a part of encoders',
      letterTokenizer({ normalizer: { type: 'BertNormalizer' } }),
      'normalizer "BertNormalizer" is not supported',
    ],
    [
      'a decoder of tomorrow',
      letterTokenizer({ decoder: { type: 'Tomorrow' } }),
      'decoder "Tomorrow" is not supported',
    ],
    [
      'a split that goes both ways',
      letterTokenizer({
        pre_tokenizer: { type: 'Split', pattern: { String: 'a' }, behavior: 'MergedWithNext', invert: true },
      }),
      'a Split of behavior "MergedWithNext", inverted, is not supported',
    ],
    [
      'merges by chance',
      letterTokenizer({}, { dropout: 0.1 }),
      'model.dropout 0.1: the same text would have other tokens each time',
    ],
    [
      'merges inside words',
      letterTokenizer(
        {},
        { continuing_subword_prefix: '##', vocab: { ...vocab, '##b': 60, ab: 61 }, merges: [['a', '##b']] },
      ),
      'model.continuing_subword_prefix is not supported',
    ],
    [
      'pieces of no length',
      letterTokenizer({ pre_tokenizer: { type: 'FixedLength', length: 0 } }),
      'pre_tokenizer has pieces of length 0; fetch the file again',
    ],
    [
      'parts without end',
      letterTokenizer({ normalizer: nested(2000, 'normalizers') }),
      'normalizer is nested more than 64 deep; fetch the file again',
    ],
    [
      'processors without end',
      letterTokenizer({ post_processor: nested(2000, 'processors') }),
      'post_processor is nested more than 64 deep; fetch the file again',
    ],
    [
      'a processor of tomorrow',
      letterTokenizer({ post_processor: { type: 'Tomorrow' } }),
      'post_processor "Tomorrow" is not supported',
    ],
    [
      'a template without a text',
      template([{ SpecialToken: { id: '<s>' } }], {}),
      /^post_processor: single: has no place for the text; /,
    ],
    [
      'a template of no token',
      template([{ SpecialToken: { id: '<x>' } }, { Sequence: { id: 'A' } }], { '<x>': { ids: [99] } }),
      'post_processor names "<x>", which is no token; fetch the file again',
    ],
    ['a text', '"x"', /^document: .*; this is not the tokenizer\.json of a fast tokenizer$/],
    ['no JSON, in lines', '{"a":\n\nb', /^ is not valid JSON: [^\n]*$/],
  ])('with %s', async (_, tokenizer, problem) => {
    const started = performance.now();
    const line = await refusal(tokenizer);
    // At once: the worst of them took minutes, or never ended.
    expect(performance.now() - started).toBeLessThan(10_000);
    const told = line.replace(/^UserError: F(\/tokenizer\.json)?(: )?/, '');
    if (problem instanceof RegExp) expect(told).toMatch(problem);
    else expect(told).toBe(problem);
    expect(line).not.toContain('\n');
  });
});

describe('a tokenizer_config.json is refused', () => {
  it.each<[string, object | string, RegExp]>([
    ['a list', '[]', /^F\/tokenizer_config\.json: document: /],
    [
      'a token that is a number',
      { ...NAMES, eos_token: 2 },
      /^F\/tokenizer_config\.json: eos_token: is not the text of a token$/,
    ],
    [
      'a template that is none',
      { ...NAMES, chat_template: 5 },
      /^F\/tokenizer_config\.json: chat_template: is neither a template nor a list/,
    ],
    [
      'a token by a name',
      { ...NAMES, added_tokens_decoder: { x: { content: 'x' } } },
      /^F\/tokenizer_config\.json: added_tokens_decoder\.x: /,
    ],
    [
      'an end that is no token',
      { ...NAMES, eos_token: '<end>' },
      /^F: eos_token "<end>" is not a token of tokenizer\.json$/,
    ],
  ])('with %s', async (_, config, problem) => {
    expect((await refusal(letterTokenizer(), config)).replace('UserError: ', '')).toMatch(problem);
  });
});

describe('a tokenizer.json is opened', () => {
  it.each<[string, object]>([
    ['ids far above the others', withVocab({ x: 16_777_215 })],
    ['names that objects have of their own', withVocab({ constructor: 60, ['__proto__']: 61, toString: 62 })],
    ['no list of added tokens', letterTokenizer({ added_tokens: undefined })],
    ['merges as texts', letterTokenizer({}, { vocab: { ...vocab, ab: 60 }, merges: ['a b'] })],
    ['words alone', letterTokenizer({ model: { type: 'WordLevel', vocab, unk_token: '<unk>' } })],
  ])('with %s', async (_, tokenizer) => {
    expect(await refusal(tokenizer)).toBe('opened');
  });
});
