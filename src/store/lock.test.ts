import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { lockRunFolder, RunLockedError } from './lock.js';

let folder: string;
let other: ChildProcess;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'propel-lock-'));
  other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
});

afterEach(async () => {
  await end(other);
  rmSync(folder, { recursive: true });
});

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

function writeLock(owner: object): void {
  writeFileSync(join(folder, 'propel.lock'), JSON.stringify(owner));
}

test('a lock names its owner and is gone when released', () => {
  const lock = lockRunFolder(folder);
  expect(JSON.parse(readFileSync(join(folder, 'propel.lock'), 'utf8'))).toMatchObject({
    pid: process.pid,
    host: hostname(),
  });
  lock.release();
  expect(readdirSync(folder)).toEqual([]);
});

test('one lock a folder', () => {
  const lock = lockRunFolder(folder);
  expect(() => lockRunFolder(folder)).toThrow(RunLockedError);
  lock.release();
  lockRunFolder(folder).release();
});

describe('a lock of another process', () => {
  test('what a process that was killed at it has left goes with the next lock; what a live one has stays', async () => {
    const owner = (pid: number): string => JSON.stringify({ pid, started: null, host: hostname() });
    writeFileSync(join(folder, `propel.lock.${other.pid}`), owner(other.pid!));
    writeFileSync(join(folder, 'notes.stale.1'), 'mine');
    lockRunFolder(folder).release();
    expect(readdirSync(folder).sort()).toEqual(['notes.stale.1', `propel.lock.${other.pid}`]);
    await end(other);
    writeFileSync(join(folder, `propel.lock.stale.${other.pid}`), owner(other.pid!));
    writeFileSync(join(folder, `propel.lock.${other.pid}`), '{"pi');
    lockRunFolder(folder).release();
    expect(readdirSync(folder)).toEqual(['notes.stale.1']);
  });

  test('holds while the process lives', () => {
    writeLock({ pid: other.pid, started: null, host: hostname() });
    expect(() => lockRunFolder(folder)).toThrow(`is in use by process ${other.pid}; wait for it or stop it`);
  });

  test('is taken over when the process was killed', async () => {
    writeLock({ pid: other.pid, started: null, host: hostname() });
    await end(other);
    const lock = lockRunFolder(folder);
    expect(JSON.parse(readFileSync(join(folder, 'propel.lock'), 'utf8'))).toMatchObject({ pid: process.pid });
    expect(readdirSync(folder)).toEqual(['propel.lock']);
    lock.release();
  });

  test.runIf(process.platform === 'linux')('is taken over when its process id belongs to another process now', () => {
    writeLock({ pid: other.pid, started: 'an earlier boot 12345', host: hostname() });
    const lock = lockRunFolder(folder);
    expect(JSON.parse(readFileSync(join(folder, 'propel.lock'), 'utf8'))).toMatchObject({ pid: process.pid });
    lock.release();
  });

  test('on another machine cannot be judged, and holds', () => {
    writeLock({ pid: 1, started: null, host: 'another-machine' });
    expect(() => lockRunFolder(folder)).toThrow(/process 1 on another-machine; when it is gone, delete .*propel\.lock/);
  });

  test('that is damaged is taken over', () => {
    writeFileSync(join(folder, 'propel.lock'), '{"pid":');
    const lock = lockRunFolder(folder);
    expect(JSON.parse(readFileSync(join(folder, 'propel.lock'), 'utf8'))).toMatchObject({ pid: process.pid });
    lock.release();
  });

  test('is left alone by a release that comes too late', () => {
    const lock = lockRunFolder(folder);
    writeLock({ pid: other.pid, started: null, host: hostname() });
    lock.release();
    expect(existsSync(join(folder, 'propel.lock'))).toBe(true);
  });
});
