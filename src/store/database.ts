/** Opening the run store's file: durability settings, the check of its version, starting over. */
import { existsSync, rmdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { UserError } from '../errors.js';
import { isThere, makeFolder } from './files.js';
import { APPLICATION_ID, SCHEMA, SCHEMA_VERSION } from './schema.js';
import { withStoreErrors } from './sqlite-errors.js';

export const DATABASE_FILE = 'propel.db';

/** What a run writes into its folder, and what starting over removes. */
const RUN_ENTRIES = [
  'results.json',
  'report.html',
  'probe-study.json',
  'probe-study.html',
  'probes',
  'checkpoints',
  'propel.db-wal',
  'propel.db-shm',
  DATABASE_FILE,
] as const;

/**
 * Open or create the store of a run folder for writing. Every commit reaches the disk (WAL, synchronous FULL) before it is relied on.
 * Throws `UserError` for a file that is damaged, not a run store, or of another version, and `RunError` when the disk refuses.
 */
export function openToWrite(folder: string): Database.Database {
  const path = join(folder, DATABASE_FILE);
  return withStoreErrors(path, () => {
    const database = new Database(path);
    try {
      database.pragma('journal_mode = WAL');
      database.pragma('synchronous = FULL');
      database.pragma('foreign_keys = ON');
      if (isEmpty(database)) create(database);
      verify(database, path);
      return database;
    } catch (error) {
      database.close();
      throw error;
    }
  });
}

/** Open the store of a run folder for reading, also while a run writes it. Throws `UserError` when there is no usable store. */
export function openToRead(folder: string): Database.Database {
  const path = join(folder, DATABASE_FILE);
  const start = 'start one with propel run or propel label';
  if (isThere(folder) && !statSync(folder).isDirectory())
    throw new UserError(`${folder} is a file; give the folder of a run`);
  if (!isThere(path)) throw new UserError(`no run in ${folder}: ${DATABASE_FILE} is missing; ${start}`);
  return withStoreErrors(path, () => {
    // Not `readonly`: such a connection would leave its own -wal and -shm files behind, and could not read after a crash.
    const database = new Database(path, { fileMustExist: true });
    try {
      database.pragma('query_only = ON');
      // As a run leaves it that has only just begun, or was killed then.
      if (isEmpty(database)) throw new UserError(`no run in ${folder} yet: ${DATABASE_FILE} is empty; ${start}`);
      verify(database, path);
      return database;
    } catch (error) {
      database.close();
      throw error;
    }
  });
}

/** Make a run's folder. @returns the folders that were not there. @throws UserError when a file stands in its place or on the way. */
export function makeRunFolder(folder: string): string[] {
  return withStoreErrors(folder, () => {
    try {
      return makeFolder(folder);
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException;
      if (code !== 'EEXIST' && code !== 'ENOTDIR') throw cause;
      throw new UserError(`${folder} cannot be a run folder, a file stands in its way; choose another with --out`, {
        cause,
      });
    }
  });
}

/** Remove folders that were made, as far as they hold nothing. */
export function removeEmptyFolders(made: readonly string[]): void {
  for (const folder of made.toReversed()) {
    try {
      rmdirSync(folder);
    } catch {
      // Somebody has put something there, which stays.
      return;
    }
  }
}

/** Remove files and folders that the rows of a run no longer name. */
export function removeOutputs(folder: string, entries: readonly (typeof RUN_ENTRIES)[number][]): void {
  withStoreErrors(folder, () => {
    for (const entry of entries) rmSync(join(folder, entry), { recursive: true, force: true });
  });
}

/** Remove an old run. The database goes last: it marks the folder as a run's, and without it nothing is removed. */
export function removeRun(folder: string): void {
  if (!existsSync(join(folder, DATABASE_FILE))) return;
  removeOutputs(folder, RUN_ENTRIES);
}

function isEmpty(database: Database.Database): boolean {
  return database.prepare('SELECT count(*) FROM sqlite_schema').pluck().get() === 0;
}

function create(database: Database.Database): void {
  database.transaction(() => {
    database.exec(SCHEMA);
    database.pragma(`application_id = ${APPLICATION_ID}`);
    database.pragma(`user_version = ${SCHEMA_VERSION}`);
  })();
}

function verify(database: Database.Database, path: string): void {
  if (database.pragma('application_id', { simple: true }) !== APPLICATION_ID) {
    throw new UserError(`${path} is a database of another program; choose another folder with --out`);
  }
  const version = database.pragma('user_version', { simple: true }) as number;
  if (version !== SCHEMA_VERSION) {
    throw new UserError(
      `${path} has schema version ${version}, this propel reads version ${SCHEMA_VERSION}; ` +
        'use the propel that made it, start over with --fresh, or choose another folder with --out',
    );
  }
  const [problem] = database.pragma('quick_check(1)') as { quick_check: string }[];
  if (problem?.quick_check !== 'ok') {
    throw new UserError(
      `${path} is damaged (${problem?.quick_check}); start over with --fresh, or choose another folder with --out`,
    );
  }
}
