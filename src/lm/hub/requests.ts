/** Requests to the hub: tried again when they fail in passing, explained when they fail for good. */
import { setTimeout as sleep } from 'node:timers/promises';
import { fetch } from 'undici';
import type { Response } from 'undici';
import { RunError, UserError } from '../../errors.js';
import { formatHubModel } from './cache.js';
import type { HubModel } from './cache.js';
import { dispatcherOf } from './proxies.js';
import type { HubSettings } from './settings.js';

/** Tries without progress before a transfer is given up. */
const TRIES = 6;
const LONGEST_WAIT = 60_000;

/** A fault that may pass: a broken connection, a busy or ailing server. */
export class PassingFault extends Error {
  /** Milliseconds that the server asks to wait. */
  readonly wait: number | null;

  constructor(message: string, wait: number | null = null, options?: ErrorOptions) {
    super(message, options);
    this.wait = wait;
  }
}

export interface RetryHooks {
  /** Counts what has been achieved: tries begin anew when it has grown. */
  readonly progress?: () => number;
  /** Told of a fault, and of the milliseconds until the next try. */
  readonly onWait: (fault: PassingFault, wait: number) => void;
}

/**
 * Do something until it succeeds or fails for good.
 * @throws RunError when it made no progress several times in a row
 */
export async function withRetries<T>(
  what: string,
  settings: HubSettings,
  attempt: () => Promise<T>,
  { progress = () => 0, onWait }: RetryHooks,
): Promise<T> {
  for (let tries = 1, reached = progress(); ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof PassingFault)) throw error;
      if (progress() > reached) [tries, reached] = [1, progress()];
      if (tries >= TRIES) {
        throw new RunError(`${what}: ${error.message}, ${TRIES} times; the same command goes on where it stopped`, {
          cause: error,
        });
      }
      const wait = Math.min(LONGEST_WAIT, error.wait ?? settings.retryDelay * 2 ** (tries - 1));
      onWait(error, wait);
      await sleep(wait);
    }
  }
}

/**
 * GET an address of the hub. A redirect to another host takes no token along, as fetch has it.
 * @throws PassingFault for what may go better, UserError for what the hub refuses
 */
export async function get(
  address: string,
  model: HubModel,
  settings: HubSettings,
  { headers = {}, signal }: { headers?: Record<string, string>; signal: AbortSignal },
): Promise<Response> {
  const authorization: Record<string, string> =
    settings.token === null ? {} : { authorization: `Bearer ${settings.token}` };
  const dispatcher = dispatcherOf(settings.proxies);
  let response: Response;
  try {
    response = await fetch(address, {
      // Compressed answers would be hashed and counted unpacked, and could not be gone on with.
      headers: { 'accept-encoding': 'identity', 'user-agent': 'propel', ...authorization, ...headers },
      signal,
      dispatcher,
    });
  } catch (error) {
    throw transferFault(error, new URL(address).host);
  }
  const { status } = response;
  if (response.ok || status === 416) return response;
  await response.body?.cancel();
  if (status === 408 || status === 429 || status >= 500) {
    throw new PassingFault(`the hub answered ${status}`, waitOf(response));
  }
  // The hub signs addresses of its storage for a while: an old one is refused there, and a new one is a request away.
  const { host } = new URL(response.url);
  if (host !== new URL(address).host) throw new PassingFault(`${host}, where the hub keeps it, answered ${status}`);
  throw refusal(response, model, settings);
}

/** A connection that failed, as a fault that may pass; anything else as it is. */
export function transferFault(error: unknown, host: string): unknown {
  if (!(error instanceof Error)) return error;
  let reason: Error = error;
  while (reason.cause instanceof Error) reason = reason.cause;
  // An error of several addresses has a code alone.
  const why = reason.message || (reason as NodeJS.ErrnoException).code;
  const isTransfer = error instanceof TypeError || error.name === 'AbortError' || error.name === 'TimeoutError';
  return isTransfer ? new PassingFault(`the connection to ${host} failed (${why})`, null, { cause: error }) : error;
}

function waitOf(response: Response): number | null {
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  return Number.isFinite(seconds) ? 1000 * seconds : null;
}

/** What the hub's refusal means for the user. It names its reason in `x-error-code`. */
function refusal(response: Response, model: HubModel, { endpoint, token }: HubSettings): UserError {
  const { status } = response;
  const name = formatHubModel(model);
  const code = response.headers.get('x-error-code') ?? '';
  const page = `${endpoint}/${model.id}`;
  if (code === 'GatedRepo' || (status === 403 && token !== null)) {
    const login = token === null ? 'set HF_TOKEN to your access token' : 'use the HF_TOKEN of an account that has it';
    return new UserError(`${name} is gated: ask for access at ${page}, then ${login}`);
  }
  if (code === 'RevisionNotFound') return new UserError(`${model.id} has no revision '${model.revision}'; see ${page}`);
  if (code === 'EntryNotFound')
    return new UserError(`${name} lacks a file that it lists: ${new URL(response.url).pathname}`);
  if (status === 401 || status === 403) {
    return new UserError(
      token === null
        ? `${name} does not exist or is private: check the name, or set HF_TOKEN to the access token of an account that may read it`
        : `${name} does not exist, or HF_TOKEN is not valid or may not read it: check both`,
    );
  }
  if (status === 404) return new UserError(`${name} does not exist at ${endpoint}: check the name`);
  return new UserError(`${name}: the hub answered ${status} at ${new URL(response.url).pathname}`);
}
