/** Files that are whole or absent: written beside their place, synced, then renamed into it. */
import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { readingFault, UserError } from '../errors.js';
import { withStoreErrors } from './sqlite-errors.js';

/**
 * Write a file so that a crash at any moment leaves the old content or the new, never a part. Folders on the way are made.
 * Throws `RunError` on a full disk or a folder that cannot be written.
 */
export function writeFileAtomic(path: string, content: string | Uint8Array): void {
  withStoreErrors(path, () => {
    const folder = dirname(path);
    makeFolder(folder);
    // One name a target: what a crash leaves behind, the next try writes over.
    const temporary = join(folder, `.${basename(path)}.tmp`);
    try {
      const file = openSync(temporary, 'w');
      try {
        writeFileSync(file, content);
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
      renameSync(temporary, path);
    } catch (error) {
      rmSync(temporary, { force: true });
      throw error;
    }
    syncFolder(folder);
  });
}

/** Whether a file or folder is there. @throws UserError where looking is not allowed */
export function isThere(path: string): boolean {
  try {
    statSync(path);
    return true;
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'EACCES' || code === 'EPERM') throw new UserError(`${path} ${readingFault(cause)}`, { cause });
    return false;
  }
}

/**
 * Make a folder and those on the way to it, one after another: where none may be made, as under `/proc`, Node.js's own recursive call
 * tries for ever.
 * @returns the folders that were not there, the outermost first
 * @throws what the file system does: EEXIST or ENOTDIR for a file in the way
 */
export function makeFolder(folder: string): string[] {
  const missing: string[] = [];
  for (let at = resolve(folder); !existsSync(at); at = dirname(at)) missing.unshift(at);
  if (missing.length === 0 && !statSync(folder).isDirectory()) mkdirSync(folder);
  return missing.filter((path) => {
    try {
      mkdirSync(path);
      return true;
    } catch (error) {
      // Another process has made it since.
      if ((error as NodeJS.ErrnoException).code === 'EEXIST' && existsSync(path) && statSync(path).isDirectory())
        return false;
      throw error;
    }
  });
}

/** Make a rename in a folder last through a power failure. Windows cannot open folders, and does without. */
export function syncFolder(folder: string): void {
  if (process.platform === 'win32') return;
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** The SHA-256 of a file's bytes in hexadecimal, read a piece at a time. */
export function sha256OfFile(path: string): string {
  const hash = createHash('sha256');
  const piece = Buffer.allocUnsafe(1 << 20);
  const file = openSync(path, 'r');
  try {
    for (let size = readSync(file, piece); size > 0; size = readSync(file, piece)) hash.update(piece.subarray(0, size));
  } finally {
    closeSync(file);
  }
  return hash.digest('hex');
}
