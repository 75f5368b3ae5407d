/** The Docker daemon: where it is, whether it answers, and calls to it that end. */
import type Docker from 'dockerode';

export type { default as Docker } from 'dockerode';

export interface Daemon {
  readonly docker: Docker;
  /** Of the engine: `20.10.24`. */
  readonly version: string;
}

const PING_TIMEOUT_MS = 3000;

/** The daemon that `DOCKER_HOST` names, else the local socket's. Throws one line on why it does not answer. */
export async function findDaemon(): Promise<Daemon> {
  // Loading it takes a while, and most commands never need it.
  const { default: Client } = await import('dockerode');
  const docker = new Client();
  try {
    const { Version } = await within(PING_TIMEOUT_MS, 'the Docker daemon', docker.version());
    return { docker, version: Version };
  } catch (cause) {
    throw new Error(`no Docker daemon answers: ${describeFault(cause)}`, { cause });
  }
}

/** Rejects when `what` has not settled in time. A call that comes too late is let go. */
export async function within<Value>(milliseconds: number, what: string, call: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not answer within ${milliseconds / 1000} s`)), milliseconds);
  });
  try {
    return await Promise.race([call, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** What an error of the client says, in one line. */
export function describeFault(error: unknown): string {
  const { message, json, code } = error as { message?: string; json?: { message?: string }; code?: string };
  return (json?.message ?? (message || code) ?? String(error)).trim().split('\n')[0] ?? '';
}

/** The daemon says that what was asked for is not there, or is being removed already. */
export function isGone(error: unknown): boolean {
  const { statusCode } = error as { statusCode?: number };
  return statusCode === 404 || statusCode === 409;
}
