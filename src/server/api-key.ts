/** The API key: compared in constant time, whatever the client sends. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/**
 * Whether a request carries the key: as a bearer token, as `X-API-Key`, or as the password of HTTP Basic, which is how a client that
 * knows only a URL sends one (`http://any:KEY@host/`).
 */
export function hasKey(headers: IncomingHttpHeaders, key: string): boolean {
  const expected = digest(key);
  // All of them are compared, so that time does not tell which one was sent.
  return keysIn(headers)
    .map((sent) => timingSafeEqual(digest(sent), expected))
    .includes(true);
}

/** Of one length, as the comparison needs. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function keysIn(headers: IncomingHttpHeaders): string[] {
  const { scheme = '', credentials = '' } =
    /^(?<scheme>\S+) +(?<credentials>.+)$/.exec(headers.authorization ?? '')?.groups ?? {};
  const basic = scheme.toLowerCase() === 'basic' ? Buffer.from(credentials, 'base64').toString('utf8') : '';
  const own = headers['x-api-key'];
  return [
    scheme.toLowerCase() === 'bearer' ? credentials : '',
    basic.slice(basic.indexOf(':') + 1),
    typeof own === 'string' ? own : '',
  ].filter((sent) => sent !== '');
}
