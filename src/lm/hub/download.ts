/** One file of the hub into the cache: gone on with where an earlier transfer broke, and taken only when its hash is right. */
import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';
import { createReadStream, existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Response } from 'undici';
import { RunError } from '../../errors.js';
import { makeFolder } from '../../store/files.js';
import type { HubModel } from './cache.js';
import { get, PassingFault, transferFault, withRetries } from './requests.js';
import type { RetryHooks } from './requests.js';
import type { HubSettings } from './settings.js';

/** A file as the hub lists it. */
export interface HubFile {
  readonly path: string;
  readonly size: number;
  /** SHA-256 of a large file, git's SHA-1 of a small one, in hexadecimal: what its blob is called. */
  readonly hash: string;
}

/** The hash under construction that a file's name in the cache is of. */
export function hasherOf({ hash, size }: HubFile): Hash {
  return hash.length === 64 ? createHash('sha256') : createHash('sha1').update(`blob ${size}\0`);
}

/**
 * Download a file to `blob`, through `blob.incomplete`.
 * @param onBytes told of how many of the file's bytes are there
 * @throws UserError for what the hub refuses; RunError when the connection stays bad, the hash stays wrong or the disk is full
 */
export async function downloadBlob(
  file: HubFile,
  blob: string,
  { address, model, settings, onBytes, onWait }: DownloadContext,
): Promise<void> {
  makeFolder(dirname(blob));
  const incomplete = `${blob}.incomplete`;
  const sizeOf = () => (existsSync(incomplete) ? statSync(incomplete).size : 0);
  let spoiled = 0;
  await withRetries(
    file.path,
    settings,
    async () => {
      if (sizeOf() > file.size) rmSync(incomplete);
      const hash = await transfer(file, incomplete, sizeOf(), { address, model, settings, onBytes, onWait });
      if (hash === file.hash) return;
      rmSync(incomplete, { force: true });
      spoiled++;
      if (spoiled < 2) throw new PassingFault('its hash was wrong');
      throw new RunError(
        `${file.path} of ${model.id} came with hash ${hash}, the hub lists ${file.hash}: something on the way changes it; try another network`,
      );
    },
    { progress: sizeOf, onWait },
  );
  renameSync(incomplete, blob);
}

export interface DownloadContext {
  readonly address: string;
  readonly model: HubModel;
  readonly settings: HubSettings;
  readonly onBytes: (bytes: number) => void;
  readonly onWait: RetryHooks['onWait'];
}

/** Fetch what is missing behind the first `have` bytes. @returns the whole file's hash */
async function transfer(
  file: HubFile,
  incomplete: string,
  have: number,
  { address, model, settings, onBytes }: DownloadContext,
): Promise<string> {
  const stall = new AbortController();
  const timer = setTimeout(() => stall.abort(), settings.stallAfter);
  try {
    if (have === file.size && have > 0) return (await hashed(file, incomplete)).digest('hex');
    const headers: Record<string, string> = have > 0 ? { range: `bytes=${have}-` } : {};
    const response = await get(address, model, settings, { headers, signal: stall.signal });
    // A server that does not know ranges sends the whole; one that has less than we do refuses.
    const goesOn = response.status === 206 && response.headers.get('content-range')?.startsWith(`bytes ${have}-`);
    if (response.status === 416 || (response.status === 206 && !goesOn)) {
      await response.body?.cancel();
      rmSync(incomplete, { force: true });
      throw new PassingFault('the hub sent another part than was asked for');
    }
    const hash = goesOn ? await hashed(file, incomplete) : hasherOf(file);
    let bytes = goesOn ? have : 0;
    const output = await open(incomplete, goesOn ? 'a' : 'w');
    try {
      for await (const chunk of chunksOf(response, address)) {
        timer.refresh();
        bytes += chunk.length;
        if (bytes > file.size) break;
        hash.update(chunk);
        await output.writeFile(chunk);
        onBytes(bytes);
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      throw new RunError(`no space left for ${file.path} in ${dirname(incomplete)}; free some and start again`, {
        cause: error,
      });
    } finally {
      await output.close();
    }
    if (bytes < file.size) throw new PassingFault(`the transfer broke off after ${bytes} of ${file.size} bytes`);
    return hash.digest('hex');
  } finally {
    clearTimeout(timer);
  }
}

async function* chunksOf(response: Response, address: string): AsyncGenerator<Uint8Array> {
  if (!response.body) return;
  try {
    yield* response.body;
  } catch (error) {
    throw transferFault(error, new URL(address).host);
  }
}

async function hashed(file: HubFile, path: string): Promise<Hash> {
  const hash = hasherOf(file);
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) hash.update(chunk as Buffer);
  return hash;
}
