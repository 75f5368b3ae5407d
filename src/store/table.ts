/** One table of the run store: rows in, rows out. The columns are the row's fields in snake case. */
import type Database from 'better-sqlite3';

/** How a field is stored: as it is, as 0 or 1, or as JSON text (null as NULL). */
type ColumnKind = 'plain' | 'boolean' | 'json';

export type Columns<Row> = { readonly [Field in keyof Row]-?: ColumnKind };

type Stored = Record<string, string | number | null>;

export class Table<Row extends object> {
  readonly #database: Database.Database;
  readonly #name: string;
  readonly #columns: [field: keyof Row & string, column: string, kind: ColumnKind][];
  readonly #order: string;
  readonly #absent: readonly string[];
  readonly #statements = new Map<string, Database.Statement<[Stored]>>();

  /** `key`: the fields that rows come back ordered by; `absent`: columns that the file lacks, which read as null. */
  constructor(
    database: Database.Database,
    name: string,
    columns: Columns<Row>,
    key: readonly (keyof Row & string)[],
    absent: readonly string[] = [],
  ) {
    this.#database = database;
    this.#name = name;
    const entries = Object.entries(columns) as [keyof Row & string, ColumnKind][];
    this.#columns = entries.map(([field, kind]) => [field, snakeCase(field), kind]);
    this.#order = key.map(snakeCase).join(', ');
    this.#absent = absent;
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
    const columns = this.#columns.map(([, column]) => (this.#absent.includes(column) ? `NULL AS ${column}` : column));
    const sql = `SELECT ${columns.join(', ')} FROM ${this.#name}${where} ORDER BY ${this.#order}`;
    return this.#prepare(sql)
      .all(values)
      .map((stored) => this.#decode(stored as Stored));
  }

  count(filter: Partial<Row> = {}): number {
    const [where, values] = this.#where(filter);
    const stored = this.#prepare(`SELECT count(*) AS count FROM ${this.#name}${where}`).get(values);
    return (stored as { count: number }).count;
  }

  #write(verb: string, rows: readonly Row[]): void {
    const columns = this.#columns.map(([, column]) => column);
    const places = columns.map((column) => `@${column}`);
    const statement = this.#prepare(`${verb} INTO ${this.#name} (${columns.join(', ')}) VALUES (${places.join(', ')})`);
    for (const row of rows) statement.run(this.#encode(row));
  }

  #where(filter: Partial<Row>): [where: string, values: Stored] {
    const given = this.#columns.filter(([field]) => filter[field] !== undefined);
    const conditions = given.map(([, column]) => `${column} IS @${column}`);
    const where = conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`;
    return [where, Object.fromEntries(given.map(([field, column, kind]) => [column, encode(filter[field], kind)]))];
  }

  #encode(row: Row): Stored {
    return Object.fromEntries(this.#columns.map(([field, column, kind]) => [column, encode(row[field], kind)]));
  }

  #decode(stored: Stored): Row {
    return Object.fromEntries(
      this.#columns.map(([field, column, kind]) => [field, decode(stored[column]!, kind)]),
    ) as Row;
  }

  #prepare(sql: string): Database.Statement<[Stored]> {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare<[Stored]>(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

function encode(value: unknown, kind: ColumnKind): string | number | null {
  if (value === null) return null;
  if (kind === 'json') return JSON.stringify(value);
  if (kind === 'boolean') return value === true ? 1 : 0;
  return value as string | number;
}

function decode(value: string | number | null, kind: ColumnKind): unknown {
  if (value === null) return null;
  if (kind === 'json') return JSON.parse(value as string) as unknown;
  return kind === 'boolean' ? value === 1 : value;
}

function snakeCase(field: string): string {
  return field.replaceAll(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
}
