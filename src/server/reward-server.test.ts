import { request as httpRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, describe, onTestFinished } from 'vitest';
import { startRewardServer, type RunningServer, type ServerSettings } from './reward-server.js';
import type { Checked, RewardScorer } from './scorer.js';

const SETTINGS: ServerSettings = {
  host: '127.0.0.1',
  port: 0,
  apiKey: null,
  maxBodyBytes: 1 << 20,
  deadlineMs: 5000,
  itemTimeoutMs: 2000,
  maxWaiting: 10_000,
  repeatWindow: 0,
  log: () => {},
};
const TASK = {
  prompts: { code_o: '# output\n' },
  chat: 'auto',
  stops: ['\n'],
  maxNewTokens: 80,
  temperature: 1,
  band: { min: 1, max: 3, of: 8 },
  reward: { clip: 2.5, invalid: -3 },
};

interface FakeScorer extends RewardScorer {
  readonly checked: string[];
  readonly batches: number[];
  isClosed: boolean;
}

/** `valid 3` has the logit 3; `invalid`, `slow`, `loop`, `hang` and `broken` are what they say. */
function fakeScorer(kinds: readonly string[] = ['code_o']): FakeScorer {
  const checked: string[] = [];
  const batches: number[] = [];
  const invalid = (outcome: string): Checked => ({ valid: false, outcome, detail: 'so', text: null });
  return {
    kinds,
    probes: ['p0', 'p1'],
    specialTokens: ['(end)'],
    about: { reference: 'fake' },
    task: TASK,
    parallel: 1,
    checked,
    batches,
    isClosed: false,
    async check(_, completion) {
      checked.push(completion);
      if (completion.startsWith('slow')) await sleep(50);
      if (completion.startsWith('loop')) return sleep(100, invalid('timeout'));
      if (completion.startsWith('hang')) await sleep(400);
      if (completion.startsWith('broken')) throw new Error('the sandbox keeps failing');
      if (completion.startsWith('invalid')) return invalid('unparsable');
      return { valid: true, outcome: 'ok', detail: '', text: completion };
    },
    async score(texts) {
      batches.push(texts.length);
      if (texts.includes('unscorable')) throw new Error('no such tokens');
      await sleep(10);
      return texts.map((text) => {
        const logit = Number(text.split(' ')[1] ?? 0);
        return [logit, logit + 1];
      });
    },
    reward: (logits) => (logits === null ? -3 : Math.min(...logits)),
    bandProbability: (logits) => 1 / (1 + Math.exp(-Math.min(...logits))),
    async close() {
      this.isClosed = true;
    },
  };
}

async function start(settings: Partial<ServerSettings> = {}, scorer = fakeScorer()): Promise<RunningServer> {
  const server = await startRewardServer(scorer, { ...SETTINGS, ...settings });
  onTestFinished(() => server.stop(0));
  return server;
}

interface Answered {
  readonly status: number;
  // Each test knows what it asked for.
  readonly body: { [field: string]: unknown } & { readonly error?: { readonly message: string } };
  readonly headers: Headers;
}

async function ask(url: string, body?: unknown, init: RequestInit = {}): Promise<Answered> {
  const post =
    body === undefined ? {} : { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) };
  const response = await fetch(url, { ...post, ...init });
  const text = await response.text();
  const isJson = response.headers.get('content-type') === 'application/json';
  return {
    status: response.status,
    body: (isJson ? JSON.parse(text) : { text }) as Answered['body'],
    headers: response.headers,
  };
}

const own = (...completions: string[]) => ({ items: completions.map((completion) => ({ completion })) });

describe('OpenRLHF', () => {
  it('gets rewards, scores in 0 to 1 and logs, one a sample', async () => {
    const scorer = fakeScorer();
    const { url } = await start({}, scorer);
    const query = ['ask:valid 2<|im_end|>(end)', '(end)<s> ask:\ninvalid'];
    const { status, body } = await ask(`${url}/get_reward`, {
      query,
      prompts: ['ask:', 'ask:\n'],
      labels: [null, '7'],
    });
    expect(status).toBe(200);
    expect(scorer.checked).toEqual(['valid 2', 'invalid']);
    const probability = 1 / (1 + Math.exp(-2));
    expect(body).toEqual({
      rewards: [2, -3],
      scores: [probability, 0],
      extra_logs: { valid: [1, 0], repeat: [0, 0], band_probability: [probability, 0] },
    });
  });

  it('may send a batch of any size, without prompts and labels, and one of nothing', async () => {
    const { url } = await start();
    expect((await ask(`${url}/get_reward`, { query: [] })).body).toEqual({
      rewards: [],
      scores: [],
      extra_logs: { valid: [], repeat: [], band_probability: [] },
    });
    const query = Array.from({ length: 500 }, (_, i) => `valid ${i}`);
    const { body } = await ask(`${url}/get_reward`, { query, prompts: null, labels: [] });
    expect(body['rewards']).toEqual(query.map((_, i) => i));
  });

  it('is told to ask again where a sample has no reward: status 503 or 504, never a number', async () => {
    const scorer = fakeScorer();
    const { url } = await start({ deadlineMs: 150 }, scorer);
    const failed = await ask(`${url}/get_reward`, { query: ['valid 1', 'broken'] });
    expect(failed.status).toBe(503);
    expect(failed.body.error!.message).toBe('1 of 2 samples have no reward: failure: the sandbox keeps failing');
    const late = await ask(`${url}/get_reward`, {
      query: ['valid 1', 'slow 2', 'slow 3', 'slow 4', 'slow 5', 'slow 6', 'slow 7', 'slow 8'],
    });
    expect(late.status).toBe(504);
    expect(late.body.error!.message).toMatch(
      /^\d of 8 samples have no reward: deadline: not done within the request's 0\.15 s$/,
    );
    // Asked again it comes to an end, since what was done is kept.
    const asked = () => ask(`${url}/get_reward`, { query: ['valid 1', 'slow 2', 'slow 3'] });
    let again = await asked();
    for (let tries = 1; again.status === 504 && tries < 50; tries++) again = await asked();
    expect(again.body['rewards']).toEqual([1, 2, 3]);
    expect(scorer.checked.filter((text) => text.endsWith('valid 1'))).toHaveLength(1);
    const before = scorer.checked.length;
    expect((await asked()).body['rewards']).toEqual([1, 2, 3]);
    expect(scorer.checked.length).toBe(before);
  });

  it('names the type of a task in its label where several are served', async () => {
    const { url } = await start({}, fakeScorer(['code_o', 'code_i']));
    expect((await ask(`${url}/get_reward`, { query: ['valid 1'], labels: ['code_i'] })).body['rewards']).toEqual([1]);
    const unnamed = await ask(`${url}/get_reward`, { query: ['valid 1'], labels: ['7'] });
    expect(unnamed.status).toBe(400);
    expect(unnamed.body.error!.message).toBe('labels.0: name the type of task, one of code_o, code_i');
  });
});

describe('our own request', () => {
  it('gets one of three for each item', async () => {
    const { url } = await start();
    const { body } = await ask(`${url}/v1/reward`, own('valid 2', 'invalid', 'broken', 'valid 2', 'unscorable'));
    const valid = {
      status: 'valid',
      reward: 2,
      outcome: 'ok',
      detail: '',
      logits: { p0: 2, p1: 3 },
      probability: expect.any(Number),
    };
    const none = { logits: null, probability: null };
    expect(body['results']).toEqual([
      valid,
      { status: 'invalid', reward: -3, outcome: 'unparsable', detail: 'so', ...none },
      { status: 'error', reward: null, outcome: 'failure', detail: 'the sandbox keeps failing', ...none },
      valid,
      { status: 'error', reward: null, outcome: 'failure', detail: 'no such tokens', ...none },
    ]);
    expect((await ask(`${url}/v1/reward`, own())).body).toEqual({ results: [] });
  });

  it('gets the errors of its deadline by its deadline, and what was done before', async () => {
    const { url } = await start();
    const started = performance.now();
    const completions = ['valid 1', ...Array.from({ length: 100 }, (_, i) => `slow ${i}`)];
    const { body } = await ask(`${url}/v1/reward`, { ...own(...completions), deadlineMs: 300 });
    expect(performance.now() - started).toBeLessThan(1500);
    const results = body['results'] as { status: string; outcome: string }[];
    expect(results).toHaveLength(101);
    expect(results[0]!.status).toBe('valid');
    expect(results.at(-1)).toMatchObject({ status: 'error', outcome: 'deadline', reward: null });
  });

  it('is not held up by an item whose check hangs', async () => {
    const { url } = await start({ itemTimeoutMs: 100 });
    const started = performance.now();
    const { body } = await ask(`${url}/v1/reward`, own('hang', 'valid 1'));
    expect(performance.now() - started).toBeLessThan(380);
    expect(body['results']).toMatchObject([
      { status: 'error', outcome: 'item_timeout', detail: 'its check took longer than 0.1 s' },
      { status: 'valid', reward: 1 },
    ]);
  });

  it('is scored together with what others ask', async () => {
    const scorer = fakeScorer();
    const { url } = await start({}, scorer);
    const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => ask(`${url}/v1/reward`, own(`valid ${i}`))));
    expect(answers.map(({ body }) => (body['results'] as { reward: number }[])[0]!.reward)).toEqual([
      ...Array(40).keys(),
    ]);
    expect(scorer.batches.reduce((a, b) => a + b, 0)).toBe(40);
    expect(scorer.batches.length).toBeLessThan(30);
  });

  it('is served while another asks for a thousand endless loops', async () => {
    const { url } = await start({ deadlineMs: 2000 });
    const hostile = ask(`${url}/v1/reward`, own(...Array.from({ length: 1000 }, (_, i) => `loop ${i}`)));
    await sleep(300);
    const started = performance.now();
    const honest = await ask(`${url}/v1/reward`, own(...Array.from({ length: 50 }, (_, i) => `valid ${i}`)));
    expect(performance.now() - started).toBeLessThan(1000);
    expect((honest.body['results'] as { status: string }[]).every(({ status }) => status === 'valid')).toBe(true);
    const results = (await hostile).body['results'] as { status: string; outcome: string }[];
    expect(results.filter(({ outcome }) => outcome === 'timeout').length).toBeGreaterThan(5);
    expect(results.filter(({ outcome }) => outcome === 'deadline').length).toBeGreaterThan(900);
  });

  it('of a client that has left is not worked on', async () => {
    const scorer = fakeScorer();
    const { url } = await start({}, scorer);
    const controller = new AbortController();
    const left = ask(`${url}/v1/reward`, own(...Array.from({ length: 100 }, (_, i) => `slow ${i}`)), {
      signal: controller.signal,
    });
    await sleep(150);
    controller.abort();
    await expect(left).rejects.toThrow('aborted');
    await sleep(100);
    const checked = scorer.checked.length;
    await sleep(150);
    expect(scorer.checked.length).toBe(checked);
  });
});

describe('what is refused', () => {
  it('a body that is too large, also when it comes without a length', async () => {
    const { url } = await start();
    const large = await ask(`${url}/v1/reward`, 'x'.repeat(3 << 20));
    expect(large.status).toBe(413);
    expect(large.body.error!.message).toBe('a body of more than 1048576 bytes');
    const chunked = await new Promise<number>((resolve, reject) => {
      const request = httpRequest(`${url}/get_reward`, { method: 'POST' }, (response) => {
        response.resume();
        resolve(response.statusCode!);
      });
      request.on('error', reject);
      const send = (left: number): void => {
        if (left === 0) return void request.end();
        return void request.write('y'.repeat(1 << 16), () => send(left - 1));
      };
      send(48);
    });
    expect(chunked).toBe(413);
    expect((await ask(`${url}/health`)).status).toBe(200);
  });

  it.each<[string, unknown, string]>([
    ['text that is not JSON', '{"query": [', 'the body is not JSON: '],
    ['a list', [], 'the body: give a map, not a list'],
    ['no query', { prompts: [] }, 'query: missing; give a list'],
    ['a query that is one text', { query: 'valid 1' }, 'query: give a list, not "valid 1"'],
    ['other prompts than queries', { query: ['a'], prompts: ['a', 'b'] }, 'prompts has 2 entries, query has 1'],
    ['a query without its prompt', { query: ['a'], prompts: ['b'] }, 'query.0 does not begin with prompts.0'],
  ])('%s', async (_, sent, message) => {
    const { url } = await start();
    const { status, body } = await ask(`${url}/get_reward`, sent);
    expect(status).toBe(400);
    expect(body.error!.message).toContain(message);
  });

  it('an unknown route, another method, a packed body, an unknown field or type', async () => {
    const { url } = await start();
    const lost = await ask(`${url}/rewards`, {});
    expect(lost.status).toBe(404);
    expect(lost.body.error!.message).toBe(
      'no such route; there are /get_reward, /v1/reward, /v1/info, /health, /metrics',
    );
    const read = await ask(`${url}/get_reward`);
    expect(read.status).toBe(405);
    expect(read.headers.get('allow')).toBe('POST');
    const packed = await ask(`${url}/get_reward`, '{}', { headers: { 'content-encoding': 'gzip' } });
    expect(packed.body.error!.message).toBe('content-encoding gzip: send it plain');
    const strange = await ask(`${url}/v1/reward`, { items: [{ completion: 'a', type: 'code_x' }] });
    expect(strange.body.error!.message).toBe('items.0.type: code_x is none of code_o');
    expect((await ask(`${url}/v1/reward`, { items: [], tasks: [] })).status).toBe(400);
  });

  it('whoever lacks the key, on every route but health', async () => {
    const { url } = await start({ apiKey: 'se:cret' });
    const reward = (headers: Record<string, string>) => ask(`${url}/v1/reward`, own('valid 1'), { headers });
    for (const headers of [{}, { authorization: 'Bearer secret' }, { authorization: 'Bearer' }, { 'x-api-key': '' }]) {
      const { status, body } = await reward(headers as Record<string, string>);
      expect(status).toBe(401);
      expect(body.error!.message).toBe('the API key is missing or wrong');
    }
    expect((await ask(`${url}/metrics`)).status).toBe(401);
    expect((await ask(`${url}/health`)).status).toBe(200);
    const basic = `Basic ${Buffer.from('any:se:cret').toString('base64')}`;
    for (const headers of [{ authorization: 'Bearer se:cret' }, { 'x-api-key': 'se:cret' }, { authorization: basic }]) {
      expect((await reward(headers as unknown as Record<string, string>)).status).toBe(200);
    }
  });

  it('more than may wait', async () => {
    const { url } = await start({ maxWaiting: 10 });
    const { status, headers } = await ask(
      `${url}/v1/reward`,
      own(...Array.from({ length: 11 }, (_, i) => `valid ${i}`)),
    );
    expect(status).toBe(503);
    expect(headers.get('retry-after')).toBe('5');
  });
});

it('says how it is, and counts what it does', async () => {
  const { url } = await start();
  await ask(`${url}/v1/reward`, own('valid 1', 'invalid', 'broken'));
  expect((await ask(`${url}/health`)).body).toEqual({
    status: 'ok',
    kinds: ['code_o'],
    probes: ['p0', 'p1'],
    reference: 'fake',
    queue: { running: 0, waiting: 0 },
    sessions: 0,
  });
  const { body, headers } = await ask(`${url}/metrics`);
  const text = body['text'] as string;
  expect(headers.get('content-type')).toContain('text/plain; version=0.0.4');
  expect(text).toContain('propel_requests_total{route="/v1/reward",status="200"} 1');
  expect(text).toContain('propel_items_total{status="invalid",outcome="unparsable"} 1');
  expect(text).toContain('propel_items_total{status="error",outcome="failure"} 1');
  expect(text).toContain('propel_score_batch_tasks_count 1');
  expect(text).toContain('propel_queue_items{state="waiting"} 0');
});

describe('repeats', () => {
  const outcomes = async (url: string, completions: readonly string[], headers: Record<string, string> = {}) => {
    const { body } = await ask(url, own(...completions), { headers });
    return (body['results'] as { outcome: string; reward: number | null }[]).map(({ outcome }) => outcome);
  };

  it('of a session are told, in one request and the next, and are invalid', async () => {
    const { url } = await start({ repeatWindow: 100 });
    const { body } = await ask(`${url}/v1/reward`, own('valid 1', 'invalid', 'valid 1', 'invalid'));
    expect(body['results']).toMatchObject([
      { status: 'valid', reward: 1 },
      { status: 'invalid', outcome: 'unparsable' },
      {
        status: 'invalid',
        reward: -3,
        outcome: 'repeat',
        detail: 'the session was paid for this task before',
        logits: null,
        probability: null,
      },
      { status: 'invalid', outcome: 'unparsable' },
    ]);
    const { body: rewards } = await ask(`${url}/get_reward`, { query: ['valid 2', 'valid 1', 'valid 2'] });
    expect(rewards).toMatchObject({ rewards: [2, -3, -3], extra_logs: { valid: [1, 0, 0], repeat: [0, 1, 1] } });
  });

  it('are of a run by the name that it gives in a header or the URL, else of a client', async () => {
    const { url } = await start({ repeatWindow: 100 });
    const to = `${url}/v1/reward`;
    expect(await outcomes(to, ['valid 1'])).toEqual(['ok']);
    expect(await outcomes(to, ['valid 1'], { 'x-propel-session': 'a' })).toEqual(['ok']);
    expect(await outcomes(`${to}?session=b`, ['valid 1'])).toEqual(['ok']);
    expect(await outcomes(`${to}?session=a`, ['valid 1'])).toEqual(['repeat']);
    expect(await outcomes(to, ['valid 1'])).toEqual(['repeat']);
    expect((await ask(`${url}/health`)).body['sessions']).toBe(3);
    const long = await ask(to, own(), { headers: { 'x-propel-session': 'a'.repeat(201) } });
    expect(long.body.error!.message).toBe('x-propel-session: a name of more than 200 characters');
  });

  it('are no requests that are sent again', async () => {
    const { url } = await start({ repeatWindow: 100 });
    const first = { 'idempotency-key': 'first' };
    const batch = ['valid 1', 'valid 2', 'valid 1'];
    for (let times = 0; times < 2; times++) {
      expect(await outcomes(`${url}/v1/reward`, batch, first)).toEqual(['ok', 'ok', 'repeat']);
    }
    expect(await outcomes(`${url}/v1/reward`, ['valid 2'], { 'idempotency-key': 'second' })).toEqual(['repeat']);
  });

  it('are not counted by answers that have no rewards or do not arrive', async () => {
    const { url } = await start({ repeatWindow: 100 });
    const failed = await ask(`${url}/get_reward`, { query: ['valid 1', 'broken'] });
    expect(failed.status).toBe(503);
    const controller = new AbortController();
    const left = ask(`${url}/v1/reward`, own('valid 2', 'hang'), { signal: controller.signal });
    await sleep(200);
    controller.abort();
    await expect(left).rejects.toThrow('aborted');
    await sleep(400);
    expect(await outcomes(`${url}/v1/reward`, ['valid 1', 'valid 2'])).toEqual(['ok', 'ok']);
  });

  it('are paid for where the configuration does not reject them', async () => {
    const { url } = await start({ repeatWindow: 0 });
    expect(await outcomes(`${url}/v1/reward`, ['valid 1', 'valid 1'])).toEqual(['ok', 'ok']);
  });
});

describe('a completion', () => {
  it('that is cut is no task, whatever of it is there', async () => {
    const { url } = await start();
    const items = [
      { completion: 'valid 1', cut: true },
      { completion: 'valid 1', cut: false },
    ];
    const { body } = await ask(`${url}/v1/reward`, { items });
    expect(body['results']).toMatchObject([
      { status: 'invalid', reward: -3, outcome: 'cut_off', detail: 'no end within the greatest length' },
      { status: 'valid', reward: 1 },
    ]);
  });

  it('is read between the special tokens of its beginning and its end', async () => {
    const scorer = fakeScorer();
    const { url } = await start({}, scorer);
    await ask(`${url}/v1/reward`, own('<s> (end)valid 1</s>'));
    await ask(`${url}/get_reward`, { query: ['ask:<|im_start|>valid 2(end)'], prompts: ['ask:'] });
    expect(scorer.checked).toEqual(['valid 1', 'valid 2']);
  });
});

it('tells a trainer what it must know', async () => {
  const { url } = await start({ repeatWindow: 500 });
  expect((await ask(`${url}/v1/info`)).body).toEqual({
    types: ['code_o'],
    ...TASK,
    probes: ['p0', 'p1'],
    reference: 'fake',
    limits: {
      maxBodyBytes: 1 << 20,
      maxCompletionCharacters: 1 << 18,
      deadlineMs: 5000,
      itemTimeoutMs: 2000,
      maxWaiting: 10_000,
    },
    repeatWindow: 500,
  });
});

it('logs what it refuses and what it cannot judge, one line a kind', async () => {
  const lines: string[] = [];
  const { url } = await start({ log: (line) => lines.push(line) });
  for (let i = 0; i < 3; i++) await ask(`${url}/v1/reward?session=a`, { items: 7 });
  await ask(`${url}/v1/reward`, own('valid 1', 'broken'));
  await ask(`${url}/health`);
  expect(lines).toEqual([
    '400 /v1/reward from 127.0.0.1: items: give a list, not 7',
    'not judged /v1/reward from 127.0.0.1: 1 of 2 items, the first by failure: the sandbox keeps failing',
  ]);
});

describe('a server that stops', () => {
  it('lets requests end, takes no more, and closes what it scores with', async () => {
    const scorer = fakeScorer();
    const server = await start({}, scorer);
    const running = ask(`${server.url}/v1/reward`, own('slow 1', 'slow 2'));
    await expect.poll(() => scorer.checked.length).toBeGreaterThan(0);
    const stopping = server.stop(30_000);
    expect((await running).body['results']).toMatchObject([{ reward: 1 }, { reward: 2 }]);
    await stopping;
    expect(scorer.isClosed).toBe(true);
    await expect(ask(`${server.url}/health`)).rejects.toThrow('fetch failed');
  });

  it('answers with errors what does not end in time', async () => {
    const scorer = fakeScorer();
    const server = await start({}, scorer);
    const running = ask(`${server.url}/v1/reward`, own(...Array.from({ length: 100 }, (_, i) => `slow ${i}`)));
    await expect.poll(() => scorer.checked.length, { timeout: 10_000 }).toBeGreaterThan(1);
    await server.stop(100);
    const results = (await running).body['results'] as { status: string; outcome: string }[];
    expect(results[0]!.status).toBe('valid');
    expect(results.at(-1)).toMatchObject({ status: 'error', outcome: 'shutting_down' });
  });
});

it('says that its port is taken', async () => {
  const { url } = await start();
  const scorer = fakeScorer();
  const port = Number(new URL(url).port);
  await expect(startRewardServer(scorer, { ...SETTINGS, port })).rejects.toThrow(
    `cannot listen on 127.0.0.1:${port}: the port is taken; choose another with --port`,
  );
  expect(scorer.isClosed).toBe(true);
});
