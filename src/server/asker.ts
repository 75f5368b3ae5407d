/** Who sends a request: the session whose tasks are told from repeats, and whether it is one that was sent before. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { BadRequest } from './protocols.js';
import type { Asker } from './repeats.js';

export const SESSION_HEADER = 'x-propel-session';
export const REQUEST_HEADER = 'idempotency-key';
const LONGEST_NAME = 200;

/**
 * The session by its header, or by `?session=` where a client knows only a URL; without a name by the client's address. A request that
 * names itself may be sent again. @throws BadRequest
 */
export function askerOf(request: IncomingMessage): Asker {
  const query = new URL(request.url ?? '/', 'http://any').searchParams.get('session');
  const session = named(request, SESSION_HEADER) ?? bounded(query, '?session');
  return {
    // A name is never an address, nor the other way round.
    session: session === null ? `address ${request.socket.remoteAddress ?? ''}` : `name ${session}`,
    request: named(request, REQUEST_HEADER) ?? randomUUID(),
  };
}

function named({ headers }: IncomingMessage, header: string): string | null {
  const value = headers[header];
  return bounded(typeof value === 'string' ? value : null, header);
}

function bounded(value: string | null, where: string): string | null {
  if (value === null || value === '') return null;
  if (value.length > LONGEST_NAME) throw new BadRequest(`${where}: a name of more than ${LONGEST_NAME} characters`);
  return value;
}
