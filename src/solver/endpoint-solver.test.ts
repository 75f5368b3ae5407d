import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { startChatServer, type ChatRequest, type Choice, type Reply } from '../../tests/chat-server.js';
import { withoutSeeds, type SolverWithoutSeeds } from '../../tests/without-seeds.js';
import { RunError, UserError } from '../errors.js';
import { retryAfterMs } from './endpoint-client.js';
import { NoAnswers } from './answer-watch.js';
import type { Patience } from './back-off.js';
import type { PromptOf } from './request-form.js';
import { openEndpointSolver, type EndpointSolverSettings } from './endpoint-solver.js';
import type { AnswerKeeper, KeptResponse } from './solver.js';
import { costOf, NO_USAGE, UsageMeter } from './usage.js';

const SETTINGS: Omit<EndpointSolverSettings, 'endpoint'> = {
  model: 'm',
  temperature: 0.7,
  maxNewTokens: 64,
  stops: [],
  system: '',
  body: {},
  fields: { max_tokens: 'max_tokens', n: 'n', seed: 'seed', temperature: 'temperature' },
  apiKeyEnv: null,
  concurrency: 8,
  timeoutSeconds: 5,
  retries: 3,
  waitSeconds: 0,
  samples: 'auto',
};

/** What no request leaves to the server. */
const PLAIN = {
  top_p: 1,
  top_k: -1,
  min_p: 0,
  presence_penalty: 0,
  frequency_penalty: 0,
  repetition_penalty: 1,
  repeat_penalty: 1,
};

async function open(
  endpoint: string,
  settings: Partial<EndpointSolverSettings> = {},
  patience: Partial<Patience> = {},
  warn?: (message: string) => void,
): Promise<SolverWithoutSeeds> {
  const solver = await openEndpointSolver(
    { ...SETTINGS, endpoint, ...settings },
    { first: 2, longest: 20, checkSeconds: 5, ...patience },
    warn,
  );
  onTestFinished(() => solver.close());
  return withoutSeeds(solver);
}

/** So many choices, each told apart by its request and place. */
const several = (ordinal: number, n = 1): Reply => ({ kind: 'choices', choices: numbered(ordinal, n) });
const numbered = (ordinal: number, n: number): Choice[] =>
  Array.from({ length: n }, (_, i) => ({ content: `${ordinal}.${i}`, finish: 'stop' }));
const refused: Reply = { kind: 'status', status: 400, text: '{"error":{"message":"no such request"}}' };

const tooLong: Reply = {
  kind: 'status',
  status: 400,
  text: '{"error":{"message":"This model\'s maximum context length is 4096 tokens.","code":400}}',
};

/** Keeps in memory what each question was answered, by index. */
function memory(): AnswerKeeper & { readonly responses: Map<number, KeptResponse[]> } {
  const responses = new Map<number, KeptResponse[]>();
  return {
    responses,
    kept: (question) => responses.get(question) ?? [],
    keep: (question, response) => void responses.set(question, [...(responses.get(question) ?? []), response]),
  };
}

describe('plain sampling', () => {
  const refusing =
    (...fields: readonly string[]) =>
    (request: ChatRequest, i: number): Reply => {
      const found = fields.find((field) => field in request);
      if (found === undefined) return several(i, request.n);
      const error = { message: `Unrecognized request argument supplied: ${found}`, param: null };
      return { kind: 'status', status: 400, text: JSON.stringify({ error }) };
    };

  it('leaves out what the server refuses, says so once, and asks for it no more', async () => {
    const server = await startChatServer(refusing('top_k', 'min_p', 'repetition_penalty', 'repeat_penalty'));
    const warnings: string[] = [];
    const solver = await openEndpointSolver(
      { ...SETTINGS, endpoint: server.url },
      { first: 2, longest: 20, checkSeconds: 5 },
      (message) => warnings.push(message),
    );
    onTestFinished(() => solver.close());
    await solver.prove();
    expect(server.requests).toHaveLength(5);
    expect(solver.refusedSampling).toEqual(['top_k', 'min_p', 'repetition_penalty', 'repeat_penalty']);
    const [attempts] = await solver.attempt(['a'], 2, 1);
    expect(attempts!.map(({ status }) => status)).toEqual(['answered', 'answered']);
    expect(server.requests).toHaveLength(6);
    expect(server.requests[5]).toMatchObject({ top_p: 1, presence_penalty: 0, frequency_penalty: 0 });
    expect(warnings.map((warning) => warning.replace(/^.*: (\w+ is refused)/, '$1'))).toEqual(
      ['top_k', 'min_p', 'repetition_penalty', 'repeat_penalty'].map(
        (field) => `${field} is refused, and left out: sampling is plain only as far as its default is`,
      ),
    );
  });

  it('is found out of by requests that are under way at once too', async () => {
    const server = await startChatServer(refusing('top_k', 'min_p'));
    const attempts = await (await open(server.url)).attempt(['a', 'b', 'c', 'd'], 2, 1);
    expect(attempts.flat().every(({ status }) => status === 'answered')).toBe(true);
  });

  it('is what solver.body says instead, and a field of it that is refused is for the settings', async () => {
    const server = await startChatServer(refusing('top_k'));
    const solver = await openEndpointSolver({ ...SETTINGS, endpoint: server.url, body: { top_k: 20 } });
    onTestFinished(() => solver.close());
    await expect(solver.prove()).rejects.toThrow(/^solver\.body\.top_k: drop or correct it \(.*refuses every request/);
    expect(server.requests[0]).toMatchObject({ top_k: 20 });
  });

  it('is asked one by one of llama.cpp, whose account is that of one choice', async () => {
    const listed = (owner: string): Reply => ({
      kind: 'text',
      text: JSON.stringify({ data: [{ id: 'm', owned_by: owner }] }),
    });
    const sent: Record<string, number> = {};
    for (const owner of ['llamacpp', 'vllm']) {
      const server = await startChatServer(
        (request, i) => several(i, request.n),
        () => listed(owner),
      );
      const warnings: string[] = [];
      await (await open(server.url, {}, {}, (message) => warnings.push(message))).attempt(['a'], 4, 1);
      sent[owner] = server.requests.length;
      expect(warnings).toHaveLength(owner === 'llamacpp' ? 1 : 0);
    }
    expect(sent).toEqual({ llamacpp: 4, vllm: 1 });
  });
});

describe('a question', () => {
  const asked = async (promptOf: PromptOf, question = 'q'): Promise<{ request: ChatRequest; status: string }> => {
    const server = await startChatServer((request, i) => several(i, request.n));
    const settings = { ...SETTINGS, endpoint: server.url, stops: ['END'] };
    const solver = await openEndpointSolver(settings, undefined, undefined, promptOf);
    onTestFinished(() => solver.close());
    const [attempts] = await solver.attempt([question], 2, 1);
    return { request: server.requests[0]!, status: attempts!.map(({ status }) => status).join() };
  };

  it('is a turn of a chat, a text to go on with, or token ids with those that end an answer', async () => {
    const turn = await asked((question) => ({ turn: question }));
    expect(turn).toMatchObject({
      request: { messages: [{ role: 'user', content: 'q' }] },
      status: 'answered,answered',
    });
    expect(turn.request).not.toHaveProperty('prompt');
    const text = await asked((question) => ({ text: question }));
    expect(text).toMatchObject({ request: { prompt: 'q', n: 2, stop: ['END'] }, status: 'answered,answered' });
    const ids = await asked(() => ({ ids: [1, 7], ends: [2, 3] }));
    expect(ids).toMatchObject({ request: { prompt: [1, 7], stop_token_ids: [2, 3] }, status: 'answered,answered' });
  });

  it('that cannot be put is not asked: its attempts are errors, others are had, and it is told once', async () => {
    const server = await startChatServer((request, i) => several(i, request.n));
    const warnings: string[] = [];
    const promptOf: PromptOf = (question) => (question.includes('</s>') ? null : { text: question });
    const warn = (message: string): void => void warnings.push(message);
    const solver = await openEndpointSolver({ ...SETTINGS, endpoint: server.url }, undefined, warn, promptOf);
    onTestFinished(() => solver.close());
    const attempts = await solver.attempt(['a </s>', 'b', '</s>'], 1, 1);
    expect(attempts.map(([attempt]) => attempt!.status)).toEqual(['error', 'answered', 'error']);
    expect(server.requests).toHaveLength(1);
    expect(warnings).toEqual([expect.stringContaining('give solver.tokenizer, and they go as token ids')]);
  });
});

describe('a proof before any work', () => {
  it('waits for a server that is starting', async () => {
    const server = await startChatServer((request, i) =>
      i < 3 ? { kind: 'status', status: 503, text: '{"error":{"message":"Loading model"}}' } : several(i, request.n),
    );
    const solver = await openEndpointSolver(
      { ...SETTINGS, endpoint: server.url, waitSeconds: 20 },
      { first: 2, longest: 20, checkSeconds: 5 },
    );
    onTestFinished(() => solver.close());
    await solver.prove();
    expect(server.requests.length).toBeGreaterThanOrEqual(4);
  });

  it('tells of a context that has no room for the new tokens, by what the server says of its model', async () => {
    const models = (): Reply => ({ kind: 'text', text: JSON.stringify({ data: [{ id: 'm', max_model_len: 64 }] }) });
    const server = await startChatServer((request, i) => several(i, request.n), models);
    await expect(open(server.url)).rejects.toThrow(
      /^solver\.maxNewTokens: http.* serves m with 64 tokens for question and answer together \(max_model_len\), so 64 new ones/,
    );
    await open(server.url, { maxNewTokens: 63 });
  });
});

describe('one request', () => {
  it('asks for all attempts at a question, with a seed of its own and what the settings say', async () => {
    vi.stubEnv('ENDPOINT_TEST_KEY', 'secret');
    onTestFinished(() => void vi.unstubAllEnvs());
    const server = await startChatServer((request, i) => several(i, request.n));
    const solver = await open(`${server.url}/`, {
      apiKeyEnv: 'ENDPOINT_TEST_KEY',
      stops: ['END'],
      system: 'Be brief.',
      body: { top_p: 0.9 },
      concurrency: 1,
    });
    const attempts = await solver.attempt(['a', 'b'], 3, 1);
    expect(attempts.map((own) => own.map(({ answer }) => answer))).toEqual([
      ['0.0', '0.1', '0.2'],
      ['1.0', '1.1', '1.2'],
    ]);
    expect(server.requests[0]).toEqual({
      ...PLAIN,
      model: 'm',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'a' },
      ],
      temperature: 0.7,
      max_tokens: 64,
      stop: ['END'],
      n: 3,
      top_p: 0.9,
      stream: false,
      seed: expect.any(Number),
    });
    expect(server.authorizations).toEqual(['Bearer secret', 'Bearer secret']);
    const seeds = server.requests.map(({ seed }) => seed!);
    expect(new Set(seeds).size).toBe(2);
    expect(seeds.every((seed) => seed >= 0 && seed < 2 ** 31)).toBe(true);
    await solver.attempt(['a', 'b'], 3, 1);
    expect(server.requests.slice(2).map(({ seed }) => seed)).toEqual(seeds);
    await solver.attempt(['a'], 3, 2);
    expect(seeds).not.toContain(server.requests[4]!.seed);
  });

  it('tells what ended by itself from what was cut off', async () => {
    const finishes = ['stop', 'length', 'eos_token', 'tool_calls'];
    const choices = finishes.map((finish) => ({ content: finish === 'tool_calls' ? null : finish, finish }));
    const server = await startChatServer(() => ({ kind: 'choices', choices }));
    const [attempts] = await (await open(server.url)).attempt(['a'], 4, 1);
    expect(attempts).toEqual([
      { answer: 'stop', status: 'answered' },
      { answer: 'length', status: 'cut_off' },
      { answer: 'eos_token', status: 'answered' },
      { answer: '', status: 'empty' },
    ]);
  });

  it('is one of no more than so many at once', async () => {
    const server = await startChatServer((request, i) => ({ ...several(i, request.n), dripMs: 2 }) as Reply);
    const solver = await open(server.url, { concurrency: 3 });
    await solver.attempt(Array.from({ length: 12 }, String), 2, 1);
    expect(server.requests).toHaveLength(12);
    expect(server.peak()).toBe(3);
  });
});

describe('several attempts', () => {
  it('that came are kept, and the rest asked for', async () => {
    const server = await startChatServer((request, i) => several(i, i === 0 ? 5 : request.n));
    const [attempts] = await (await open(server.url)).attempt(['a'], 8, 1);
    expect(server.requests.map(({ n }) => n)).toEqual([8, 3]);
    expect(attempts!.map(({ answer }) => answer)).toEqual(['0.0', '0.1', '0.2', '0.3', '0.4', '1.0', '1.1', '1.2']);
  });

  it('are counted once where the server repeats a choice, aborts one, or gives too many', async () => {
    const server = await startChatServer((request, i) => {
      if (i === 0) {
        const choices = [
          { index: 0, content: 'kept', finish: 'stop' },
          { index: 0, content: 'again', finish: 'stop' },
          { index: 1, content: 'abo', finish: 'abort' },
          { index: 2, content: 'unfin', finish: 'error' },
        ];
        return { kind: 'choices', choices };
      }
      return several(i, request.n! + 2);
    });
    const [attempts] = await (await open(server.url, { samples: 'together' })).attempt(['a'], 3, 1);
    expect(attempts!.map(({ answer }) => answer)).toEqual(['kept', '1.0', '1.1']);
  });

  it('are asked for one by one where the server gives one, whatever was asked', async () => {
    const server = await startChatServer((_, i) => several(i));
    const [attempts] = await (await open(server.url)).attempt(['a'], 4, 1);
    expect(server.requests.map(({ n = 1 }) => n)).toEqual([4, 1, 1, 1]);
    expect(new Set(server.requests.map(({ seed }) => seed)).size).toBe(4);
    expect(attempts!.map(({ status }) => status)).toEqual(Array(4).fill('answered'));
  });

  it('are asked for one by one where the server refuses several', async () => {
    const server = await startChatServer((request, i) => (request.n === undefined ? several(i) : refused));
    const solver = await open(server.url);
    const attempts = await solver.attempt(['a'], 4, 1);
    expect(attempts.flat().every(({ status }) => status === 'answered')).toBe(true);
    expect(server.requests.map(({ n = 1 }) => n)).toEqual([4, 1, 1, 1, 1]);
    await solver.attempt(['b'], 2, 1);
    expect(server.requests.slice(5).map(({ n = 1 }) => n)).toEqual([1, 1]);
  });

  it('are asked for as the settings say', async () => {
    const server = await startChatServer((request, i) => several(i, request.n));
    await (await open(server.url, { samples: 'single' })).attempt(['a'], 3, 1);
    expect(server.requests.map(({ n = 1 }) => n)).toEqual([1, 1, 1]);
    const one = await startChatServer((_, i) => several(i));
    await (await open(one.url, { samples: 'together' })).attempt(['a'], 3, 1);
    expect(one.requests.map(({ n = 1 }) => n)).toEqual([3, 2, 1]);
  });
});

describe('a fault', () => {
  it.each<[string, Reply]>([
    ['an internal error', { kind: 'status', status: 500, text: 'Traceback' }],
    ['a proxy without a server', { kind: 'status', status: 502 }],
    ['a rate limit', { kind: 'status', status: 429, headers: { 'retry-after': '0' } }],
    ['text that is not JSON', { kind: 'text', text: '<html>' }],
    ['JSON that is no completion', { kind: 'text', text: '{"choices":[{"delta":"1"}]}' }],
    ['no choices', { kind: 'choices', choices: [] }],
    ['a cut stream', { kind: 'cut' }],
    ['a reset', { kind: 'reset' }],
    ['a hang', { kind: 'hang' }],
    ['bytes that drip', { kind: 'choices', choices: numbered(0, 1), dripMs: 100 }],
  ])('is asked again: %s', async (_, reply) => {
    const server = await startChatServer((request, i) => (i === 0 ? reply : several(i, request.n)));
    const meter = new UsageMeter();
    const solver = await open(server.url, { timeoutSeconds: 0.2 });
    const attempts = await solver.attempt(['a'], 2, 1, { meter });
    expect(attempts).toEqual([
      [
        { answer: '1.0', status: 'answered' },
        { answer: '1.1', status: 'answered' },
      ],
    ]);
    expect(meter.total).toMatchObject({ requests: 2, retries: 1 });
    expect(server.requests[0]!.seed).not.toBe(server.requests[1]!.seed);
  });

  it('that stays makes errors, and only of its own question', async () => {
    const bad: Reply = { kind: 'status', status: 503 };
    const server = await startChatServer((request, i) =>
      request.messages[0]!.content === 'bad' ? bad : several(i, request.n),
    );
    const attempts = await (await open(server.url)).attempt(['good', 'bad'], 2, 1);
    expect(attempts[0]!.map(({ status }) => status)).toEqual(['answered', 'answered']);
    const error = { answer: '', status: 'error' };
    expect(attempts[1]).toEqual([error, error]);
    expect(server.requests.filter(({ messages }) => messages[0]!.content === 'bad')).toHaveLength(4);
  });

  it('of a question that the server will not read is an error, and not asked again and again', async () => {
    const server = await startChatServer((request, i) =>
      request.messages[0]!.content === 'long' ? refused : several(i, request.n),
    );
    const attempts = await (await open(server.url)).attempt(['short', 'long'], 2, 1);
    expect(attempts[1]!.map(({ status }) => status)).toEqual(['error', 'error']);
    expect(server.requests.filter(({ messages }) => messages[0]!.content === 'long').length).toBeLessThanOrEqual(2);
  });

  it('of a question that has no room in the context is a fail of every attempt, as of a local solver', async () => {
    const server = await startChatServer((request, i) =>
      request.messages[0]!.content === 'long' ? tooLong : several(i, request.n),
    );
    const meter = new UsageMeter();
    const attempts = await (await open(server.url)).attempt(['short', 'long'], 2, 1, { meter });
    expect(attempts[0]!.map(({ status }) => status)).toEqual(['answered', 'answered']);
    const cutOff = { answer: '', status: 'cut_off' };
    expect(attempts[1]).toEqual([cutOff, cutOff]);
    expect(server.requests.filter(({ messages }) => messages[0]!.content === 'long')).toHaveLength(1);
  });

  it('that says so with a status of its own is a fail too, not a fault to wait for', async () => {
    const text =
      '{"error":"The sum of prompt length (9351.0), query length (0) should not exceed max_num_tokens (8192)"}';
    const server = await startChatServer((request, i) =>
      request.messages[0]!.content === 'long' ? { kind: 'status', status: 500, text } : several(i, request.n),
    );
    const attempts = await (await open(server.url)).attempt(['short', 'long'], 2, 1);
    expect(attempts[1]!.map(({ status }) => status)).toEqual(['cut_off', 'cut_off']);
    expect(server.requests.filter(({ messages }) => messages[0]!.content === 'long')).toHaveLength(1);
  });

  it('of the length of every question is no fail when not even the shortest has room', async () => {
    const server = await startChatServer(() => tooLong);
    const attempt = (await open(server.url)).attempt(['a', 'b'], 2, 1);
    await expect(attempt).rejects.toThrow(UserError);
    await expect(attempt).rejects.toThrow(
      /^solver\.maxNewTokens: http.* has no room for an answer of 64 tokens even at a question of one character/,
    );
  });

  it('of all questions is their own where the server answers others', async () => {
    const server = await startChatServer((request, i) => (request.messages[0]!.content === '1' ? several(i) : refused));
    const meter = new UsageMeter();
    const attempts = await (await open(server.url)).attempt(['a'], 2, 1, { meter });
    const error = { answer: '', status: 'error' };
    expect(attempts).toEqual([[error, error]]);
    expect(meter.total.requests).toBe(server.requests.length);
    const none = await startChatServer(() => refused);
    await expect((await open(none.url)).attempt(['a'], 2, 1)).rejects.toThrow(
      'answered none of 1 questions: status 400: no such request; see to its server',
    );
  });

  it('of every question ends the work: it is not an outcome', async () => {
    const server = await startChatServer(() => ({ kind: 'status', status: 503, text: '{"detail":"loading"}' }));
    const solver = await open(server.url, { retries: 1 });
    const attempt = solver.attempt(['a', 'b'], 2, 1);
    await expect(attempt).rejects.toThrow(RunError);
    await expect(attempt).rejects.toThrow(
      'has stopped answering: status 503: loading (waited 0 s, solver.waitSeconds); its answers so far are kept: see to its server',
    );
  });

  it('of a server that is away is waited for: no attempt is lost, and none is had twice', async () => {
    let downUntil = Infinity;
    let answered = 0;
    const server = await startChatServer((request, i) => {
      if (answered >= 4 && downUntil === Infinity) downUntil = performance.now() + 400;
      if (performance.now() < downUntil && downUntil < Infinity) return { kind: 'status', status: 503 };
      answered++;
      return several(i, request.n);
    });
    const keeper = memory();
    const solver = await open(server.url, { retries: 1, waitSeconds: 20 });
    const questions = Array.from({ length: 12 }, (_, i) => `question ${i}`);
    const attempts = await solver.attempt(questions, 3, 1, { keeper });
    expect(attempts.flat().map(({ status }) => status)).toEqual(Array.from({ length: 36 }, () => 'answered'));
    const kept = [...keeper.responses.values()].flat();
    expect(kept).toHaveLength(12);
    expect(new Set(attempts.flat().map(({ answer }) => answer)).size).toBe(36);
  });

  it('of a server that stays away leaves the call open, and what came is kept', async () => {
    let down = false;
    let answered = 0;
    const server = await startChatServer((request, i) => {
      if (down) return { kind: 'status', status: 502, text: 'bad gateway' };
      down = ++answered === 3;
      return several(i, request.n);
    });
    const keeper = memory();
    const solver = await open(server.url, { retries: 1, waitSeconds: 0.2, concurrency: 1 });
    const questions = ['a', 'b', 'c', 'd', 'e'];
    await expect(solver.attempt(questions, 2, 1, { keeper })).rejects.toThrow(
      /has stopped answering: status 502: bad gateway \(waited \d+ s, solver\.waitSeconds\)/,
    );
    expect([...keeper.responses.keys()]).toEqual([0, 1, 2]);
    down = false;
    answered = -Infinity;
    const attempts = await solver.attempt(questions, 2, 1, { keeper });
    expect(attempts.flat().every(({ status }) => status === 'answered')).toBe(true);
    expect([...keeper.responses.values()].map(({ length }) => length)).toEqual([1, 1, 1, 1, 1]);
  });

  it('of one question alone is an error of it, while the server answers others, be it asked with them or not', async () => {
    const server = await startChatServer((request, i) =>
      request.messages[0]!.content === 'poison' ? { kind: 'status', status: 500 } : several(i, request.n),
    );
    const solver = await open(server.url, { retries: 2, waitSeconds: 60 });
    const statuses = async (questions: readonly string[]): Promise<string[]> =>
      (await solver.attempt(questions, 1, 1)).map(([attempt]) => attempt!.status);
    expect(await statuses(['a', 'poison'])).toEqual(['answered', 'error']);
    expect(await statuses(['poison'])).toEqual(['error']);
    const asked = server.requests.filter(({ messages }) => messages[0]!.content === 'poison');
    // Three times each, and once more where nothing else was answered meanwhile.
    expect(asked.length).toBeGreaterThanOrEqual(6);
    expect(asked.length).toBeLessThanOrEqual(8);
  });

  it('holds all requests back for as long as the server asks', async () => {
    const moments: number[] = [];
    const server = await startChatServer((request, i) => {
      moments.push(performance.now());
      return i === 0 ? { kind: 'status', status: 429, headers: { 'retry-after': '0.3' } } : several(i, request.n);
    });
    await (await open(server.url, { concurrency: 1 })).attempt(['a', 'b', 'c'], 1, 1);
    expect(server.requests).toHaveLength(4);
    expect(moments[1]! - moments[0]!).toBeGreaterThanOrEqual(280);
  });

  it('Retry-After is seconds or a date', () => {
    const now = Date.parse('2026-01-01T00:00:00Z');
    expect(retryAfterMs('2', now)).toBe(2000);
    expect(retryAfterMs('Thu, 01 Jan 2026 00:00:07 GMT', now)).toBe(7000);
    expect(retryAfterMs('Thu, 01 Jan 2026 00:00:00 GMT', now + 5)).toBe(0);
    expect(retryAfterMs('86400', now)).toBe(300_000);
    expect(retryAfterMs('soon', now)).toBeNull();
  });
});

describe('answers that are none', () => {
  const questions = Array.from({ length: 12 }, String);
  const every =
    (choice: Choice) =>
    (request: { readonly n?: number }): Reply => ({
      kind: 'choices',
      choices: Array.from({ length: request.n ?? 1 }, () => choice),
    });

  it.each<[string, Choice]>([
    ['empty', { content: null, finish: 'stop' }],
    ['refused', { content: null, finish: 'stop', message: { refusal: 'No.' } }],
  ])('end the work once nearly all are: %s', async (status, choice) => {
    const server = await startChatServer(every(choice));
    const attempt = (await open(server.url, { concurrency: 1 })).attempt(questions, 8, 1);
    await expect(attempt).rejects.toThrow(NoAnswers);
    await expect(attempt).rejects.toThrow(/^the solver's endpoint http.* answers nothing: of 32 attempts /);
    await expect(attempt).rejects.toThrow(status === 'empty' ? '32 are empty. See to' : '0 are empty and 32 refused');
    expect(server.requests.length).toBeLessThanOrEqual(5);
  });

  it('are fails, counted, where others are answers', async () => {
    const kinds: Choice[] = [
      { content: 'a', finish: 'stop' },
      { content: null, finish: 'stop' },
      { content: null, finish: 'length', message: { reasoning_content: 'so' } },
      { content: null, finish: 'stop', message: { refusal: 'No.' } },
    ];
    const server = await startChatServer(() => ({ kind: 'choices', choices: kinds }));
    const meter = new UsageMeter();
    const keeper = memory();
    const attempts = await (await open(server.url)).attempt(questions, 4, 1, { meter, keeper });
    expect(attempts[3]).toEqual([
      { answer: 'a', status: 'answered' },
      { answer: '', status: 'empty' },
      { answer: 'so', status: 'cut_off' },
      { answer: 'No.', status: 'refused' },
    ]);
    expect(meter.total).toMatchObject({ empty: 12, cutOff: 12, refused: 12 });
    expect(keeper.responses.get(0)![0]!.usage).toMatchObject({ empty: 1, cutOff: 1, refused: 1 });
  });

  it('of one question say nothing of the others', async () => {
    const server = await startChatServer((request, i) =>
      request.messages[0]!.content === 'odd' ? every({ content: '', finish: 'stop' })(request) : several(i, request.n),
    );
    const meter = new UsageMeter();
    await (await open(server.url, { concurrency: 1 })).attempt(['odd', 'a', 'b', 'c', 'd'], 32, 1, { meter });
    expect(meter.total.empty).toBe(32);
  });

  it('that were kept are judged too, so that a run that was broken off stops as one that was not', async () => {
    const server = await startChatServer(every({ content: '', finish: 'stop' }));
    const keeper = memory();
    await expect((await open(server.url)).attempt(questions, 8, 1, { keeper })).rejects.toThrow(NoAnswers);
    await expect((await open(server.url)).attempt(questions, 8, 1, { keeper })).rejects.toThrow(NoAnswers);
  });

  it('are told of while the others are waited for', async () => {
    const server = await startChatServer((request, i) =>
      i === 1 ? { kind: 'hang' } : every({ content: '', finish: 'stop' })(request),
    );
    const said: (string | undefined)[] = [];
    const solver = await open(server.url, { concurrency: 1, timeoutSeconds: 1.3 });
    await solver.attempt(['a', 'b'], 2, 1, { onProgress: (_, note) => said.push(note) });
    expect(said[0]).toBe('2 answers empty');
  });
});

describe('an oddity of the server', () => {
  const toldBy = async (choice: Choice): Promise<string[]> => {
    const server = await startChatServer((request) => ({
      kind: 'choices',
      choices: Array.from({ length: request.n ?? 1 }, () => choice),
    }));
    const said: string[] = [];
    const solver = await open(server.url, {}, {}, (message) => said.push(message.replace(server.url, 'URL')));
    const attempts = await solver.attempt(Array.from({ length: 8 }, String), 4, 1);
    expect(attempts.flat()).toHaveLength(32);
    return said;
  };

  it.each<[string, Choice, string[]]>([
    ['nothing', { content: '2', finish: 'eos' }, []],
    [
      'a reason',
      { content: '2', finish: 'done_by_me' },
      ['URL: finish_reason "done_by_me" is not known: its texts are taken as whole answers'],
    ],
    [
      'no reason',
      { content: '2', finish: null },
      ['URL: finish_reason null is not known: its texts are taken as whole answers'],
    ],
    [
      'its reasoning for an answer',
      { content: null, finish: 'stop', message: { reasoning_content: '2' } },
      ['URL: content is empty and the text stands in the reasoning: that is taken as the answer'],
    ],
    [
      'a limit that is too low',
      { content: null, finish: 'length' },
      [
        'URL: attempts are cut off at 64 new tokens, or have no room in the context, and so fail (24 of 24): raise solver.maxNewTokens, or let the model think less',
      ],
    ],
  ])('is told once: %s', async (_, choice, told) => {
    expect(await toldBy(choice)).toEqual(told);
  });
});

describe('a field that the server refuses', () => {
  const refusing =
    (field: string, error: object): ((request: ChatRequest, ordinal: number) => Reply) =>
    (request, i) =>
      field in request ? { kind: 'status', status: 400, text: JSON.stringify({ error }) } : several(i, request.n);
  const names = SETTINGS.fields;

  it.each<[string, string, Partial<EndpointSolverSettings>, Partial<EndpointSolverSettings>]>([
    ['max_tokens', 'solver.fields.max_tokens: ', {}, { fields: { ...names, max_tokens: 'max_completion_tokens' } }],
    ['seed', 'solver.fields.seed: set it to null', {}, { fields: { ...names, seed: null } }],
    ['seed', 'solver.fields.seed: set it to null', {}, { fields: { ...names, seed: 'random_seed' } }],
    ['temperature', 'solver.temperature: ', {}, { fields: { ...names, temperature: null } }],
    ['stop', 'solver.stops: ', { stops: ['END'] }, { stops: [] }],
    ['top_k', 'solver.body.top_k: drop', { body: { top_k: 20 } }, {}],
    ['n', 'solver.samples: set it to single', { samples: 'together' }, { samples: 'single' }],
    ['n', 'solver.samples: set it to single', { samples: 'together' }, { fields: { ...names, n: null } }],
  ])('is a setting to change, which is said at once: %s, %s', async (field, advice, wrong, right) => {
    const server = await startChatServer(
      refusing(field, { message: `Unsupported parameter: '${field}' is not supported with this model.`, param: field }),
    );
    const attempt = (await open(server.url, wrong)).attempt(['a', 'b', 'c'], 2, 1);
    await expect(attempt).rejects.toThrow(UserError);
    await expect(attempt).rejects.toThrow(advice);
    await expect(attempt).rejects.toThrow(`refuses every request, status 400: Unsupported parameter: '${field}'`);
    expect(server.requests.length).toBeLessThanOrEqual(7);
    const attempts = await (await open(server.url, right)).attempt(['a', 'b', 'c'], 2, 1);
    expect(attempts.flat().every(({ status }) => status === 'answered')).toBe(true);
  });

  it('is named by its location too, and by its value', async () => {
    const detail = [{ type: 'extra_forbidden', loc: ['body', 'seed'], msg: 'Extra inputs are not permitted' }];
    const server = await startChatServer(() => ({ kind: 'status', status: 422, text: JSON.stringify({ detail }) }));
    await expect((await open(server.url)).attempt(['a'], 2, 1)).rejects.toThrow(
      /^solver\.fields\.seed: .*\(http.* refuses every request, status 422: body: seed: Extra inputs are not permitted\)$/,
    );
    const message = 'max_tokens is too large: 100000. This model supports at most 16384 completion tokens.';
    const small = await startChatServer(refusing('max_tokens', { message, param: 'max_tokens' }));
    await expect((await open(small.url)).attempt(['a'], 2, 1)).rejects.toThrow(/^solver\.maxNewTokens: lower it/);
  });

  it('of one question alone is that question’s error', async () => {
    const server = await startChatServer((request, i) =>
      request.messages[0]!.content === 'odd'
        ? { kind: 'status', status: 400, text: '{"error":{"message":"seed is invalid","param":"seed"}}' }
        : several(i, request.n),
    );
    const attempts = await (await open(server.url)).attempt(['odd', 'a'], 2, 1);
    expect(attempts.map((own) => own[0]!.status)).toEqual(['error', 'answered']);
  });

  it('is found out at the start by a server that lists no models, with the field’s own name', async () => {
    const server = await startChatServer(refusing('max_tokens', { message: 'no', param: 'max_tokens' }), () => ({
      kind: 'status',
      status: 404,
    }));
    await open(server.url, { fields: { ...names, max_tokens: 'max_completion_tokens', seed: null } });
    expect(server.requests[0]).toEqual({
      ...PLAIN,
      model: 'm',
      messages: [{ role: 'user', content: '1' }],
      temperature: 0.7,
      max_completion_tokens: 16,
      stream: false,
    });
  });
});

describe('what is kept', () => {
  it('is every response as it comes, and is not asked for again', async () => {
    const server = await startChatServer((request, i) => several(i, i === 0 ? 3 : request.n));
    const keeper = memory();
    const solver = await open(server.url, { concurrency: 1 });
    const first = await solver.attempt(['a', 'b'], 4, 1, { keeper });
    expect(server.requests.map(({ n = 1 }) => n)).toEqual([4, 4, 1]);
    const usage = {
      requests: 1,
      retries: 0,
      promptTokens: 10,
      completionTokens: 9,
      unmetered: 0,
      cutOff: 0,
      empty: 0,
      refused: 0,
    };
    expect(keeper.responses.get(0)![0]).toEqual({
      round: 0,
      attempts: [0, 1, 2].map((place) => ({
        answer: `0.${place}`,
        status: 'answered',
        seed: expect.any(Number),
        draw: place,
        place,
      })),
      usage,
    });
    const asked = server.requests.length;
    const meter = new UsageMeter();
    expect(await solver.attempt(['a', 'b'], 4, 1, { keeper, meter })).toEqual(first);
    expect(server.requests).toHaveLength(asked);
    expect(meter.total.requests).toBe(0);
  });

  it.each(['together', 'single'] as const)(
    'leaves the rest to be asked for as it would have been: %s',
    async (samples) => {
      // Answers that follow from the seed alone.
      const server = await startChatServer((request) => ({
        kind: 'choices',
        choices: Array.from({ length: Math.min(2, request.n ?? 1) }, (_, i) => ({
          content: `${request.seed}.${i}`,
          finish: 'stop',
        })),
      }));
      const whole = memory();
      const solver = await open(server.url, { samples });
      const attempts = await solver.attempt(['a'], 5, 1, { keeper: whole });
      const [first, ...others] = whole.responses.get(0)!;
      expect(others).toHaveLength(samples === 'single' ? 4 : 2);
      const broken = memory();
      broken.keep(0, first!);
      const asked = server.requests.length;
      expect(await solver.attempt(['a'], 5, 1, { keeper: broken })).toEqual(attempts);
      expect(server.requests).toHaveLength(asked + others.length);
    },
  );

  it('includes that a question has no room', async () => {
    const server = await startChatServer((request, i) =>
      request.messages[0]!.content === 'long' ? tooLong : several(i, request.n),
    );
    const solver = await open(server.url);
    const keeper = memory();
    const first = await solver.attempt(['long', 'a'], 2, 1, { keeper });
    const asked = server.requests.length;
    expect(await solver.attempt(['long', 'a'], 2, 1, { keeper })).toEqual(first);
    expect(server.requests).toHaveLength(asked);
  });
});

describe('whoever waits is told', () => {
  it('how many questions are done, and what is waited for', async () => {
    const server = await startChatServer((request, i) =>
      i === 1 ? { kind: 'status', status: 429, headers: { 'retry-after': '1.8' } } : several(i, request.n),
    );
    const said: [number, string | undefined][] = [];
    const solver = await open(server.url, { concurrency: 1 });
    await solver.attempt(['a', 'b'], 1, 1, { onProgress: (...told) => said.push(told) });
    expect(said[0]).toEqual([1, 'waiting 1 s: status 429']);
  });

  it('that the endpoint does not answer at the start, after a limit of its own', async () => {
    const server = await startChatServer(
      () => refused,
      () => ({ kind: 'hang' }),
    );
    await expect(open(server.url, { timeoutSeconds: 600 }, { checkSeconds: 0.1 })).rejects.toThrow(
      `solver.endpoint: ${server.url} cannot be reached: no whole response within 0.1 s`,
    );
  });
});

describe('an account', () => {
  it('that grows beyond the safe integers is unmetered, not wrong', () => {
    const meter = new UsageMeter();
    for (let i = 0; i < 3; i++) meter.add({ promptTokens: Number.MAX_SAFE_INTEGER, completionTokens: 1 });
    expect(meter.total).toMatchObject({ promptTokens: Number.MAX_SAFE_INTEGER, completionTokens: 3, unmetered: 2 });
  });

  it('adds up tokens, requests and retries, and prices them', async () => {
    const server = await startChatServer((request, i) => {
      if (i === 0) return { kind: 'status', status: 500 };
      return { ...several(i, request.n), usage: i !== 2 } as Reply;
    });
    const meter = new UsageMeter();
    await (await open(server.url, { concurrency: 1 })).attempt(['a', 'b'], 2, 1, { meter });
    expect(meter.total).toEqual({
      ...NO_USAGE,
      requests: 3,
      retries: 1,
      promptTokens: 10,
      completionTokens: 6,
      unmetered: 1,
    });
    const usage = { ...meter.total, promptTokens: 3_000_000, completionTokens: 500_000 };
    expect(costOf(usage, { prompt: 0.2, completion: 1.6 })).toBeCloseTo(1.4, 12);
  });
});

describe('a wrong setting is told before any work', () => {
  const messageOf = async (endpoint: string, settings: Partial<EndpointSolverSettings> = {}): Promise<string> => {
    const error: unknown = await open(endpoint, settings).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(UserError);
    return (error as UserError).message;
  };

  it('a server that is not there', async () => {
    expect(await messageOf('http://127.0.0.1:9/v1')).toMatch(
      /^solver\.endpoint: http:\/\/127\.0\.0\.1:9\/v1 cannot be reached: .*ECONNREFUSED.*; start its server, or correct the URL$/,
    );
  });

  it('a URL without /v1, and one of something else', async () => {
    const server = await startChatServer((request, i) => several(i, request.n));
    expect(await messageOf(server.url.replace('/v1', ''))).toMatch(
      /has no \/chat\/completions; its URL mostly ends in \/v1/,
    );
    const other = await startChatServer(
      () => refused,
      () => ({ kind: 'text', text: '<html>hello</html>' }),
    );
    expect(await messageOf(other.url)).toContain('is no OpenAI-compatible API');
    const moved = await startChatServer(
      () => refused,
      () => ({ kind: 'status', status: 308, headers: { location: 'https://elsewhere/v1' } }),
    );
    expect(await messageOf(moved.url)).toContain('redirects to https://elsewhere/v1; give that');
  });

  it('a key that is refused, missing in the environment, or not set', async () => {
    const server = await startChatServer(
      () => refused,
      () => ({ kind: 'status', status: 401, text: 'no' }),
    );
    vi.stubEnv('ENDPOINT_TEST_KEY', 'secret');
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(await messageOf(server.url, { apiKeyEnv: 'ENDPOINT_TEST_KEY' })).toBe(
      `solver.endpoint: ${server.url} refuses the key in ENDPOINT_TEST_KEY`,
    );
    expect(await messageOf(server.url)).toContain('refuses a request without a key; set solver.apiKeyEnv');
    expect(await messageOf(server.url, { apiKeyEnv: 'NO_SUCH_KEY' })).toBe(
      "solver.apiKeyEnv: the environment has no NO_SUCH_KEY; set it to the endpoint's key",
    );
  });

  it('a model that is not served', async () => {
    const server = await startChatServer((request, i) => several(i, request.n), ['qwen', 'llama']);
    expect(await messageOf(server.url)).toBe(`solver.model: ${server.url} does not serve m; it serves qwen, llama`);
    const unlisted = await startChatServer(
      () => ({ kind: 'status', status: 404, text: '{"error":{"message":"The model `m` does not exist."}}' }),
      () => ({ kind: 'status', status: 404 }),
    );
    expect(await messageOf(unlisted.url)).toContain('does not serve m (status 404: The model `m` does not exist.)');
  });

  it('a key refused in the middle ends the work at once', async () => {
    const server = await startChatServer((request, i) =>
      i < 3 ? several(i, request.n) : { kind: 'status', status: 401 },
    );
    const solver = await open(server.url, { concurrency: 1 });
    await expect(solver.attempt(Array.from({ length: 50 }, String), 1, 1)).rejects.toThrow(UserError);
    expect(server.requests.length).toBeLessThan(8);
  });
});
