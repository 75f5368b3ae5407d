/** Reading a request's body, up to a limit. */
import type { IncomingMessage } from 'node:http';

/** The body is larger than the server takes: status 413. */
export class BodyTooLarge extends Error {
  override readonly name = 'BodyTooLarge';
}

/** The client has left before its body was whole. */
export class Disconnected extends Error {
  override readonly name = 'Disconnected';
}

/** Whether the length that a request announces is more than a limit. */
export function announcesMore({ headers }: IncomingMessage, limit: number): boolean {
  return Number(headers['content-length'] ?? 0) > limit;
}

/** @throws BodyTooLarge, once more than `limit` bytes have come; Disconnected */
export function readBody(request: IncomingMessage, limit: number): Promise<string> {
  const tooLarge = (): BodyTooLarge => new BodyTooLarge(`a body of more than ${limit} bytes`);
  if (announcesMore(request, limit)) return Promise.reject(tooLarge());
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= limit) return void chunks.push(chunk);
      chunks = [];
      request.removeAllListeners('data');
      reject(tooLarge());
    });
    request.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
    request.on('close', () => reject(new Disconnected('the client has left')));
  });
}

/** Milliseconds for which the rest of a refused body is read. */
const LINGER_MS = 5000;

/** Throw the rest of a body away, as far as it comes in time. */
export function discardBody(request: IncomingMessage): Promise<void> {
  if (request.complete || request.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, LINGER_MS);
    const end = (): void => {
      clearTimeout(timer);
      resolve();
    };
    request.once('end', end).once('close', end).resume();
  });
}
