/** The way to the hub: straight, or through the proxies that the environment names. */
import { EnvHttpProxyAgent } from 'undici';
import type { Dispatcher } from 'undici';
import { UserError } from '../../errors.js';
import type { ProxySettings } from './settings.js';

const agents = new WeakMap<ProxySettings, Dispatcher>();

/** What requests are sent through, kept open for further ones. @throws UserError for a proxy that is no address */
export function dispatcherOf(proxies: ProxySettings): Dispatcher {
  const known = agents.get(proxies);
  if (known) return known;
  const agent = new EnvHttpProxyAgent({
    // An empty one is none; one left out would be looked for in the environment.
    httpProxy: address('HTTP_PROXY', proxies.http) ?? '',
    httpsProxy: address('HTTPS_PROXY', proxies.https) ?? '',
    noProxy: proxies.except,
    // What is not encrypted needs no tunnel, which many proxies allow for port 443 alone.
    proxyTunnel: false,
  });
  agents.set(proxies, agent);
  return agent;
}

/** `host:port` is one of http. */
function address(name: string, proxy: string | null): string | null {
  if (proxy === null) return null;
  const whole = proxy.includes('://') ? proxy : `http://${proxy}`;
  if (URL.canParse(whole) && /^https?:$/.test(new URL(whole).protocol)) return whole;
  throw new UserError(`${name} is not the address of a proxy for HTTP; give one such as http://proxy.example.org:3128`);
}
