/** The checksum that every row of the store carries: a row that is not as it was written is seen wherever it is read. */
import type Database from 'better-sqlite3';
import { crc32 } from 'node:zlib';

/** What a column holds. */
export type Stored = string | number | null;

/** The column with the checksum of all others. */
export const CHECKSUM = 'checksum';
/** The same as a function of SQL, of the columns in the order of the table. */
export const CHECKSUM_FUNCTION = 'row_checksum';

/** CRC-32 of a row's values, which finds every change of a few bits and all but one in 2³² of the others. */
export function rowChecksum(values: readonly Stored[]): number {
  return crc32(JSON.stringify(values));
}

export function defineChecksum(database: Database.Database): void {
  database.function(CHECKSUM_FUNCTION, { varargs: true, deterministic: true }, (...values) =>
    rowChecksum(values as Stored[]),
  );
}
