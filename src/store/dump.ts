/** All rows of a run store, for telling whether two runs are the same. */
import type Database from 'better-sqlite3';
import { CHECKSUM } from './checksum.js';

/** Table → rows by primary key, each column → value; columns of timings, and checksums, left out. */
export type Dump = Readonly<Record<string, readonly Readonly<Record<string, string | number | null>>[]>>;

/** A column whose name ends so holds a timing, which may differ between runs of one seed. */
const TIMING_SUFFIX = '_seconds';

export function dumpRows(database: Database.Database): Dump {
  const tables = database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")
    .pluck()
    .all() as string[];
  return Object.fromEntries(
    tables.map((table) => {
      const columns = database.pragma(`table_info(${table})`) as { name: string; pk: number }[];
      const kept = columns
        .filter(({ name }) => !name.endsWith(TIMING_SUFFIX) && name !== CHECKSUM)
        .map(({ name }) => name);
      const key = columns
        .filter(({ pk }) => pk > 0)
        .sort((a, b) => a.pk - b.pk)
        .map(({ name }) => name);
      const rows = database.prepare(`SELECT ${kept.join(', ')} FROM ${table} ORDER BY ${key.join(', ')}`).all();
      return [table, rows as Record<string, string | number | null>[]];
    }),
  );
}
