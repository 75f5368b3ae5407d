/** The connections to an endpoint: so many at once, through the environment's proxy where there is one. */
import { Agent, EnvHttpProxyAgent, type Dispatcher } from 'undici';
import { UserError } from '../errors.js';

/**
 * HTTP_PROXY, HTTPS_PROXY and NO_PROXY hold, in small letters too; proxies are asked for a tunnel (CONNECT), whatever the endpoint's
 * protocol. This machine itself is never asked for through a proxy.
 * @throws UserError when the environment names a proxy that is no URL
 */
export function openEndpointAgent(endpoint: string, connections: number): Dispatcher {
  // Whole requests have a limit of their own; undici's would end long generations.
  const options = { connections, headersTimeout: 0, bodyTimeout: 0 };
  if (isLoopback(new URL(endpoint).hostname)) return new Agent(options);
  try {
    return new EnvHttpProxyAgent(options);
  } catch (cause) {
    throw new UserError(
      `HTTP_PROXY or HTTPS_PROXY of the environment names no proxy (${(cause as Error).message}); give a URL such as http://proxy:3128, or unset it`,
      { cause },
    );
  }
}

function isLoopback(host: string): boolean {
  return /^(.+\.)?localhost\.?$|^127(\.\d+){3}$|^\[::1\]$/i.test(host);
}
