/** The reward over HTTP: who may ask, how much, and what is answered. Node's own server: so few routes need no framework. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { RunError } from '../errors.js';
import { hasKey } from './api-key.js';
import { askerOf } from './asker.js';
import { announcesMore, BodyTooLarge, discardBody, Disconnected, readBody } from './body.js';
import { SpecialTokens } from '../domain/special-tokens.js';
import { createMetrics, type ServerMetrics } from './metrics.js';
import { BadRequest, readJson, readOpenRlhf, readOwn, writeOpenRlhf } from './protocols.js';
import { Refusals } from './refusals.js';
import { Repeats } from './repeats.js';
import { MAX_COMPLETION, Overloaded, RewardService, type Judged, type RewardItem } from './reward-service.js';
import type { RewardScorer } from './scorer.js';

export interface ServerSettings {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  /** Null: whoever reaches the port may ask. */
  readonly apiKey: string | null;
  readonly maxBodyBytes: number;
  /** Milliseconds from a request's last byte to its answer; a request may ask for less. */
  readonly deadlineMs: number;
  /** Milliseconds that one item's check may take. */
  readonly itemTimeoutMs: number;
  /** Items that may wait. */
  readonly maxWaiting: number;
  /** Latest distinct tasks of a session that a new one is compared with; 0: repeats are paid for. */
  readonly repeatWindow: number;
  /** Takes one line a kind of refusal, without its end. */
  readonly log: (line: string) => void;
}

export interface RunningServer {
  readonly url: string;
  /**
   * Take no more requests, let those under way end within `graceMs`, answer the rest with errors, then close the scorer. At once, when
   * called again.
   */
  stop(graceMs: number): Promise<void>;
}

/** Milliseconds for a request's headers, and for all of its body. */
const HEADERS_TIMEOUT_MS = 10_000;
const BODY_TIMEOUT_MS = 60_000;
/** How often connections are looked at for these. */
const CHECK_INTERVAL_MS = 5000;
/** Longer than clients and proxies keep a connection, so that it is they who close it. */
const KEEP_ALIVE_MS = 75_000;
/** Milliseconds for the answers that a server gives when it must end. */
const LAST_ANSWERS_MS = 1000;
/** Seconds after which an overloaded server may be asked again. */
const RETRY_AFTER_S = 5;
/** Runs whose tasks are remembered. */
const MOST_SESSIONS = 32;

interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** To be called when the answer does not reach the client. */
  readonly onLost?: () => void;
}

type Handler = (request: IncomingMessage, gone: AbortSignal) => Promise<Answer>;

/** @throws RunError when the address cannot be listened on; the scorer is then closed */
export async function startRewardServer(scorer: RewardScorer, settings: ServerSettings): Promise<RunningServer> {
  const server = new RewardServer(scorer, settings);
  try {
    return await server.listen();
  } catch (cause) {
    await scorer.close();
    const { code, message } = cause as NodeJS.ErrnoException;
    const what = code === 'EADDRINUSE' ? 'the port is taken; choose another with --port' : message;
    throw new RunError(`cannot listen on ${settings.host}:${settings.port}: ${what}`, { cause });
  }
}

class RewardServer {
  readonly #scorer: RewardScorer;
  readonly #settings: ServerSettings;
  readonly #service: RewardService;
  readonly #repeats: Repeats;
  readonly #refusals: Refusals;
  readonly #special: SpecialTokens;
  readonly #metrics: ServerMetrics;
  readonly #http: Server;
  readonly #routes: Readonly<Record<string, { readonly method: 'GET' | 'POST'; readonly handle: Handler }>>;
  #stopping: Promise<void> | null = null;

  constructor(scorer: RewardScorer, settings: ServerSettings) {
    this.#scorer = scorer;
    this.#settings = settings;
    this.#special = new SpecialTokens(scorer.specialTokens);
    const metrics = createMetrics(() => this.#service.queue);
    this.#metrics = metrics;
    const { itemTimeoutMs, maxWaiting, repeatWindow, log } = settings;
    this.#repeats = new Repeats({ window: repeatWindow, sessions: MOST_SESSIONS });
    this.#refusals = new Refusals(log);
    this.#service = new RewardService(scorer, { itemTimeoutMs, maxWaiting }, metrics, this.#repeats);
    this.#routes = {
      '/get_reward': { method: 'POST', handle: (request, gone) => this.#openRlhf(request, gone) },
      '/v1/reward': { method: 'POST', handle: (request, gone) => this.#own(request, gone) },
      '/v1/info': { method: 'GET', handle: async () => this.#info() },
      '/health': { method: 'GET', handle: async () => this.#health() },
      '/metrics': { method: 'GET', handle: () => this.#metricsText() },
    };
    const limits = {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: BODY_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
    };
    this.#http = createServer(limits, (request, response) => void this.#serve(request, response));
    // A client that asks before it sends can be refused before it sends.
    this.#http.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
      if (!announcesMore(request, settings.maxBodyBytes)) response.writeContinue();
      void this.#serve(request, response);
    });
  }

  async listen(): Promise<RunningServer> {
    const { host, port } = this.#settings;
    await new Promise<void>((resolve, reject) => {
      this.#http.once('error', reject);
      this.#http.listen(port, host, () => {
        this.#http.off('error', reject);
        resolve();
      });
    });
    const { address, port: bound, family } = this.#http.address() as AddressInfo;
    const shown = family === 'IPv6' ? `[${address}]` : address;
    return { url: `http://${shown}:${bound}`, stop: (graceMs) => this.#stop(graceMs) };
  }

  #stop(graceMs: number): Promise<void> {
    if (this.#stopping !== null) this.#stopNow();
    return (this.#stopping ??= this.#end(graceMs));
  }

  async #end(graceMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#http.close(() => resolve()));
    this.#http.closeIdleConnections();
    const timer = setTimeout(() => this.#stopNow(), graceMs);
    await closed;
    clearTimeout(timer);
    await this.#scorer.close();
  }

  /** Answer all that is under way with errors, and leave those who do not take the answer. */
  #stopNow(): void {
    this.#service.stop();
    setTimeout(() => this.#http.closeAllConnections(), LAST_ANSWERS_MS).unref();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const started = performance.now();
    const path = pathOf(request);
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const answer = await this.#answer(path, request, gone.signal);
    const route = Object.hasOwn(this.#routes, path) ? path : 'other';
    this.#metrics.request(route, answer.status, (performance.now() - started) / 1000);
    this.#log(route, request, answer);
    if (response.destroyed) return answer.onLost?.();
    response.once('close', () => {
      if (!response.writableFinished) answer.onLost?.();
    });
    const isText = typeof answer.body === 'string';
    const body = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body);
    // What was not read of a refused request would be taken for the next one.
    const isLast = this.#stopping !== null || !request.complete;
    response.writeHead(answer.status, {
      'content-type': isText ? this.#metrics.contentType : 'application/json',
      'content-length': Buffer.byteLength(body),
      ...(isLast ? { connection: 'close' } : {}),
      ...answer.headers,
    });
    response.write(body);
    // A client that still sends would not read the answer to what it sent.
    await discardBody(request);
    response.end();
  }

  async #answer(path: string, request: IncomingMessage, gone: AbortSignal): Promise<Answer> {
    const route = Object.hasOwn(this.#routes, path) ? this.#routes[path] : undefined;
    if (route === undefined) return failure(404, `no such route; there are ${Object.keys(this.#routes).join(', ')}`);
    const { method, handle } = route;
    if (request.method !== method) return failure(405, `${path} takes ${method}`, { allow: method });
    const { apiKey } = this.#settings;
    if (path !== '/health' && apiKey !== null && !hasKey(request.headers, apiKey)) {
      return failure(401, 'the API key is missing or wrong', { 'www-authenticate': 'Bearer' });
    }
    if (this.#stopping !== null && method === 'POST') return failure(503, 'the server is shutting down');
    try {
      return await handle(request, gone);
    } catch (error) {
      if (error instanceof BadRequest) return failure(400, error.message);
      if (error instanceof BodyTooLarge) return failure(413, error.message);
      if (error instanceof Disconnected) return failure(499, error.message);
      if (error instanceof Overloaded) return failure(503, error.message, { 'retry-after': String(RETRY_AFTER_S) });
      return failure(500, error instanceof Error ? error.message : String(error));
    }
  }

  /** OpenRLHF has no word for an error of one sample; it sends a request again that fails, which costs only what is missing. */
  async #openRlhf(request: IncomingMessage, gone: AbortSignal): Promise<Answer> {
    const items = readOpenRlhf(await this.#json(request), this.#scorer.kinds, this.#special);
    const { results, withdraw } = await this.#judge(request, items, null, gone);
    const errors = results.filter((result) => result.status === 'error');
    const [first] = errors;
    if (first === undefined) {
      const body = writeOpenRlhf(results.filter((result) => result.status !== 'error'));
      return { status: 200, body, onLost: withdraw };
    }
    withdraw();
    const status = errors.some(({ outcome }) => outcome === 'deadline') ? 504 : 503;
    return failure(
      status,
      `${errors.length} of ${items.length} samples have no reward: ${first.outcome}: ${first.detail}`,
    );
  }

  async #own(request: IncomingMessage, gone: AbortSignal): Promise<Answer> {
    const { items, deadlineMs } = readOwn(await this.#json(request), this.#scorer.kinds, this.#special);
    const { results, withdraw } = await this.#judge(request, items, deadlineMs, gone);
    return { status: 200, body: { results }, onLost: withdraw };
  }

  async #judge(
    request: IncomingMessage,
    items: readonly RewardItem[],
    deadlineMs: number | null,
    gone: AbortSignal,
  ): Promise<Judged> {
    const deadline = Math.min(deadlineMs ?? Infinity, this.#settings.deadlineMs);
    const judged = await this.#service.judge(items, askerOf(request), deadline, gone);
    this.#metrics.items(judged.results);
    const errors = judged.results.filter(({ status }) => status === 'error');
    const [first] = errors;
    if (first !== undefined) {
      const message = `${errors.length} of ${items.length} items, the first by ${first.outcome}: ${first.detail}`;
      this.#refusals.tell({ what: 'not judged', route: pathOf(request), client: clientOf(request), message });
    }
    return judged;
  }

  async #json(request: IncomingMessage): Promise<unknown> {
    const encoding = request.headers['content-encoding'];
    if (encoding !== undefined && encoding !== 'identity')
      throw new BadRequest(`content-encoding ${encoding}: send it plain`);
    return readJson(await readBody(request, this.#settings.maxBodyBytes));
  }

  #health(): Answer {
    const { kinds, probes, about } = this.#scorer;
    const isStopping = this.#stopping !== null;
    const status = isStopping ? 'stopping' : 'ok';
    const sessions = this.#repeats.sessions;
    const body = { status, kinds, probes, ...about, queue: this.#service.queue, sessions };
    return { status: isStopping ? 503 : 200, body };
  }

  #info(): Answer {
    const { kinds, probes, about, task } = this.#scorer;
    const { maxBodyBytes, deadlineMs, itemTimeoutMs, maxWaiting, repeatWindow } = this.#settings;
    const limits = { maxBodyBytes, maxCompletionCharacters: MAX_COMPLETION, deadlineMs, itemTimeoutMs, maxWaiting };
    return { status: 200, body: { types: kinds, ...task, probes, ...about, limits, repeatWindow } };
  }

  /** What a client is refused is told here too: a trainer's own log may not show it. */
  #log(route: string, request: IncomingMessage, { status, body }: Answer): void {
    if (status < 400 || route === '/health') return;
    const { message } = (body as ReturnType<typeof failure>['body']).error;
    this.#refusals.tell({ what: String(status), route, client: clientOf(request), message });
  }

  async #metricsText(): Promise<Answer> {
    return { status: 200, body: await this.#metrics.text() };
  }
}

function pathOf({ url }: IncomingMessage): string {
  return (url ?? '').split('?', 1)[0]!;
}

function clientOf({ socket }: IncomingMessage): string {
  return socket.remoteAddress ?? 'a client that has left';
}

function failure(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
  return { status, body: { error: { message } }, headers };
}
