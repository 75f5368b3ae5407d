/**
 * The seal of a store that was closed in order: a file beside it with the digest of its bytes, which need not be looked into while they fit.
 * Without one the store was left by a crash or a kill, or is being written.
 */
import { existsSync, readFileSync, rmSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { sha256OfFile, syncFolder, writeFileAtomic } from './files.js';

/** What is added to the name of the file that is sealed. */
export const SEAL_SUFFIX = '.sha256';

/** Seal a database that no one writes to. */
export function seal(path: string): void {
  // As sha256sum writes it, and checks it.
  writeFileAtomic(path + SEAL_SUFFIX, `${sha256OfFile(path)}  ${basename(path)}\n`);
}

/** Take the seal off, for good before anything is written. */
export function breakSeal(path: string): void {
  if (!existsSync(path + SEAL_SUFFIX)) return;
  rmSync(path + SEAL_SUFFIX, { force: true });
  syncFolder(dirname(path));
}

/** Whether the database was closed in order; a log beside it that holds anything says that it was written since. */
export function isSealed(path: string): boolean {
  return readSeal(path) !== null && (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0;
}

/** Whether its bytes are those that were sealed, or it has no seal any more since a run has begun to write. */
export function fitsSeal(path: string): boolean {
  const sealed = readSeal(path);
  return sealed === null || sealed.startsWith(`${sha256OfFile(path)} `) || readSeal(path) === null;
}

function readSeal(path: string): string | null {
  try {
    return readFileSync(path + SEAL_SUFFIX, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}
