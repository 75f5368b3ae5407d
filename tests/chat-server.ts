/** A server of the OpenAI API, chats and completions, on loopback whose faults are scripted, for tests of what asks it. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface ChatRequest {
  readonly model: string;
  /** Of a completion its prompt, as a user's turn. */
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly n?: number;
  readonly seed?: number;
  readonly [field: string]: unknown;
}

export interface Choice {
  readonly index?: number;
  readonly content: string | null;
  readonly finish: string | null;
  /** Further fields of its message: `reasoning_content`, `refusal`. */
  readonly message?: Readonly<Record<string, unknown>>;
}

/** What becomes of one request. */
export type Reply =
  | {
      readonly kind: 'choices';
      readonly choices: readonly Choice[];
      readonly usage?: boolean;
      readonly dripMs?: number;
    }
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly text?: string;
      readonly headers?: Record<string, string>;
    }
  | { readonly kind: 'text'; readonly text: string }
  /** Headers and half of the body, then the end of the connection. */
  | { readonly kind: 'cut' }
  | { readonly kind: 'reset' }
  | { readonly kind: 'hang' };

/** Whether it is the question that an endpoint is asked before any work. */
export function isTrial({ messages }: ChatRequest): boolean {
  return messages.at(-1)!.content === '1';
}

export interface ChatServer {
  /** `http://127.0.0.1:…/v1` */
  readonly url: string;
  readonly requests: readonly ChatRequest[];
  readonly authorizations: readonly (string | undefined)[];
  /** Most requests that were under way at once. */
  readonly peak: () => number;
}

const PROMPT_TOKENS = 10;
const COMPLETION_TOKENS = 3;

export async function startChatServer(
  reply: (request: ChatRequest, ordinal: number) => Reply,
  models: (() => Reply) | readonly string[] = ['m'],
): Promise<ChatServer> {
  const requests: ChatRequest[] = [];
  const authorizations: (string | undefined)[] = [];
  let running = 0;
  let peak = 0;
  const server = createServer((request, response) => {
    if (request.url === '/v1/models') {
      const data = typeof models === 'function' ? null : models.map((id) => ({ id, object: 'model' }));
      if (data === null) return answer(response, (models as () => Reply)());
      return void response.setHeader('content-type', 'application/json').end(JSON.stringify({ object: 'list', data }));
    }
    const isChat = request.url === '/v1/chat/completions';
    if (!isChat && request.url !== '/v1/completions') return void response.writeHead(404).end('not here');
    running++;
    peak = Math.max(peak, running);
    response.on('close', () => running--);
    return void readBody(request).then((body) => {
      const sent = JSON.parse(body) as ChatRequest;
      const asked = isChat ? sent : { ...sent, messages: [{ role: 'user', content: String(sent['prompt']) }] };
      requests.push(asked);
      authorizations.push(request.headers.authorization);
      answer(response, reply(asked, requests.length - 1), isChat);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/v1`, requests, authorizations, peak: () => peak };
}

function answer(response: ServerResponse, reply: Reply, isChat = true): void {
  switch (reply.kind) {
    case 'choices':
      return drip(response, completion(reply.choices, reply.usage !== false, isChat), reply.dripMs ?? 0);
    case 'status':
      return void response.writeHead(reply.status, reply.headers).end(reply.text ?? '');
    case 'text':
      return void response.writeHead(200, { 'content-type': 'application/json' }).end(reply.text);
    case 'cut': {
      const text = completion([{ content: 'half of an answer', finish: 'stop' }], true, isChat);
      response.writeHead(200, { 'content-length': String(text.length) });
      response.write(text.slice(0, text.length / 2));
      return void setTimeout(() => response.destroy(), 5);
    }
    case 'reset':
      return void response.destroy();
    case 'hang':
  }
}

function completion(choices: readonly Choice[], usage: boolean, isChat: boolean): string {
  return JSON.stringify({
    id: 'chat-1',
    object: 'chat.completion',
    choices: choices.map(({ index, content, finish, message }, place) => ({
      index: index ?? place,
      ...(isChat ? { message: { role: 'assistant', content, ...message } } : { text: content ?? '' }),
      finish_reason: finish,
    })),
    ...(usage
      ? { usage: { prompt_tokens: PROMPT_TOKENS, completion_tokens: COMPLETION_TOKENS * choices.length } }
      : {}),
  });
}

/** In five pieces, so many milliseconds apart. */
function drip(response: ServerResponse, text: string, ms: number): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  if (ms === 0) return void response.end(text);
  const size = Math.ceil(text.length / 5);
  const next = (at: number): void => {
    if (response.destroyed) return;
    response.write(text.slice(at, at + size));
    if (at + size >= text.length) response.end();
    else setTimeout(next, ms, at + size);
  };
  next(0);
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
