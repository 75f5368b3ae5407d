/** What SQLite and the file system report, as errors that a user can act on. */
import Database from 'better-sqlite3';
import { RunError, UserError } from '../errors.js';

/** What the store itself finds: its file is not what was written. */
export class DamagedStore extends Error {}

/** The error of `path` to show a user, with the cause kept; an error that is not the store's own passes through. */
export function storeError(error: unknown, path: string): unknown {
  if (error instanceof DamagedStore) return damaged(path, error.message, error);
  const code = errorCode(error);
  if (code === null) return error;
  if (code === 'SQLITE_FULL' || code === 'ENOSPC' || code === 'EDQUOT') {
    return new RunError(
      `no space left on the disk of ${path}; free some and start again, the run goes on where it was`,
      { cause: error },
    );
  }
  if (code === 'SQLITE_NOTADB') {
    return new UserError(`${path} is not a run store; choose another folder with --out, or start over with --fresh`, {
      cause: error,
    });
  }
  if (code.startsWith('SQLITE_CORRUPT')) return damaged(path, null, error);
  // Statements are fixed and fit the version that was checked: what they do not find, or cannot hold, the file has lost.
  if (/^SQLITE_(ERROR|TOOBIG|MISMATCH|SCHEMA)/.test(code)) return damaged(path, messageOf(error), error);
  if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED')) {
    return new RunError(`another program is using ${path}`, { cause: error });
  }
  if (/^SQLITE_(READONLY|CANTOPEN|PERM)/.test(code) || /^(EACCES|EPERM|EROFS|ENOTDIR|EISDIR|ENOENT)$/.test(code)) {
    return new RunError(`cannot write ${path}: ${messageOf(error)}; make it writable, or choose another folder`, {
      cause: error,
    });
  }
  if (code.startsWith('SQLITE_IOERR') || code === 'EIO') {
    return new RunError(`reading or writing ${path} failed: ${messageOf(error)}`, { cause: error });
  }
  return error;
}

function damaged(path: string, detail: string | null, cause: unknown): UserError {
  const what = detail === null ? '' : ` (${detail})`;
  return new UserError(`${path} is damaged${what}; start over with --fresh, or choose another folder with --out`, {
    cause,
  });
}

/** Run `work`, with what goes wrong in it translated by `storeError`. */
export function withStoreErrors<Result>(path: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw storeError(error, path);
  }
}

function errorCode(error: unknown): string | null {
  if (error instanceof Database.SqliteError) return error.code;
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return null;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
