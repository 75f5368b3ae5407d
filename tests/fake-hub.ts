/** A local server that answers like the Hugging Face hub, and a second one that its large files are redirected to; faults on demand. */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** What a server does instead of answering a request for a file; taken in turn, one a request. */
export type Fault =
  | { readonly kind: 'status'; readonly status: number; readonly headers?: Readonly<Record<string, string>> }
  /** Breaks the connection after so many bytes of the answer, once the client has them: it forgets what it has not read yet. */
  | { readonly kind: 'break'; readonly after: number; readonly once: () => boolean }
  /** Sends so many bytes and then nothing, without an end. */
  | { readonly kind: 'stall'; readonly after: number }
  /** Sends the whole, whatever range was asked for. */
  | { readonly kind: 'whole' }
  /** Sends the right number of wrong bytes. */
  | { readonly kind: 'spoil' };

export interface SeenRequest {
  readonly server: 'hub' | 'cdn';
  readonly path: string;
  readonly authorization: string | undefined;
  readonly range: string | undefined;
}

export interface Repository {
  readonly commit: string;
  readonly files: Readonly<Record<string, Buffer>>;
  /** Readable only with this token. */
  readonly token?: string;
  /** Its list is open, its files are only for those who have asked. */
  readonly gated?: boolean;
}

export class FakeHub {
  readonly repositories = new Map<string, Repository>();
  /** By file name. */
  readonly faults = new Map<string, Fault[]>();
  readonly seen: SeenRequest[] = [];
  endpoint = '';
  #cdn = '';

  /** Both servers, on free ports, closed when the test has finished. */
  static async start(): Promise<FakeHub> {
    const hub = new FakeHub();
    hub.endpoint = await listen((request, response) => hub.#answer(request, response));
    hub.#cdn = await listen((request, response) => hub.#deliver(request, response));
    return hub;
  }

  /** Requests for files, oldest first. */
  requestsFor(name: string): SeenRequest[] {
    return this.seen.filter(({ path }) => path.endsWith(`/${name}`));
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = this.#note('hub', request);
    const listing = /^\/api\/models\/([^/]+\/[^/]+)\/revision\/(.+)$/.exec(path);
    const file = /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(path);
    const [, id = '', revision = '', name = ''] = listing ?? file ?? [];
    const repository = this.repositories.get(id);
    const token = request.headers.authorization?.replace('Bearer ', '');
    if (!repository || (repository.token !== undefined && token !== repository.token)) {
      return send(response, token === undefined ? 401 : 404, { 'x-error-code': 'RepoNotFound' });
    }
    if (revision !== 'main' && revision !== repository.commit)
      return send(response, 404, { 'x-error-code': 'RevisionNotFound' });
    if (listing) return this.#withFault('listing', response, () => sendJson(response, describe(repository)));
    if (repository.gated) return send(response, token === undefined ? 401 : 403, { 'x-error-code': 'GatedRepo' });
    const content = repository.files[name];
    if (!content) return send(response, 404, { 'x-error-code': 'EntryNotFound' });
    if (!isLarge(name)) return this.#withFault(name, response, (fault) => sendFile(request, response, content, fault));
    send(response, 302, { location: `${this.#cdn}/${id}/${name}` });
  }

  #deliver(request: IncomingMessage, response: ServerResponse): void {
    const path = this.#note('cdn', request);
    const [, id = '', name = ''] = /^\/([^/]+\/[^/]+)\/(.+)$/.exec(path) ?? [];
    const content = this.repositories.get(id)!.files[name]!;
    this.#withFault(name, response, (fault) => sendFile(request, response, content, fault));
  }

  #note(server: 'hub' | 'cdn', { url, headers }: IncomingMessage): string {
    const path = decodeURIComponent(new URL(url!, 'http://x').pathname);
    this.seen.push({ server, path, authorization: headers.authorization, range: headers.range });
    return path;
  }

  #withFault(name: string, response: ServerResponse, answer: (fault: Fault | null) => void): void {
    const fault = this.faults.get(name)?.shift() ?? null;
    if (fault?.kind === 'status') send(response, fault.status, fault.headers ?? {});
    else answer(fault);
  }
}

function isLarge(name: string): boolean {
  return name.endsWith('.safetensors') || name.endsWith('.bin');
}

export function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

export function gitHash(content: Buffer): string {
  return createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex');
}

function describe({ commit, files }: Repository): unknown {
  const siblings = Object.entries(files).map(([rfilename, content]) => ({
    rfilename,
    size: content.length,
    blobId: gitHash(content),
    ...(isLarge(rfilename) ? { lfs: { sha256: sha256(content), size: content.length, pointerSize: 130 } } : {}),
  }));
  return { sha: commit, siblings };
}

function sendFile(request: IncomingMessage, response: ServerResponse, content: Buffer, fault: Fault | null): void {
  const from = fault?.kind === 'whole' ? 0 : Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
  if (from > 0 && from >= content.length) return send(response, 416, {});
  const part = fault?.kind === 'spoil' ? Buffer.alloc(content.length - from, 7) : content.subarray(from);
  const range = from > 0 ? { 'content-range': `bytes ${from}-${content.length - 1}/${content.length}` } : {};
  response.writeHead(from > 0 ? 206 : 200, { 'content-length': part.length, ...range });
  if (fault?.kind === 'break') {
    response.write(part.subarray(0, fault.after));
    const timer = setInterval(() => {
      if (!fault.once()) return;
      clearInterval(timer);
      response.destroy();
    }, 5);
  } else if (fault?.kind === 'stall') response.write(part.subarray(0, fault.after));
  else response.end(part);
}

function sendJson(response: ServerResponse, document: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document));
}

function send(response: ServerResponse, status: number, headers: Readonly<Record<string, string>>): void {
  response.writeHead(status, { ...headers }).end();
}

async function listen(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server: Server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
