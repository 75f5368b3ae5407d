/** One table of the run store: rows in, rows out. The columns are the row's fields in snake case. */
import type Database from 'better-sqlite3';
import { CHECKSUM, CHECKSUM_FUNCTION, rowChecksum, type Stored } from './checksum.js';
import { DamagedStore } from './sqlite-errors.js';

/** How a field is stored: as it is, as 0 or 1, or as JSON text (null as NULL). */
type ColumnKind = 'plain' | 'boolean' | 'json';

export type Columns<Row> = { readonly [Field in keyof Row]-?: ColumnKind };

type StoredRow = Record<string, Stored>;

/** How a file of an older version differs. */
export interface Older {
  /** Columns that it lacks, which read as null. */
  readonly absent: readonly string[];
}

export class Table<Row extends object> {
  readonly #database: Database.Database;
  readonly #name: string;
  readonly #columns: [field: keyof Row & string, column: string, kind: ColumnKind][];
  readonly #order: string;
  readonly #older: Older | null;
  readonly #statements = new Map<string, Database.Statement<[StoredRow]>>();

  /** `key`: the fields that rows come back ordered by; `older`: of a file that is only read, whose rows have no checksum. */
  constructor(
    database: Database.Database,
    name: string,
    columns: Columns<Row>,
    key: readonly (keyof Row & string)[],
    older: Older | null = null,
  ) {
    this.#database = database;
    this.#name = name;
    const entries = Object.entries(columns) as [keyof Row & string, ColumnKind][];
    this.#columns = entries.map(([field, kind]) => [field, snakeCase(field), kind]);
    this.#order = key.map(snakeCase).join(', ');
    this.#older = older;
  }

  insert(rows: readonly Row[]): void {
    this.#write('INSERT', rows);
  }

  /** Insert, or take the place of the row with the same key. */
  put(row: Row): void {
    this.#write('INSERT OR REPLACE', [row]);
  }

  /** Rows with these values, in the order of the key; a filter's undefined fields do not filter. */
  select(filter: Partial<Row> = {}): Row[] {
    const [where, values] = this.#where(filter);
    const columns = this.#columns.map(([, column]) =>
      this.#older?.absent.includes(column) ? `NULL AS ${column}` : column,
    );
    if (this.#older === null) columns.push(CHECKSUM);
    const sql = `SELECT ${columns.join(', ')} FROM ${this.#name}${where} ORDER BY ${this.#order}`;
    return this.#prepare(sql)
      .all(values)
      .map((stored) => this.#decode(stored as StoredRow));
  }

  count(filter: Partial<Row> = {}): number {
    const [where, values] = this.#where(filter);
    const stored = this.#prepare(`SELECT count(*) AS count FROM ${this.#name}${where}`).get(values);
    return (stored as { count: number }).count;
  }

  /** Look at every row. @throws DamagedStore when one is not as it was written */
  verify(): void {
    if (this.#older !== null) return;
    const columns = this.#columns.map(([, column]) => column).join(', ');
    const sql = `SELECT 1 FROM ${this.#name} WHERE ${CHECKSUM} IS NOT ${CHECKSUM_FUNCTION}(${columns}) LIMIT 1`;
    if (this.#prepare(sql).get({}) !== undefined) throw this.#damaged();
  }

  #damaged(): DamagedStore {
    return new DamagedStore(`a row of ${this.#name} is not as it was written`);
  }

  #write(verb: string, rows: readonly Row[]): void {
    const columns = [...this.#columns.map(([, column]) => column), CHECKSUM];
    const places = columns.map((column) => `@${column}`);
    const statement = this.#prepare(`${verb} INTO ${this.#name} (${columns.join(', ')}) VALUES (${places.join(', ')})`);
    for (const row of rows) statement.run(this.#encode(row));
  }

  #where(filter: Partial<Row>): [where: string, values: StoredRow] {
    const given = this.#columns.filter(([field]) => filter[field] !== undefined);
    const conditions = given.map(([, column]) => `${column} IS @${column}`);
    const where = conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`;
    return [where, Object.fromEntries(given.map(([field, column, kind]) => [column, encode(filter[field], kind)]))];
  }

  #encode(row: Row): StoredRow {
    const stored: StoredRow = {};
    for (const [field, column, kind] of this.#columns) stored[column] = encode(row[field], kind);
    stored[CHECKSUM] = this.#checksumOf(stored);
    return stored;
  }

  #checksumOf(stored: StoredRow): number {
    return rowChecksum(this.#columns.map(([, column]) => stored[column]!));
  }

  #decode(stored: StoredRow): Row {
    if (this.#older === null && stored[CHECKSUM] !== this.#checksumOf(stored)) throw this.#damaged();
    return Object.fromEntries(
      this.#columns.map(([field, column, kind]) => [field, decode(stored[column]!, kind)]),
    ) as Row;
  }

  #prepare(sql: string): Database.Statement<[StoredRow]> {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare<[StoredRow]>(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

function encode(value: unknown, kind: ColumnKind): Stored {
  if (value === null) return null;
  if (kind === 'json') return JSON.stringify(value);
  if (kind === 'boolean') return value === true ? 1 : 0;
  // What UTF-8 cannot hold would come back as another text.
  return typeof value === 'string' ? value.toWellFormed() : (value as number);
}

function decode(value: Stored, kind: ColumnKind): unknown {
  if (value === null) return null;
  if (kind === 'json') return parsed(value as string);
  return kind === 'boolean' ? value === 1 : value;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    // Only in a file of an older version: rows with a checksum have been found to be as they were written.
    throw new DamagedStore('a column of JSON holds something else', { cause });
  }
}

function snakeCase(field: string): string {
  return field.replaceAll(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
}
