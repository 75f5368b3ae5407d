/** The connections to an endpoint: so many at once, through the environment's proxy where there is one. */
import { Agent, EnvHttpProxyAgent, Pool, type Dispatcher } from 'undici';
import { UserError } from '../errors.js';

/**
 * HTTP_PROXY, HTTPS_PROXY and NO_PROXY hold, in small letters too, which count first. This machine itself is never asked for through a
 * proxy.
 * @throws UserError for a proxy that is no address
 */
export function openEndpointAgent(endpoint: string, connections: number): Dispatcher {
  // Whole requests have a limit of their own; undici's would end long generations.
  const limits = { connections, headersTimeout: 0, bodyTimeout: 0 };
  if (isLoopback(new URL(endpoint).hostname)) return new Agent(limits);
  return new EnvHttpProxyAgent({
    ...limits,
    httpProxy: proxyOf('HTTP_PROXY'),
    httpsProxy: proxyOf('HTTPS_PROXY'),
    // What is not encrypted needs no tunnel, which many proxies allow for port 443 alone.
    proxyTunnel: false,
    // The connections to such a proxy would have undici's own limits.
    factory: (origin, options) => new Pool(origin, { ...options, ...limits }),
  });
}

/** `host:port` is one of http; empty: none. */
function proxyOf(variable: string): string {
  const proxy = process.env[variable.toLowerCase()] ?? process.env[variable] ?? '';
  if (proxy === '') return '';
  const whole = proxy.includes('://') ? proxy : `http://${proxy}`;
  if (URL.canParse(whole) && /^https?:$/.test(new URL(whole).protocol)) return whole;
  throw new UserError(
    `${variable} is not the address of a proxy for HTTP; give one such as http://proxy.example.org:3128`,
  );
}

function isLoopback(host: string): boolean {
  return /^(.+\.)?localhost\.?$|^127(\.\d+){3}$|^\[::1\]$/i.test(host);
}
