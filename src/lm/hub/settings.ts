/** What the environment says of the Hugging Face hub, by the names that Hugging Face's own tools read. */
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { UserError } from '../../errors.js';

/** Proxies by the hosts' protocols, as the environment writes them; null: none. */
export interface ProxySettings {
  readonly http: string | null;
  /** Null: that for http, if there is one. */
  readonly https: string | null;
  /** Hosts that are reached without: `.example.org,10.0.0.1:8080`, or `*`. */
  readonly except: string;
}

export interface HubSettings {
  /** Where the hub answers, without a slash at its end. */
  readonly endpoint: string;
  /** Access token; null: none. */
  readonly token: string | null;
  /** Whether nothing may be fetched. */
  readonly offline: boolean;
  /** The cache's folder: `…/huggingface/hub`. */
  readonly cache: string;
  readonly proxies: ProxySettings;
  /** Milliseconds before a failed transfer is tried again, doubled each time. */
  readonly retryDelay: number;
  /** Milliseconds without a byte after which a transfer has failed. */
  readonly stallAfter: number;
}

const TRUE = /^(1|on|yes|true)$/i;

/** `HF_ENDPOINT`, `HF_TOKEN` or the file that `hf auth login` leaves, `HF_HUB_OFFLINE`, `HF_HUB_CACHE`, `HF_HOME`, `XDG_CACHE_HOME`, and proxies. */
export function hubSettings(env: NodeJS.ProcessEnv = process.env): HubSettings {
  const home = env['HF_HOME'] || join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'huggingface');
  const endpoint = (env['HF_ENDPOINT'] || 'https://huggingface.co').replace(/\/+$/, '');
  if (!/^https?:\/\//.test(endpoint) || !URL.canParse(endpoint))
    throw new UserError(`HF_ENDPOINT '${endpoint}' is not an address; give one such as https://huggingface.co`);
  return {
    endpoint,
    token: env['HF_TOKEN'] || savedToken(env['HF_TOKEN_PATH'] || join(home, 'token')),
    offline: TRUE.test(env['HF_HUB_OFFLINE'] ?? ''),
    cache: env['HF_HUB_CACHE'] || join(home, 'hub'),
    proxies: proxySettings(env),
    retryDelay: 1000,
    stallAfter: 60_000,
  };
}

/** `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`; of a name in both cases the small letters count, as everywhere. */
function proxySettings(env: NodeJS.ProcessEnv): ProxySettings {
  const value = (name: string): string | null => env[name.toLowerCase()] ?? env[name] ?? null;
  return { http: value('HTTP_PROXY') || null, https: value('HTTPS_PROXY') || null, except: value('NO_PROXY') ?? '' };
}

function savedToken(file: string): string | null {
  return existsSync(file) ? readFileSync(file, 'utf8').trim() || null : null;
}
