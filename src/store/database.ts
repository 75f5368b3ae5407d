/** Opening and closing the run store's file: durability settings, the checks of its version and of its bytes, starting over. */
import { existsSync, rmdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { UserError } from '../errors.js';
import { defineChecksum } from './checksum.js';
import { isThere, makeFolder } from './files.js';
import { isFolderInUse } from './lock.js';
import { APPLICATION_ID, READABLE_VERSIONS, SCHEMA, SCHEMA_VERSION } from './schema.js';
import { breakSeal, fitsSeal, isSealed, seal, SEAL_SUFFIX } from './seal.js';
import { DamagedStore, withStoreErrors } from './sqlite-errors.js';
import { openTables } from './tables.js';

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
  `propel.db${SEAL_SUFFIX}`,
  DATABASE_FILE,
] as const;

/** Bytes that the log keeps once it has been worked into the file. */
const LOG_BYTES = 4 << 20;

/**
 * Open or create the store of a run folder for writing. Unless its bytes are those that a run has closed, it is checked page by page and row
 * by row. Every commit reaches the disk (WAL, synchronous FULL) before it is relied on.
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
      database.pragma(`journal_size_limit = ${LOG_BYTES}`);
      defineChecksum(database);
      if (isEmpty(database)) {
        breakSeal(path);
        create(database);
      } else {
        requireVersion(database, path, 'write');
        if (!isSealed(path) || !fitsSeal(path)) checkContent(database);
        breakSeal(path);
      }
      return database;
    } catch (error) {
      database.close();
      throw error;
    }
  });
}

/** Close a store that was opened for writing. With nothing left in its log and no damage seen, it is sealed. */
export function closeWritten(database: Database.Database, path: string, damaged: boolean): void {
  if (!database.open) return;
  let whole = false;
  try {
    const [log] = database.pragma('wal_checkpoint(TRUNCATE)') as { busy: number }[];
    whole = log?.busy === 0 && !damaged;
  } catch {
    // A full disk, say: what is committed stays in the log, and without a seal the next start looks at everything.
  }
  database.close();
  if (!whole) return;
  try {
    seal(path);
  } catch {
    // As above.
  }
}

/** How much of a store is checked before it is read. */
export interface ReadOptions {
  /** All bytes, where figures are to come from them; else the pages and rows only of a store that was not closed in order. */
  readonly whole?: boolean;
}

/** Open the store of a run folder for reading, also while a run writes it. Throws `UserError` when there is no usable store. */
export function openToRead(folder: string, { whole = false }: ReadOptions = {}): Database.Database {
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
      defineChecksum(database);
      // As a run leaves it that has only just begun, or was killed then.
      if (isEmpty(database)) throw new UserError(`no run in ${folder} yet: ${DATABASE_FILE} is empty; ${start}`);
      requireVersion(database, path, 'read');
      // A run that writes it has checked it.
      const trusted = isSealed(path) ? !whole || fitsSeal(path) : isFolderInUse(folder);
      if (!trusted) checkContent(database);
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

function requireVersion(database: Database.Database, path: string, use: 'read' | 'write'): void {
  if (database.pragma('application_id', { simple: true }) !== APPLICATION_ID) {
    throw new UserError(`${path} is a database of another program; choose another folder with --out`);
  }
  const version = database.pragma('user_version', { simple: true }) as number;
  if (version !== SCHEMA_VERSION && !(use === 'read' && READABLE_VERSIONS.has(version))) {
    const older = READABLE_VERSIONS.has(version) ? ' and only shows older ones' : '';
    throw new UserError(
      `${path} has schema version ${version}, this propel works on version ${SCHEMA_VERSION}${older}; ` +
        'use the propel that made it, start over with --fresh, or choose another folder with --out',
    );
  }
}

/** Look at every page, index and row. @throws DamagedStore */
export function checkContent(database: Database.Database): void {
  const problem = database.pragma('integrity_check(1)', { simple: true }) as string;
  if (problem !== 'ok') throw new DamagedStore(problem.replaceAll(/\s+/g, ' '));
  for (const table of Object.values(openTables(database))) table.verify();
}
