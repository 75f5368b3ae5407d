/** A local proxy for HTTP, which knows by name a server that no other name service does. */
import { createServer, request as httpRequest } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface ProxiedRequest {
  readonly method: string;
  /** The whole address, or host and port of a tunnel. */
  readonly target: string;
  readonly headers: IncomingMessage['headers'];
}

export interface FakeProxy {
  /** `http://127.0.0.1:port` */
  readonly address: string;
  readonly seen: readonly ProxiedRequest[];
}

/** Forwards what is asked for, to `endpoint` what is asked of `name`; refuses tunnels. Closed when the test has finished. */
export async function startProxy(name: string, endpoint: string): Promise<FakeProxy> {
  const seen: ProxiedRequest[] = [];
  const note = ({ method, url, headers }: IncomingMessage): void => {
    seen.push({ method: method!, target: url!, headers });
  };
  const forward = (request: IncomingMessage, response: ServerResponse): void => {
    note(request);
    const target = new URL(request.url!);
    const server = target.hostname === name ? new URL(endpoint) : target;
    const { hostname, port } = server;
    const path = `${target.pathname}${target.search}`;
    const onward = httpRequest({ hostname, port, path, method: request.method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  };
  const proxy = createServer(forward).on('connect', (request: IncomingMessage, socket) => {
    note(request);
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  return { address: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, seen };
}
