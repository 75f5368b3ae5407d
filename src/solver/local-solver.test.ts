/** A local model as solver: how it is asked, and what ends its answers. */
import { describe, expect, it } from 'vitest';
import type { LanguageModel } from '../lm/language-model.js';
import type { RolloutRequest } from '../lm/request-checks.js';
import type { ChatSetting } from '../lm/tokenizer.js';
import { createLocalSolver, QUESTIONS_PER_ROLLOUT } from './local-solver.js';

/** Characters are tokens; a turn of chat puts 100 before them and 101 after them. */
function fakeModel(asked: RolloutRequest[]): LanguageModel {
  const characters = (text: string): number[] => Array.from(text, (c) => c.charCodeAt(0) - 48);
  const model = {
    folder: 'a-model',
    config: { maxPositions: 12 },
    tokenizer: {
      ends: [20, 21],
      controlToken: (text: string) => (text === '<end>' ? 22 : undefined),
      tokenBytes: () => Array.from({ length: 60 }, (_, id) => Uint8Array.of(48 + id)),
      question: (text: string, chat: ChatSetting) =>
        chat === 'auto' ? [100, ...characters(text), 101] : characters(text),
      decode: (tokens: readonly number[]) => tokens.join(),
    },
    sample: (request: RolloutRequest) => {
      asked.push(request);
      const answer = { tokens: [7, 21], logProbs: new Float32Array(2), stopped: true };
      const cutOff = { tokens: [7, 7], logProbs: new Float32Array(2), stopped: false };
      return Promise.resolve(request.prompts.flatMap(() => [answer, cutOff]));
    },
  };
  return model as unknown as LanguageModel;
}

const SETTINGS = { temperature: 1, maxNewTokens: 4, stops: ['<end>'], end: null };

describe('a local solver', () => {
  it('is asked in a turn of chat, or bare, and stops at every end and at the stops that are set', async () => {
    const asked: RolloutRequest[] = [];
    const model = fakeModel(asked);
    const attempts = await createLocalSolver(model, { ...SETTINGS, chat: 'auto' }).attempt(['12', '3'], 2, 5);
    await createLocalSolver(model, { ...SETTINGS, chat: 'never' }).attempt(['12', '3'], 2, 5);
    expect(asked.map(({ prompts }) => prompts)).toEqual([
      [
        [100, 1, 2, 101],
        [100, 3, 101],
      ],
      [[1, 2], [3]],
    ]);
    expect(asked[0]).toMatchObject({ stops: [20, 21, 22], perPrompt: 2, maxNewTokens: 4, seed: 5 });
    expect(attempts).toEqual(
      [0, 2].map((draw) => [
        { answer: '7,21', status: 'answered', seed: 5, draw },
        { answer: '7,7', status: 'cut_off', seed: 5, draw: draw + 1 },
      ]),
    );
  });

  it('draws the likeliest token at temperature 0', async () => {
    const asked: RolloutRequest[] = [];
    await createLocalSolver(fakeModel(asked), { ...SETTINGS, temperature: 0, chat: 'never' }).attempt(['1'], 1, 5);
    expect(asked[0]!.temperature).toBeGreaterThan(0);
    expect(asked[0]!.temperature).toBeLessThan(1e-4);
  });

  it('fails at a question whose turn leaves no room for the answer, and is asked the others', async () => {
    const asked: RolloutRequest[] = [];
    const solver = createLocalSolver(fakeModel(asked), { ...SETTINGS, chat: 'auto' });
    // In a turn 9 tokens, and 4 more are more than 12 positions; 8 tokens just fit.
    const attempts = await solver.attempt(['1234567', '123456'], 2, 1);
    expect(asked.map(({ prompts }) => prompts)).toEqual([[[100, 1, 2, 3, 4, 5, 6, 101]]]);
    expect(attempts).toEqual([
      [
        { answer: '', status: 'cut_off', seed: null, draw: null },
        { answer: '', status: 'cut_off', seed: null, draw: null },
      ],
      [
        { answer: '7,21', status: 'answered', seed: 1, draw: 0 },
        { answer: '7,7', status: 'cut_off', seed: 1, draw: 1 },
      ],
    ]);
  });

  it('says of each attempt which rollout drew it, and where in it', async () => {
    const asked: RolloutRequest[] = [];
    const solver = createLocalSolver(fakeModel(asked), { ...SETTINGS, chat: 'never' });
    const attempts = await solver.attempt(Array<string>(QUESTIONS_PER_ROLLOUT + 1).fill('1'), 2, 7);
    const [first, second] = asked as [RolloutRequest, RolloutRequest];
    expect(first.seed).not.toBe(second.seed);
    expect(attempts[QUESTIONS_PER_ROLLOUT - 1]![1]).toMatchObject({ seed: first.seed, draw: 127 });
    expect(attempts[QUESTIONS_PER_ROLLOUT]![1]).toMatchObject({ seed: second.seed, draw: 1 });
  });
});
