/** HTTP to an OpenAI-compatible endpoint: one request at a time of so many at once, with a time limit, and what a failure means. */
import { setTimeout as sleep } from 'node:timers/promises';
import { request, type Dispatcher } from 'undici';
import { UserError } from '../errors.js';
import { parseJsonWithin } from '../bounded-json.js';
import { openEndpointAgent } from './endpoint-agent.js';
import type { Request } from './chat-protocol.js';
import { errorMessage, isTooLong } from './server-words.js';

export interface EndpointSettings {
  /** `http://host:8000/v1` */
  readonly endpoint: string;
  readonly model: string;
  /** Environment variable that holds the API key; null: none is sent. */
  readonly apiKeyEnv: string | null;
  /** Requests under way at once. */
  readonly concurrency: number;
  /** Seconds after which a request that has not ended is given up and sent again. */
  readonly timeoutSeconds: number;
}

/** A request failed for no fault of the question's: sent again, it may work. */
export class TransientFault extends Error {
  override readonly name = 'TransientFault';
}

/** The server will not do what this one request asks; to send it again is no use. */
export class RefusedRequest extends Error {
  override readonly name: string = 'RefusedRequest';
  readonly status: number;
  /** The response's text. */
  readonly said: string;

  constructor(message: string, status: number, said: string) {
    super(message);
    this.status = status;
    this.said = said;
  }
}

/** Refused because question and answer have no room in the model's context. */
export class NoRoom extends RefusedRequest {
  override readonly name = 'NoRoom';
}

/** A longer response is a fault: sixteen of them may be read at once. */
const MAX_RESPONSE_BYTES = 16 << 20;
/** Of a model's name that is repeated. */
const NAME_SHOWN = 80;
/** A server that asks for a longer wait is asked again after this. */
const LONGEST_RETRY_AFTER_MS = 300_000;
/** Conflict, too early: like 429 and 5xx they pass by themselves. */
const TRANSIENT_STATUSES = new Set([408, 409, 425, 429]);

/** Why nothing is sent until a moment of `performance.now()`. */
export interface Wait {
  readonly until: number;
  readonly why: string;
}

/** What a server says of a model that it serves. */
export interface ServedModel {
  readonly id: string;
  /** Tokens of question and answer together; null where it does not say. */
  readonly maxLength: number | null;
  /** Its account of a request is that of one choice, however many were asked for. */
  readonly isLlamaCpp: boolean;
}

const UNTOLD: ServedModel = { id: '', maxLength: null, isLlamaCpp: false };

interface Response {
  readonly status: number;
  readonly location: string | null;
  readonly text: string;
}

export class EndpointClient {
  readonly #settings: EndpointSettings;
  readonly #base: string;
  readonly #agent: Dispatcher;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #waiting: (() => void)[] = [];
  #free: number;
  #pause: Wait = { until: 0, why: '' };

  /** @throws UserError when the environment lacks the key, or names a proxy that is none */
  constructor(settings: EndpointSettings) {
    this.#settings = settings;
    this.#base = settings.endpoint.replace(/\/+$/, '');
    this.#free = settings.concurrency;
    const { apiKeyEnv } = settings;
    const key = apiKeyEnv === null ? null : process.env[apiKeyEnv];
    if (key === undefined || key === '') {
      throw new UserError(`solver.apiKeyEnv: the environment has no ${apiKeyEnv}; set it to the endpoint's key`);
    }
    this.#headers = key === null ? {} : { authorization: `Bearer ${key}` };
    this.#agent = openEndpointAgent(settings.endpoint, settings.concurrency);
  }

  /** No request starts before its end: a server's wish to be left alone holds for all. */
  get pause(): Wait {
    return this.#pause;
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }

  /**
   * A completion's response text.
   * @throws TransientFault, RefusedRequest; UserError when every request would fail: wrong URL, key or model
   */
  async complete(
    { route, body }: Request,
    signal: AbortSignal,
    seconds = this.#settings.timeoutSeconds,
  ): Promise<string> {
    const response = await this.#inTurn(signal, () => this.#send('POST', route, body, seconds, signal));
    const { status, text } = response;
    if (status >= 200 && status < 300) return text;
    const said = errorMessage(text);
    const told = `status ${status}${said && `: ${said}`}`;
    // Some servers fail, with status 500, at what others refuse.
    const hasNoRoom = (status >= 500 || !isTransient(status)) && isTooLong(text);
    if (isTransient(status) && !hasNoRoom) throw new TransientFault(told);
    const advice = this.#adviceOn(response, route);
    if (advice !== null) throw new UserError(`${advice}${said && ` (${told})`}`);
    throw new (hasNoRoom ? NoRoom : RefusedRequest)(told, status, text);
  }

  /**
   * @param probe a short request, for a server that does not list its models
   * @param maxNewTokens of a request
   * @returns what the server says of the model
   * @throws UserError when the endpoint cannot be reached within so many seconds, refuses the key, does not serve the model, or that has no
   * room for so many tokens
   */
  async check(seconds: number, probe: Request, maxNewTokens: number): Promise<ServedModel> {
    const signal = new AbortController().signal;
    let response;
    try {
      response = await this.#inTurn(signal, () => this.#send('GET', '/models', null, seconds, signal));
    } catch (cause) {
      const why = (cause as Error).message;
      throw new UserError(
        `solver.endpoint: ${this.#base} cannot be reached: ${why}; start its server, or correct the URL`,
        { cause },
      );
    }
    const { status, text } = response;
    // Some servers do not list their models.
    if (status === 404 || status === 405 || status === 501) {
      await this.#checkByCompletion(seconds, probe);
      return UNTOLD;
    }
    const advice = this.#adviceOn(response, '/models');
    if (advice !== null) throw new UserError(advice);
    // A server that is busy or starting is waited for where it is asked.
    if (status >= 400) return UNTOLD;
    const served = servedModels(text);
    if (served === null) {
      throw new UserError(
        `solver.endpoint: ${this.#base} answers, but is no OpenAI-compatible API; its URL mostly ends in /v1`,
      );
    }
    const { model } = this.#settings;
    const own = served.find(({ id }) => id === model);
    if (own === undefined && served.length > 0) {
      const names = served.slice(0, 10).map(({ id }) => id.slice(0, NAME_SHOWN));
      throw new UserError(`solver.model: ${this.#base} does not serve ${model}; it serves ${names.join(', ')}`);
    }
    const { maxLength = null } = own ?? {};
    if (maxLength !== null && maxNewTokens >= maxLength) {
      throw new UserError(
        `solver.maxNewTokens: ${this.#base} serves ${model} with ${maxLength} tokens for question and answer together ` +
          `(max_model_len), so ${maxNewTokens} new ones have no room beside a question; lower it`,
      );
    }
    return own ?? UNTOLD;
  }

  async #checkByCompletion(seconds: number, probe: Request): Promise<void> {
    try {
      await this.complete(probe, new AbortController().signal, seconds);
    } catch (error) {
      if (error instanceof UserError) throw error;
    }
  }

  /** What to correct in the settings, for a response that every request would get; null for others. */
  #adviceOn({ status, location, text }: Response, route: string): string | null {
    if (status === 401 || status === 403) {
      const { apiKeyEnv } = this.#settings;
      const key = apiKeyEnv === null ? 'a request without a key; set solver.apiKeyEnv' : `the key in ${apiKeyEnv}`;
      return `solver.endpoint: ${this.#base} refuses ${key}`;
    }
    if (status >= 300 && status < 400) {
      return `solver.endpoint: ${this.#base} redirects to ${location ?? 'another address'}; give that`;
    }
    if (status !== 404) return null;
    return /model/i.test(text)
      ? `solver.model: ${this.#base} does not serve ${this.#settings.model}`
      : `solver.endpoint: ${this.#base} has no ${route}; its URL mostly ends in /v1`;
  }

  async #send(
    method: 'GET' | 'POST',
    path: string,
    body: string | null,
    most: number,
    signal: AbortSignal,
  ): Promise<Response> {
    const limit = new AbortController();
    const seconds = Math.min(most, this.#settings.timeoutSeconds);
    const timer = setTimeout(() => limit.abort(new Error(`no whole response within ${seconds} s`)), seconds * 1000);
    const stop = (): void => limit.abort(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    try {
      const response = await request(`${this.#base}${path}`, {
        method,
        headers: { ...this.#headers, accept: 'application/json', 'content-type': 'application/json' },
        body,
        signal: limit.signal,
        dispatcher: this.#agent,
      });
      const { statusCode: status } = response;
      const { 'retry-after': retryAfter, location } = response.headers;
      const wait = typeof retryAfter === 'string' && isTransient(status) ? retryAfterMs(retryAfter, Date.now()) : null;
      const until = performance.now() + (wait ?? 0);
      if (until > this.#pause.until && wait !== null) this.#pause = { until, why: `status ${status}` };
      return {
        status,
        location: typeof location === 'string' ? location : null,
        text: await readText(response.body),
      };
    } catch (cause) {
      if (signal.aborted) throw signal.reason;
      const error = (limit.signal.aborted ? limit.signal.reason : cause) as NodeJS.ErrnoException;
      throw new TransientFault(error.message || error.code || 'the connection failed', { cause });
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
    }
  }

  /** Run when fewer than `concurrency` others run and no pause is on. */
  async #inTurn<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      for (let left = 1; left > 0;) {
        signal.throwIfAborted();
        left = this.#pause.until - performance.now();
        if (left > 0) await sleep(left, undefined, { signal });
      }
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}

function isTransient(status: number): boolean {
  return status >= 500 || TRANSIENT_STATUSES.has(status);
}

async function readText(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > MAX_RESPONSE_BYTES) throw new Error(`a response of more than ${MAX_RESPONSE_BYTES >> 20} MiB`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Retry-After as RFC 9110 has it: seconds, or a date. Null for anything else. */
export function retryAfterMs(header: string, now: number): number | null {
  const wait = /^\s*\d+(\.\d+)?\s*$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now;
  return Number.isNaN(wait) ? null : Math.min(Math.max(wait, 0), LONGEST_RETRY_AFTER_MS);
}

function servedModels(text: string): ServedModel[] | null {
  try {
    const { data } = parseJsonWithin(text) as { data?: unknown };
    return Array.isArray(data) ? (data as unknown[]).flatMap(servedModel) : null;
  } catch {
    return null;
  }
}

function servedModel(entry: unknown): ServedModel[] {
  if (typeof entry !== 'object' || entry === null) return [];
  const { id, owned_by: owner, max_model_len: length } = entry as Record<string, unknown>;
  if (typeof id !== 'string') return [];
  const maxLength = typeof length === 'number' && Number.isSafeInteger(length) && length > 0 ? length : null;
  return [{ id, maxLength, isLlamaCpp: owner === 'llamacpp' }];
}
