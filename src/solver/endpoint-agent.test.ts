import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { startChatServer, type ChatServer } from '../../tests/chat-server.js';
import { withoutSeeds, type SolverWithoutSeeds } from '../../tests/without-seeds.js';
import { UserError } from '../errors.js';
import { openEndpointSolver } from './endpoint-solver.js';

const PROXY_VARIABLES = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'no_proxy'];
/** A name that only the proxy resolves. */
const BEHIND = 'http://models.invalid/v1';

beforeEach(() => {
  for (const name of PROXY_VARIABLES) vi.stubEnv(name, undefined);
  onTestFinished(() => void vi.unstubAllEnvs());
});

/** Passes requests on to the server, whatever host they are for, and tunnels nothing. */
async function startProxy(server: ChatServer) {
  const [asked, tunnels]: [string[], string[]] = [[], []];
  let connections = 0;
  const proxy = createServer((incoming, response) => {
    asked.push(incoming.url!);
    const { method, headers } = incoming;
    const onward = request(
      { host: '127.0.0.1', port: new URL(server.url).port, path: new URL(incoming.url!).pathname, method, headers },
      (answer) => {
        response.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(response);
      },
    );
    incoming.pipe(onward);
    response.on('close', () => onward.destroy());
    onward.on('error', () => response.destroy());
  });
  proxy.on('connection', () => connections++);
  proxy.on('connect', (tunnel, socket) => {
    tunnels.push(tunnel.url!);
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const { port } = proxy.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, asked, tunnels, connections: () => connections };
}

async function open(endpoint: string, timeoutSeconds = 5): Promise<SolverWithoutSeeds> {
  const fields = { max_tokens: 'max_tokens', n: 'n', seed: 'seed', temperature: 'temperature' };
  const chat = { model: 'm', temperature: 1, maxNewTokens: 8, stops: [], system: '', body: {}, fields };
  const settings = { ...chat, apiKeyEnv: null };
  const solver = await openEndpointSolver(
    { ...settings, endpoint, concurrency: 3, timeoutSeconds, retries: 2, waitSeconds: 0, samples: 'auto' },
    { first: 2, longest: 20, checkSeconds: 5 },
  );
  onTestFinished(() => solver.close());
  return withoutSeeds(solver);
}

const RIGHT = { kind: 'choices', choices: [{ content: 'right', finish: 'stop' }], dripMs: 2 } as const;

describe('the environment’s proxy', () => {
  it('is asked in the endpoint’s place, by no more connections than there may be', async () => {
    const server = await startChatServer(() => RIGHT);
    const proxy = await startProxy(server);
    vi.stubEnv('HTTP_PROXY', proxy.url);
    const attempts = await (await open(BEHIND)).attempt(Array.from({ length: 9 }, String), 1, 1);
    expect(attempts.flat().every(({ answer }) => answer === 'right')).toBe(true);
    expect(new Set(proxy.asked)).toEqual(new Set([`${BEHIND}/models`, `${BEHIND}/chat/completions`]));
    expect(proxy.asked).toHaveLength(10);
    expect(server.peak()).toBe(3);
    expect(proxy.connections()).toBeLessThanOrEqual(3);
  });

  it('is asked for a tunnel to an endpoint of https', async () => {
    const proxy = await startProxy(await startChatServer(() => RIGHT));
    vi.stubEnv('HTTPS_PROXY', proxy.url);
    await expect(open('https://models.invalid/v1')).rejects.toThrow(/cannot be reached: .*403/);
    expect(proxy.tunnels).toEqual(['models.invalid:443']);
  });

  it('leaves the time limit of a request as it is', async () => {
    const server = await startChatServer((_, i) => (i === 0 ? { kind: 'hang' } : RIGHT));
    vi.stubEnv('http_proxy', (await startProxy(server)).url.replace('http://', ''));
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

  it.each(['proxy:3128:1', 'socks5://proxy:1080'])('must be one for HTTP: %s', async (proxy) => {
    vi.stubEnv('HTTP_PROXY', proxy);
    const opening = open(BEHIND);
    await expect(opening).rejects.toThrow(UserError);
    await expect(opening).rejects.toThrow('HTTP_PROXY is not the address of a proxy for HTTP');
  });

  it('that is not there is told', async () => {
    vi.stubEnv('HTTP_PROXY', 'http://127.0.0.1:9');
    await expect(open(BEHIND)).rejects.toThrow(/cannot be reached: .*ECONNREFUSED/);
  });
});
