import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { startChatServer, type ChatServer } from '../../tests/chat-server.js';
import { UserError } from '../errors.js';
import { openEndpointSolver } from './endpoint-solver.js';
import type { Solver } from './solver.js';

const PROXY_VARIABLES = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'no_proxy'];
/** A name that only the proxy resolves. */
const BEHIND = 'http://models.invalid/v1';

beforeEach(() => {
  for (const name of PROXY_VARIABLES) vi.stubEnv(name, undefined);
  onTestFinished(() => void vi.unstubAllEnvs());
});

/** Tunnels to the server, whatever host it is asked for. */
async function startProxy(server: ChatServer) {
  const asked: string[] = [];
  let [open, peak] = [0, 0];
  const proxy = createServer((_, response) => void response.writeHead(405).end());
  proxy.on('connect', (request, socket) => {
    asked.push(request.url!);
    peak = Math.max(peak, ++open);
    const onward = connect(Number(new URL(server.url).port), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      socket.pipe(onward).pipe(socket);
    });
    socket.on('close', () => {
      open--;
      onward.destroy();
    });
    for (const end of [socket, onward]) end.on('error', () => socket.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void proxy.close());
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, asked, peak: () => peak };
}

async function open(endpoint: string, timeoutSeconds = 5): Promise<Solver> {
  const settings = { model: 'm', temperature: 1, maxNewTokens: 8, stops: [], system: '', body: {}, apiKeyEnv: null };
  const solver = await openEndpointSolver(
    { ...settings, endpoint, concurrency: 3, timeoutSeconds, retries: 2, samples: 'auto' },
    { first: 2, longest: 20, checkSeconds: 5 },
  );
  onTestFinished(() => solver.close());
  return solver;
}

const RIGHT = { kind: 'choices', choices: [{ content: 'right', finish: 'stop' }], dripMs: 2 } as const;

describe('the environment’s proxy', () => {
  it('is asked for a tunnel to the endpoint, by no more connections than there may be', async () => {
    const server = await startChatServer(() => RIGHT);
    const proxy = await startProxy(server);
    vi.stubEnv('HTTP_PROXY', proxy.url);
    const attempts = await (await open(BEHIND)).attempt(Array.from({ length: 9 }, String), 1, 1);
    expect(attempts.flat().every(({ answer }) => answer === 'right')).toBe(true);
    expect(new Set(proxy.asked)).toEqual(new Set(['models.invalid:80']));
    expect(server.peak()).toBe(3);
    expect(proxy.peak()).toBe(3);
  });

  it('leaves the time limit of a request as it is', async () => {
    const server = await startChatServer((_, i) => (i === 0 ? { kind: 'hang' } : RIGHT));
    vi.stubEnv('http_proxy', (await startProxy(server)).url);
    const attempts = await (await open(BEHIND, 0.2)).attempt(['a'], 1, 1);
    expect(attempts).toEqual([[{ answer: 'right', status: 'answered' }]]);
    expect(server.requests).toHaveLength(2);
  });

  it('is not asked for what NO_PROXY names, nor for this machine', async () => {
    const server = await startChatServer(() => RIGHT);
    const proxy = await startProxy(server);
    vi.stubEnv('HTTP_PROXY', proxy.url);
    expect(await (await open(server.url)).attempt(['a'], 1, 1)).toHaveLength(1);
    const named = server.url.replace('127.0.0.1', 'localhost');
    expect(await (await open(named)).attempt(['a'], 1, 1)).toHaveLength(1);
    vi.stubEnv('NO_PROXY', 'other.org,.invalid');
    await expect(open(BEHIND)).rejects.toThrow('cannot be reached');
    expect(proxy.asked).toEqual([]);
  });

  it('must be a URL', async () => {
    vi.stubEnv('HTTP_PROXY', 'proxy:3128:1');
    const opening = open(BEHIND);
    await expect(opening).rejects.toThrow(UserError);
    await expect(opening).rejects.toThrow('names no proxy');
  });

  it('that is not there is told', async () => {
    vi.stubEnv('HTTP_PROXY', 'http://127.0.0.1:9');
    await expect(open(BEHIND)).rejects.toThrow(/cannot be reached: .*ECONNREFUSED/);
  });
});
