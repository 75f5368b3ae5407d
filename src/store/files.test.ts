import Database from 'better-sqlite3';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RunError, UserError } from '../errors.js';
import { sha256OfFile, writeFileAtomic } from './files.js';
import { storeError, withStoreErrors } from './sqlite-errors.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'propel-files-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('atomic writing', () => {
  test('makes folders, replaces what was there, leaves nothing else', () => {
    const path = join(folder, 'checkpoints', 'a.bin');
    writeFileAtomic(path, 'old');
    writeFileAtomic(path, new Uint8Array([1, 2, 3]));
    expect([...readFileSync(path)]).toEqual([1, 2, 3]);
    expect(readdirSync(join(folder, 'checkpoints'))).toEqual(['a.bin']);
  });

  test('writes over what a crash left behind', () => {
    writeFileSync(join(folder, '.a.json.tmp'), 'half of');
    writeFileAtomic(join(folder, 'a.json'), '{}');
    expect(readdirSync(folder)).toEqual(['a.json']);
  });

  test('a failure keeps the old file and no temporary one', () => {
    mkdirSync(join(folder, 'taken'));
    expect(() => writeFileAtomic(join(folder, 'taken'), 'text')).toThrow(RunError);
    expect(readdirSync(folder)).toEqual(['taken']);
  });
});

test('SHA-256 of the FIPS 180-2 examples, and of a file longer than one piece', () => {
  const path = join(folder, 'data');
  writeFileSync(path, 'abc');
  expect(sha256OfFile(path)).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  writeFileSync(path, 'a'.repeat(1_000_000));
  expect(sha256OfFile(path)).toBe('cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0');
  const long = Buffer.alloc(3_000_000, 'abcdefg');
  writeFileSync(path, long);
  expect(sha256OfFile(path)).toBe(createHash('sha256').update(long).digest('hex'));
});

describe('errors of the disk', () => {
  test('a full database', () => {
    const database = new Database(join(folder, 'small.db'));
    database.exec('CREATE TABLE notes (text TEXT)');
    database.pragma('max_page_count = 4');
    const write = (): void =>
      withStoreErrors('small.db', () => {
        database.prepare('INSERT INTO notes VALUES (?)').run('x'.repeat(100_000));
      });
    expect(write).toThrow(RunError);
    expect(write).toThrow('no space left on the disk of small.db');
    database.close();
  });

  test('a full file system', () => {
    const error = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    const translated = storeError(error, 'results.json') as RunError;
    expect(translated).toBeInstanceOf(RunError);
    expect(translated.message).toContain('no space left on the disk of results.json');
    expect(translated.cause).toBe(error);
  });

  test('a damaged database is bad input', () => {
    const error = new Database.SqliteError('database disk image is malformed', 'SQLITE_CORRUPT');
    expect(storeError(error, 'propel.db')).toBeInstanceOf(UserError);
  });

  test('an error of another kind stays as it is', () => {
    const error = new TypeError('a mistake');
    expect(storeError(error, 'propel.db')).toBe(error);
  });
});
