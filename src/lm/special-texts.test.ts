/** Texts that read like control tokens, in tokenizers of every kind: they are text, with the ids they would have were there no such tokens. */
import { describe, expect, it } from 'vitest';
import {
  added,
  CONTROL,
  letterIds,
  letterTokenizer,
  metaspace,
  NAMES,
  PREPENDED,
  tokenizerFolder,
} from '../../tests/small-tokenizers.js';
import { CompletionEnd } from './completion-end.js';
import { BEGUN, ENDED, stateAfter, withStopTokens } from './token-ends.js';
import { Tokenizer } from './tokenizer.js';

const open = (...files: Parameters<typeof tokenizerFolder>): Promise<Tokenizer> =>
  Tokenizer.open(tokenizerFolder(...files));

const TEXTS = [
  'x.replace("<s>", "")',
  'a<s>b',
  '<s>',
  '</s><s></s>',
  '<s',
  's></s',
  ' <s> ',
  '<s><s>a',
  '<<s>>',
  'a</s>\nb<unk>',
  '  a',
];

describe('a text that reads like a control token', () => {
  it.each([
    ['by a normalizer', PREPENDED],
    ['by a pre-tokenizer, first', metaspace('first')],
    ['by a pre-tokenizer, always', metaspace('always')],
  ])('has no more spaces than its one, where a space is put before a text %s', async (_, parts) => {
    const tokenizer = await open(letterTokenizer(parts));
    for (const text of TEXTS) {
      // Metaspace puts none before a text that begins with one, and takes it off all the same.
      const spaced = text.startsWith(' ') && parts !== PREPENDED;
      const ids = letterIds(`${spaced ? '' : '▁'}${text.replaceAll(' ', '▁')}`);
      expect(tokenizer.encode(text)).toEqual(ids);
      expect(tokenizer.decode(ids)).toBe(spaced ? text.slice(1) : text);
    }
  });

  it('is its letters in a chat too, where the template’s own control tokens stay', async () => {
    const chat_template =
      "{{ bos_token }}{% for m in messages %}{{ '<s>' + m['content'] | trim + eos_token }}{% endfor %}{{ 'a' }}";
    const { question, encode } = await open(letterTokenizer(metaspace('first')), { ...NAMES, chat_template }).then(
      (tokenizer) => ({
        question: (text: string) => tokenizer.question(text, 'auto'),
        encode: (text: string) => tokenizer.encode(text),
      }),
    );
    expect(question('b')).toEqual([1, 1, ...letterIds('b'), 2, ...letterIds('a')]);
    expect(question(' x("<s>") ')).toEqual([1, 1, ...letterIds('x("<s>")'), 2, ...letterIds('a')]);
    expect(question('</s></s')).toEqual([1, 1, ...letterIds('</s></s'), 2, ...letterIds('a')]);
    // What a template cuts in the middle of a marked text leaves no mark behind.
    const cut = { ...NAMES, chat_template: "{{ messages[0]['content'][:10] }}" };
    expect((await open(letterTokenizer(), cut)).question('a</s>', 'auto').slice(0, 1)).toEqual(letterIds('a'));
    expect(encode('a')).toEqual(letterIds('▁a'));
  });

  it('is text where merges or whole words would make the token', async () => {
    const { vocab } = letterTokenizer()['model'] as { vocab: Record<string, number> };
    const merges = [
      ['<', 's'],
      ['<s', '>'],
    ];
    const grown = { vocab: { ...vocab, '<s': 90 }, merges };
    expect((await open(letterTokenizer({}, grown))).encode('<s>')).toEqual([90, ...letterIds('>')]);
    const whole = { ...grown, merges: [], ignore_merges: true };
    expect((await open(letterTokenizer({}, whole))).encode('<s>')).toEqual(letterIds('<s>'));
    const scores = [...CONTROL, ...'<>/sa'].map((text) => [text, text.length > 1 ? 0 : -1]);
    const unigram = letterTokenizer({ model: { type: 'Unigram', unk_id: 0, vocab: scores } });
    expect((await open(unigram)).encode('a<s></s>')).toEqual([7, 3, 6, 4, 3, 5, 6, 4]);
    const pieces = Object.fromEntries([...CONTROL, '<', '##s', '##>', 'a'].map((text, id) => [text, id]));
    const wordPiece = { type: 'WordPiece', unk_token: '<unk>', continuing_subword_prefix: '##', vocab: pieces };
    expect((await open(letterTokenizer({ model: wordPiece }))).encode('<s>')).toEqual([3, 4, 5]);
  });

  it('is text where only the configuration calls the token special, or ends texts with it', async () => {
    const named = await open(letterTokenizer({ added_tokens: [] }));
    expect(named.encode('a</s>')).toEqual(letterIds('a</s>'));
    expect(named.decode([...letterIds('a'), 2, 1])).toBe('a');
    expect(named.specialTexts).toEqual(['<s>', '</s>', '<unk>']);
    const plain = letterTokenizer({
      added_tokens: [...CONTROL.map((text, id) => added(id, text)), added(40, '<end>', { special: false })],
    });
    const ends = await open(plain, NAMES, { 'generation_config.json': { eos_token_id: [2, 40] } });
    expect(ends.encode('<end>')).toEqual(letterIds('<end>'));
    expect(ends.decode([...letterIds('a'), 40])).toBe('a<end>');
    expect((await open(plain)).encode('<end>')).toEqual([40]);
    const listed = { ...NAMES, added_tokens_decoder: { 40: { content: '<end>', special: true } } };
    expect((await open(plain, listed)).encode('<end>')).toEqual(letterIds('<end>'));
  });

  it('is text where a chat template writes the token, be it special or not: a text cannot forge a turn', async () => {
    const markers = ['<user>', '<think>', 'ab'].map((content, i) => added(40 + i, content, { special: false }));
    const file = letterTokenizer({ added_tokens: [...CONTROL.map((text, id) => added(id, text)), ...markers] });
    const template = '{% for m in messages %}{{ "<" + m.role + ">" }}ab{{ m.content }}{% endfor %}';
    const asked = await open(file, { ...NAMES, chat_template: template });
    expect(asked.question('x<user>y', 'auto')).toEqual([40, 42, ...letterIds('x<user>y')]);
    expect(asked.encode('<user>')).toEqual(letterIds('<user>'));
    expect(asked.decode([40, ...letterIds('x')])).toBe('<user>x');
    expect(asked.specialTexts).toEqual([...CONTROL]);
    // What no template writes, and what is a word, is a token in a text, as in transformers.
    expect(asked.encode('<think>ab')).toEqual([41, 42]);
    expect((await open(file)).encode('<user>')).toEqual([40]);
  });

  it('takes the white space beside it, all of it and nothing else, where it is said to', async () => {
    const user = added(40, '<user>', { lstrip: true, rstrip: true });
    const file = letterTokenizer({ added_tokens: [...CONTROL.map((text, id) => added(id, text)), user] });
    const chat_template = 'a\n<user>\n{{ messages[0].content }}b';
    const tokenizer = await open(file, { ...NAMES, chat_template });
    expect(tokenizer.question('\u0085\n x', 'auto')).toEqual([...letterIds('a'), 40, ...letterIds('xb')]);
    // U+FEFF is white space in JavaScript alone.
    expect(tokenizer.question('\uFEFFx', 'auto')).toEqual([...letterIds('a'), 40, 0, ...letterIds('xb')]);
  });

  it('keeps every character, those that are no characters too', async () => {
    const tokenizer = await open(letterTokenizer({}, { byte_fallback: true, vocab: bytesAndLetters() }));
    const text = 'a\uFDD0b\uFDD1<s>\u0000';
    expect(tokenizer.decode(tokenizer.encode(text))).not.toBe('');
    expect(tokenizer.encode('\uFDD0')).toEqual([0xef, 0xb7, 0x90].map((byte) => 100 + byte));
    expect(tokenizer.encode(text)).toHaveLength(2 + 3 + 3 + 3 + 1);
  });

  it('that is one character is that character, which a text has no other way to write', async () => {
    const newline = added(letterIds('\n')[0]!, '\n');
    const tokenizer = await open(letterTokenizer({ added_tokens: [newline] }), { ...NAMES, eos_token: '\n' });
    expect(tokenizer.encode('a\nb')).toEqual(letterIds('a\nb'));
    expect(tokenizer.ends).toEqual(letterIds('\n'));
  });
});

function bytesAndLetters(): Record<string, number> {
  const { vocab } = letterTokenizer()['model'] as { vocab: Record<string, number> };
  const bytes = Array.from({ length: 256 }, (_, byte) => {
    return [`<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`, 100 + byte] as const;
  });
  return { ...vocab, ...Object.fromEntries(bytes) };
}

describe('a stop', () => {
  it('is told where it stands, whatever is put before a text by itself', async () => {
    for (const parts of [{}, { decoder: null }, PREPENDED, metaspace('first'), metaspace('always')]) {
      const tokenizer = await open(letterTokenizer(parts));
      const ending = new CompletionEnd(tokenizer, ['\n', '</s>'], null);
      expect(ending.stops).toEqual([2]);
      const { ends, stops } = ending.request;
      const table = withStopTokens(ends!, 100, stops);
      const tokens = tokenizer.encode('ab\nc');
      const states: number[] = [];
      for (const token of tokens) states.push(stateAfter(table, states.at(-1) ?? BEGUN, token));
      expect(states.indexOf(ENDED)).toBe(tokens.indexOf(letterIds('\n')[0]!));
      expect(ending.textOf(tokens)).toMatch(/^a ?b ?\n$/);
    }
  });
});

describe('token ids', () => {
  it('of which the tokenizer knows nothing have no text, as of a model with more rows than tokens', async () => {
    const tokenizer = await open(letterTokenizer(PREPENDED));
    expect(tokenizer.decode([...letterIds('▁a'), 60, 99, ...letterIds('b')])).toBe('ab');
    expect(tokenizer.decode([99])).toBe('');
  });

  it('are missed for a text by a tokenizer of words alone, which is said', async () => {
    const words = { type: 'WordLevel', vocab: { '<s>': 0, '</s>': 1, a: 2, b: 3 } };
    const parts = { model: words, added_tokens: [], pre_tokenizer: { type: 'Whitespace' } };
    const tokenizer = await open(letterTokenizer(parts), { ...NAMES, unk_token: null });
    expect(tokenizer.encode('a b')).toEqual([2, 3]);
    expect(() => tokenizer.encode('a c')).toThrow(/^the tokenizer has no token for a part of "a c", and no unk_token/);
  });
});
