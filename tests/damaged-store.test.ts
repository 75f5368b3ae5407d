/** A store that is damaged in many ways: its figures are what they were, or it is refused in one line. */
import Database from 'better-sqlite3';
import { spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
  closeSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { RunError, UserError } from '../src/errors.js';
import { seededRandom } from '../src/metrics/random.js';
import { report } from '../src/pipeline/report.js';
import { RunStore } from '../src/store/store.js';
import { MAIN, PACKAGE, propelIn, sets, temporaryFolder } from './propel-process.js';

const folder = temporaryFolder();
const SETTINGS = sets({
  band: { min: 1, max: 3, of: 4 },
  'label.tasks': 60,
  'label.batch': 60,
  arms: {
    base: { reward: 'none' },
    adversarial: { reward: 'probe', adversarial: { every: 2, mine: 6, share: 1 } },
    solver: { reward: 'solver' },
  },
  'train.steps': 3,
  'train.batch': 18,
  'train.checkpointEvery': 1,
  'evaluate.generations': 36,
  'evaluate.batch': 9,
  'evaluate.rescoreEvery': 2,
});
const command = (out: string): string[] => [
  'run',
  join(PACKAGE, 'pipelines', 'azr-mixed.yaml'),
  '--out',
  out,
  ...SETTINGS,
];

/** A run to its end, and the same one killed while it evaluated its last arm. */
const whole = join(folder, 'whole');
const killed = join(folder, 'killed');

beforeAll(async () => {
  const { code, stderr } = propelIn(folder, command(whole));
  expect(code, stderr).toBe(0);
  const child = spawn(process.execPath, [MAIN, ...command(killed)], { stdio: 'ignore' });
  const ended = new Promise((resolve) => child.on('close', resolve));
  while (!isEvaluatingLastArm(killed)) await wait(20);
  child.kill('SIGKILL');
  await ended;
  expect(statSync(join(killed, 'propel.db-wal')).size).toBeGreaterThan(0);
}, 600_000);

function isEvaluatingLastArm(run: string): boolean {
  try {
    const store = RunStore.read(run);
    try {
      return store.batches('evaluate', 'solver').length > 1;
    } finally {
      store.close();
    }
  } catch (error) {
    if (error instanceof UserError) return false;
    throw error;
  }
}

type Random = () => number;
const below = (random: Random, end: number): number => Math.floor(random() * end);

function change(path: string, offset: number, length: number, into: (bytes: Buffer) => Buffer): void {
  const file = openSync(path, 'r+');
  try {
    const bytes = Buffer.alloc(length);
    readSync(file, bytes, 0, length, offset);
    writeSync(file, into(bytes), 0, length, offset);
  } finally {
    closeSync(file);
  }
}

/** Pages of the database; in the log frames lie a little off from them, and are cut all the same. */
const PAGE = 4096;
const pagesOf = (path: string): number => Math.max(1, Math.floor(statSync(path).size / PAGE));

/** Ways in which a disk, a copy or another program spoils a file. */
const OF_BYTES = {
  'bits flipped': (path: string, random: Random) => {
    for (let i = 0; i <= below(random, 3); i++) {
      const bit = 1 << below(random, 8);
      change(path, below(random, statSync(path).size), 1, ([byte]) => Buffer.of(byte! ^ bit));
    }
  },
  'garbage written': (path: string, random: Random) => {
    const length = 1 + below(random, 400);
    change(path, below(random, statSync(path).size - length), length, () =>
      Buffer.from(Array.from({ length }, () => below(random, 256))),
    );
  },
  'cut short': (path: string, random: Random) => truncateSync(path, below(random, statSync(path).size)),
  'a page zeroed': (path: string, random: Random) => {
    change(path, below(random, pagesOf(path)) * PAGE, PAGE, () => Buffer.alloc(PAGE));
  },
  'two pages swapped': (path: string, random: Random) => {
    const [a, b] = [below(random, pagesOf(path)) * PAGE, below(random, pagesOf(path)) * PAGE];
    change(path, a, PAGE, (first) => {
      let second = first;
      change(path, b, PAGE, (bytes) => {
        second = Buffer.from(bytes);
        return first;
      });
      return second;
    });
  },
} as const;

const COLUMNS = [
  ['tasks', 'structure', '{"depth": '],
  ['tasks', 'task', 'no JSON'],
  ['tasks', 'valid', 0],
  ['tasks', 'completion', 'another'],
  ['tasks', 'topic', 'another'],
  ['labels', 'passes', 2],
  ['probes', 'card', '[1, 2'],
  ['probes', 'card', '{}'],
  ['evaluations', 'measured', '{"claimedInBand": 1}'],
  ['steps', 'kl_per_sequence', 9.5],
  ['run', 'config', '{"arms": 5}'],
  ['run', 'versions', ''],
] as const;

/** Some rows of a column hold something else, as a flipped bit or a repair tool would leave it. */
function spoilColumn(path: string, random: Random): void {
  const [table, column, value] = COLUMNS[below(random, COLUMNS.length)]!;
  const database = new Database(path);
  const some = `(SELECT ${column} FROM ${table} WHERE ${column} IS NOT ? ORDER BY random() LIMIT 1)`;
  database.prepare(`UPDATE ${table} SET ${column} = ? WHERE ${column} = ${some}`).run(value, value);
  database.close();
}

interface Read {
  readonly results: unknown;
  readonly refusal: string | null;
}

/** What a report says of a run, without its timings; or why it says nothing. */
function read(run: string): Read {
  rmSync(join(run, 'results.json'), { force: true });
  try {
    report(run);
  } catch (error) {
    if (!(error instanceof UserError || error instanceof RunError)) throw error;
    return { results: null, refusal: error.message };
  }
  const results = JSON.parse(readFileSync(join(run, 'results.json'), 'utf8')) as { arms: Record<string, unknown>[] };
  for (const arm of results.arms) delete arm['seconds'];
  return { results, refusal: null };
}

/** Read from a copy: whoever reads a store last works its log into the file. */
function figuresOf(run: string): unknown {
  const copy = copyOf(run);
  const { results, refusal } = read(copy);
  expect(refusal).toBeNull();
  return results;
}

function copyOf(run: string): string {
  const copy = join(folder, 'copy');
  rmSync(copy, { recursive: true, force: true });
  cpSync(run, copy, { recursive: true });
  return copy;
}

/** A copy of a run, damaged by a case's own stream: its figures are `expected`, or it is refused. @returns whether it was refused */
function expectSafe(
  run: string,
  expected: unknown,
  name: string,
  damage: (copy: string, random: Random) => void,
): boolean {
  const copy = copyOf(run);
  damage(copy, seededRandom(name));
  const { results, refusal } = read(copy);
  if (refusal === null) expect(results, name).toEqual(expected);
  else {
    expect(refusal, name).toMatch(/^[^\n]*propel\.db[^\n]*$/);
    expect(refusal, name).toMatch(/; start over|; use the propel|; choose another|: .*(make it writable|failed)/);
  }
  return refusal !== null;
}

const CASES = 12;

describe('a store that was closed in order', () => {
  it.each(Object.keys(OF_BYTES) as (keyof typeof OF_BYTES)[])('%s', (kind) => {
    const expected = figuresOf(whole);
    let refused = 0;
    for (let i = 0; i < CASES; i++) {
      const damage = (copy: string, random: Random): void => OF_BYTES[kind](join(copy, 'propel.db'), random);
      if (expectSafe(whole, expected, `${kind} ${i}`, damage)) refused++;
    }
    // What a page has free holds nothing.
    expect(refused).toBeGreaterThan(0);
  });

  it('values changed in columns', () => {
    const expected = figuresOf(whole);
    for (let i = 0; i < CASES; i++) {
      const refused = expectSafe(whole, expected, `column ${i}`, (copy, random) =>
        spoilColumn(join(copy, 'propel.db'), random),
      );
      expect(refused).toBe(true);
    }
  });

  it('is not opened for writing either, and stays as it is', () => {
    const copy = copyOf(whole);
    const path = join(copy, 'propel.db');
    change(path, statSync(path).size - 100, 1, ([byte]) => Buffer.of(byte! ^ 1));
    const bytes = readFileSync(path);
    for (let i = 0; i < 2; i++) expect(() => RunStore.open(copy)).toThrow(/is damaged .*; start over with --fresh/);
    expect(readFileSync(path).equals(bytes)).toBe(true);
  });
});

describe('a store that was left by a kill', () => {
  it.each(Object.keys(OF_BYTES) as (keyof typeof OF_BYTES)[])('%s', (kind) => {
    const expected = figuresOf(killed);
    let refused = 0;
    for (let i = 0; i < CASES; i++) {
      const damage = (copy: string, random: Random): void => OF_BYTES[kind](join(copy, 'propel.db'), random);
      if (expectSafe(killed, expected, `killed, ${kind} ${i}`, damage)) refused++;
    }
    // The log may hold the page that was hit, and a free page holds nothing.
    expect(refused).toBeGreaterThan(0);
  });

  it('values changed in columns', () => {
    const expected = figuresOf(killed);
    for (let i = 0; i < CASES; i++) {
      expectSafe(killed, expected, `killed, column ${i}`, (copy, random) =>
        spoilColumn(join(copy, 'propel.db'), random),
      );
    }
  });

  it.each(Object.keys(OF_BYTES) as (keyof typeof OF_BYTES)[])('%s, in its log', (kind) => {
    const expected = figuresOf(killed);
    for (let i = 0; i < CASES; i++) {
      expectSafe(killed, expected, `log, ${kind} ${i}`, (copy, random) => {
        const log = join(copy, 'propel.db-wal');
        expect(existsSync(log)).toBe(true);
        OF_BYTES[kind](log, random);
      });
    }
  });
});
