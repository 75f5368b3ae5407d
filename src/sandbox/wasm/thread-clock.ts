/** The processor time of a thread: what a program used, however busy the machine was. */
import { readFileSync, readlinkSync } from 'node:fs';

/** The calling thread's name for `threadMilliseconds`; null where the system keeps no such clock (Linux does). */
export function currentThread(): string | null {
  try {
    return readlinkSync('/proc/thread-self');
  } catch {
    return null;
  }
}

/** Milliseconds of processor time that a thread of this process has used; null when that cannot be told. */
export function threadMilliseconds(thread: string | null): number | null {
  if (thread === null) return null;
  try {
    const [nanoseconds] = readFileSync(`/proc/${thread}/schedstat`, 'utf8').split(' ');
    return Number(nanoseconds) / 1e6;
  } catch {
    return null;
  }
}
