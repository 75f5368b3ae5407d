/** A cached snapshot's files against their names in the cache, which are their hashes. */
import { createReadStream, readdirSync, realpathSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { hasherOf } from './download.js';

/** Git's SHA-1 or a SHA-256. */
const HASH = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

export interface Verification {
  /** Files whose content has another hash than their blob's name, with that blob. */
  readonly damaged: readonly { readonly file: string; readonly blob: string }[];
  readonly checked: number;
}

/** Hash every file of a snapshot that is a link to a blob named by its hash. @param onBytes told of bytes read, and of all */
export async function verifySnapshot(
  folder: string,
  onBytes: (bytes: number, total: number) => void,
): Promise<Verification> {
  const files = readdirSync(folder).flatMap((file) => {
    const blob = realpathSync(join(folder, file));
    const hash = basename(blob);
    return HASH.test(hash) ? [{ file, blob, hash, size: statSync(blob).size }] : [];
  });
  const total = files.reduce((sum, { size }) => sum + size, 0);
  const damaged: { file: string; blob: string }[] = [];
  let read = 0;
  for (const { file, blob, hash, size } of files) {
    const hasher = hasherOf({ path: file, hash, size });
    for await (const chunk of createReadStream(blob, { highWaterMark: 1 << 20 })) {
      hasher.update(chunk as Buffer);
      read += (chunk as Buffer).length;
      onBytes(read, total);
    }
    if (hasher.digest('hex') !== hash) damaged.push({ file, blob });
  }
  return { damaged, checked: files.length };
}
