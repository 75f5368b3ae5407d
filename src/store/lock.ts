/** One lock a run folder: a file with its owner's process, taken over when that process is gone. */
import { linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { RunError } from '../errors.js';
import { withStoreErrors } from './sqlite-errors.js';

const LOCK_FILE = 'propel.lock';

/** Another live process works in the run folder. */
export class RunLockedError extends RunError {
  readonly folder: string;
  readonly ownerPid: number;

  constructor(folder: string, owner: HeldLock['owner']) {
    const where = owner.host === hostname() ? '' : ` on ${owner.host}`;
    const advice = where === '' ? 'wait for it or stop it' : `when it is gone, delete ${join(folder, LOCK_FILE)}`;
    super(
      `the run folder ${folder} is in use by process ${owner.pid}${where}; ${advice}, or choose another folder with --out`,
    );
    this.name = 'RunLockedError';
    this.folder = folder;
    this.ownerPid = owner.pid;
  }
}

/** Who holds a lock. A process id alone is not enough: ids are used again, after a restart of the machine or before. */
interface LockOwner {
  readonly pid: number;
  /** When the process started, in the kernel's words; null where the system does not tell. */
  readonly started: string | null;
  readonly host: string;
}

export interface RunLock {
  release(): void;
}

/** What a lock file that is already there says: who holds it. */
export interface HeldLock {
  readonly owner: { readonly pid: number; readonly host: string };
}

/**
 * Lock a run folder for this process. A lock whose process is gone, or whose process id now belongs to another process, is taken over.
 * Throws `RunLockedError` while the owner lives.
 */
export function lockRunFolder(folder: string): RunLock {
  const lock = lockFile(join(folder, LOCK_FILE));
  if ('owner' in lock) throw new RunLockedError(folder, lock.owner);
  return lock;
}

/** Whether a live process works in a run folder. */
export function isFolderInUse(folder: string): boolean {
  const held = read(join(folder, LOCK_FILE));
  const owner = held === null ? null : parse(held);
  return owner !== null && isAlive(owner);
}

/** Take the lock that a file stands for, or tell who has it. A lock whose process is gone is taken over. */
export function lockFile(path: string): RunLock | HeldLock {
  const own: LockOwner = { pid: process.pid, started: inspect(process.pid)?.started ?? null, host: hostname() };
  const ownText = `${JSON.stringify(own)}\n`;
  return withStoreErrors(path, () => {
    while (!create(path, ownText)) {
      const held = read(path);
      if (held === null) continue; // released in between
      const owner = parse(held);
      if (owner !== null && isAlive(owner)) return { owner };
      removeStale(path, held);
    }
    removeLeftovers(path);
    return {
      release: () => {
        if (read(path) === ownText) rmSync(path, { force: true });
      },
    };
  });
}

/** Make the lock file with its content in one step; false when there is one already. */
function create(path: string, content: string): boolean {
  const temporary = `${path}.${process.pid}`;
  try {
    writeFileSync(temporary, content);
    linkSync(temporary, path);
    return true;
  } catch (error) {
    if (isCode(error, 'EEXIST')) return false;
    throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** Move a stale lock away, and put it back if what was moved is a new lock that another process made in the meantime. */
function removeStale(path: string, stale: string): void {
  const moved = `${path}.stale.${process.pid}`;
  try {
    renameSync(path, moved);
  } catch (error) {
    if (isCode(error, 'ENOENT')) return;
    throw error;
  }
  if (read(moved) !== stale) linkSync(moved, path);
  rmSync(moved, { force: true });
}

/** Remove what processes that were killed while they took or tried for the lock have left beside it. */
function removeLeftovers(path: string): void {
  const folder = dirname(path);
  for (const name of readdirSync(folder)) {
    const pid = name.startsWith(`${basename(path)}.`) && /\.(?:stale\.)?(\d+)$/.exec(name)?.[1];
    if (!pid) continue;
    const file = join(folder, name);
    const owner = parse(read(file) ?? '') ?? { pid: Number(pid), started: null, host: hostname() };
    if (!isAlive(owner)) rmSync(file, { force: true });
  }
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (isCode(error, 'ENOENT')) return null;
    throw error;
  }
}

/** The owner that a lock file names; null when it is damaged, which a live process never leaves. */
function parse(text: string): LockOwner | null {
  try {
    const { pid, started, host } = JSON.parse(text) as Partial<LockOwner>;
    if (!Number.isInteger(pid) || typeof host !== 'string') return null;
    return { pid: pid!, started: typeof started === 'string' ? started : null, host };
  } catch {
    return null;
  }
}

/** Whether the owner still runs. What runs on another machine cannot be seen from here and counts as alive. */
function isAlive(owner: LockOwner): boolean {
  if (owner.host !== hostname()) return true;
  try {
    process.kill(owner.pid, 0);
  } catch (error) {
    if (isCode(error, 'ESRCH')) return false;
    // EPERM: it runs as another user.
  }
  const seen = inspect(owner.pid);
  if (seen === null || owner.started === null) return true;
  return !seen.ended && seen.started === owner.started;
}

/**
 * What Linux tells of a process: its boot and start time, which together belong to no other process, and whether it has ended and
 * only waits for its parent to notice. Null elsewhere.
 */
function inspect(pid: number): { readonly started: string; readonly ended: boolean } | null {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const status = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command, in brackets, may hold spaces and brackets: the fields after the last one are the state, then 18 more, then the start.
    const fields = status.slice(status.lastIndexOf(')') + 2).split(' ');
    return { started: `${boot} ${fields[19]}`, ended: fields[0] === 'Z' || fields[0] === 'X' };
  } catch {
    return null;
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
