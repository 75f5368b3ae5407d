/** A run folder while it is open: made where there is none, locked for whoever writes, and gone again when nothing came of it. */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type Database from 'better-sqlite3';
import {
  closeWritten,
  DATABASE_FILE,
  makeRunFolder,
  openToRead,
  openToWrite,
  removeEmptyFolders,
  removeRun,
} from './database.js';
import type { ReadOptions } from './database.js';
import { lockRunFolder, type RunLock } from './lock.js';

export interface OpenFolder {
  readonly database: Database.Database;
  /** Close the database and release the lock. */
  close(how?: ClosingOptions): void;
}

interface ClosingOptions {
  /** Remove the run, if this opening has made its store, and the folders made for it. */
  readonly discard?: boolean;
  /** Names of files in the folder that go with it. */
  readonly files?: readonly string[];
  /** Rows were found damaged: the store is not sealed as whole. */
  readonly damaged?: boolean;
}

/** Open or make a run folder for writing, an old run removed first with `fresh`. @throws RunLockedError while another process works in it. */
export function openFolderToWrite(folder: string, fresh: boolean): OpenFolder {
  const made = makeRunFolder(folder);
  let lock: RunLock | null = null;
  let isNew = false;
  const leave = (discard: boolean): void => {
    if (discard && isNew) removeRun(folder);
    lock?.release();
    if (discard) removeEmptyFolders(made);
  };
  try {
    lock = lockRunFolder(folder);
    if (fresh) removeRun(folder);
    isNew = !existsSync(join(folder, DATABASE_FILE));
    const database = openToWrite(folder);
    return {
      database,
      close: ({ discard = false, files = [], damaged = false } = {}) => {
        closeWritten(database, join(folder, DATABASE_FILE), damaged);
        if (discard && isNew) for (const file of files) rmSync(join(folder, file), { force: true });
        leave(discard && isNew);
      },
    };
  } catch (error) {
    leave(true);
    throw error;
  }
}

/** Open a run folder for reading only, also while a run works in it. */
export function openFolderToRead(folder: string, options: ReadOptions): OpenFolder {
  const database = openToRead(folder, options);
  return { database, close: () => database.close() };
}
