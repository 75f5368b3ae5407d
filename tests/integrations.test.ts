/** The trainers' client of the probe reward (scripts/integrations) against a server that fails in every way in which servers do. */
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { PACKAGE } from './propel-process.js';

interface Asked {
  readonly path: string;
  /** Names the request, so that one that is sent again is known. */
  readonly name: string;
  readonly session: string | undefined;
  readonly items: readonly { readonly completion: string; readonly cut?: boolean }[];
}

type Handler = (asked: Asked, request: IncomingMessage, response: ServerResponse) => void;

let server: Server | null = null;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

/** A server that answers its first requests by these, and whatever follows as `propel serve` does. */
async function serving(...first: Handler[]): Promise<{ url: string; asked: Asked[] }> {
  const asked: Asked[] = [];
  server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => {
      const { items } = JSON.parse(text) as Asked;
      const { 'idempotency-key': name, 'x-propel-session': session } = request.headers as Record<string, string>;
      const one = { path: request.url!, name: name!, session, items };
      asked.push(one);
      (first.shift() ?? judged)(one, request, response);
    });
  });
  await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

/** The reward of `12` is 12; what begins with `lost` cannot be judged. */
const judged: Handler = ({ items }, _request, response) => {
  response.end(JSON.stringify({ results: items.map(({ completion }) => resultOf(completion)) }));
};
function resultOf(completion: string): unknown {
  if (completion.startsWith('lost')) return { status: 'error', reward: null, outcome: 'failure', detail: 'no sandbox' };
  return { status: 'valid', reward: Number(completion), outcome: 'ok', detail: '', logits: {}, probability: 0.5 };
}

const status =
  (code: number, headers: Record<string, string> = {}): Handler =>
  (_asked, _request, response) =>
    response.writeHead(code, headers).end('{"error": {"message": "in words"}}');
const cut: Handler = (_asked, _request, response) => {
  response.writeHead(200, { 'content-length': '500' }).write('{"results": [');
  setTimeout(() => response.destroy(), 50);
};
const short: Handler = (_asked, _request, response) => response.end('{"results": []}');
const noJson: Handler = (_asked, _request, response) => response.end('<html>');
const reset: Handler = (_asked, request) => request.socket.destroy();

async function python(program: string, environment: Record<string, string>): Promise<{ out: unknown; errors: string }> {
  const child = spawn(
    'python3',
    ['-c', `import asyncio, json, time\nimport propel_reward as p\np.time.sleep = lambda s: None\n${program}`],
    {
      cwd: join(PACKAGE, 'scripts', 'integrations'),
      env: { PATH: process.env['PATH'], PYTHONDONTWRITEBYTECODE: '1', ...environment },
    },
  );
  let [out, errors] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const code = await new Promise((resolve) => child.on('close', resolve));
  if (code !== 0) throw new Error(errors);
  return { out: JSON.parse(out), errors };
}

describe('the client', () => {
  it.each<[string, Handler]>([
    ['408', status(408)],
    ['429', status(429)],
    ['500', status(500)],
    ['503', status(503, { 'retry-after': '1' })],
    ['504', status(504)],
    ['an answer that is cut', cut],
    ['an answer with too few results', short],
    ['an answer that is no JSON', noJson],
    ['a connection that is reset', reset],
  ])('asks again after %s', async (_name, fault) => {
    const { url, asked } = await serving(fault, fault);
    const { out, errors } = await python('print(json.dumps(p.propel_probe(completions=["1", "2"])))', {
      PROPEL_REWARD_URL: url,
    });
    expect(out).toEqual([1, 2]);
    expect(asked).toHaveLength(3);
    // It is one request, so that its tasks are no repeats of themselves.
    expect(new Set(asked.map(({ name }) => name)).size).toBe(1);
    expect(errors).toMatch(/^propel: .*; asking again for 600 s\n$/);
  });

  it('asks again only for what is missing, and gives no number to what cannot be judged', async () => {
    const { url, asked } = await serving();
    const program = `f = p.ProbeReward(patience=8)\nprint(json.dumps(f(completions=["1", "lost", "3"])))`;
    const { out, errors } = await python(program, { PROPEL_REWARD_URL: url });
    expect(out).toEqual([1, null, 3]);
    expect(asked[0]!.items.map(({ completion }) => completion)).toEqual(['1', 'lost', '3']);
    expect(asked.length).toBeGreaterThan(2);
    expect(asked.slice(1).every(({ items }) => items.length === 1)).toBe(true);
    expect(new Set(asked.map(({ name }) => name)).size).toBe(asked.length);
    expect(errors).toContain("propel: a sample has no reward: failure: no sandbox: 'lost'");
    const verl = python(`asyncio.run(p.compute_score("", "lost", "", patience=3))`, { PROPEL_REWARD_URL: url });
    await expect(verl).rejects.toThrow('RuntimeError: propel: the sample has no reward');
  });

  it('names its run, and says which completions have no end', async () => {
    const { url, asked } = await serving();
    const program = `f = p.ProbeReward(ends=(2, 3))\nids = [[5, 2], [5, 6], []]\nprint(json.dumps(f(completions=["1", "2", "3"], completion_ids=ids)))`;
    await python(program, { PROPEL_REWARD_URL: url, PROPEL_REWARD_SESSION: 'run 1' });
    await python('print(json.dumps(p.ProbeReward(session="run 2")(completions=["1"])))', {
      PROPEL_REWARD_URL: url,
      PROPEL_REWARD_SESSION: 'run 1',
    });
    expect(asked.map(({ session }) => session)).toEqual(['run 1', 'run 2']);
    expect(asked[0]!.items).toEqual([
      { completion: '1' },
      { completion: '2', cut: true },
      { completion: '3', cut: true },
    ]);
  });

  it('sends big batches in parts', async () => {
    const { url, asked } = await serving();
    const { out } = await python('print(json.dumps(p.propel_probe(completions=[str(i) for i in range(300)])))', {
      PROPEL_REWARD_URL: url,
    });
    expect(out).toEqual(Array.from({ length: 300 }, (_, i) => i));
    expect(asked.map(({ items }) => items.length)).toEqual([128, 128, 44]);
  });

  it.each([400, 401, 413])('is told of a refusal at once: %i', async (code) => {
    const { url, asked } = await serving(status(code));
    const asking = python('p.propel_probe(completions=["1"])', { PROPEL_REWARD_URL: url });
    await expect(asking).rejects.toThrow(new RegExp(`RuntimeError: propel: .*/v1/reward answers ${code}: .*in words`));
    expect(asked).toHaveLength(1);
  });

  it('gives up after its patience, with the last trouble', async () => {
    const { url } = await serving(...Array<Handler>(50).fill(status(503)));
    const asking = python('p.propel_probe(completions=["1"])', { PROPEL_REWARD_URL: url, PROPEL_REWARD_PATIENCE: '8' });
    await expect(asking).rejects.toThrow(/RuntimeError: propel: no reward after \d+ tries in 8 s: .* answers 503/);
  });

  it('goes to this machine directly, whatever proxy there is', async () => {
    const { url } = await serving();
    const proxy = 'http://127.0.0.1:1';
    const { out } = await python('print(json.dumps(p.propel_probe(completions=["7"])))', {
      PROPEL_REWARD_URL: url,
      http_proxy: proxy,
      HTTP_PROXY: proxy,
      all_proxy: proxy,
    });
    expect(out).toEqual([7]);
  });

  it('leaves the loop free while it waits', async () => {
    const slow: Handler = (asked, request, response) => void setTimeout(() => judged(asked, request, response), 600);
    const { url } = await serving(slow, slow, slow, slow);
    const { out } = await python(
      `async def all():\n    began = time.monotonic()\n    scores = await asyncio.gather(*[p.compute_score("", str(i), "") for i in range(4)])\n` +
        `    return [[s["score"] for s in scores], time.monotonic() - began]\nprint(json.dumps(asyncio.run(all())))`,
      { PROPEL_REWARD_URL: url },
    );
    const [scores, seconds] = out as [number[], number];
    expect(scores).toEqual([0, 1, 2, 3]);
    // One after the other they would take 2.4 s.
    expect(seconds).toBeLessThan(2);
  });
});
