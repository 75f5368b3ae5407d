/**
 * One thread of a process uses WebGPU: a second one crashes ONNX Runtime, so it is refused. The claim is an environment variable, the
 * one thing that threads share without having been handed it; a worker sees it when it was started with `SHARE_ENV`.
 */
import { threadId } from 'node:worker_threads';
import { RunError } from '../errors.js';

const CLAIM = 'PROPEL_WEBGPU_THREAD';
let sessions = 0;

/** Count one more session of this thread. @throws RunError when another thread of the process has sessions. */
export function enterWebGpu(): void {
  const own = `${process.pid}/${threadId}`;
  const claim = process.env[CLAIM];
  // A process that was started by one with a claim inherits it: the claim of another process is none.
  if (claim !== undefined && claim !== own && claim.startsWith(`${process.pid}/`)) {
    throw new RunError(
      `thread ${claim.split('/')[1]} of this process already uses WebGPU, and a second one crashes: share its engine, or start another process`,
    );
  }
  process.env[CLAIM] = own;
  sessions++;
}

/** A session of this thread is gone; with the last one the claim. */
export function leaveWebGpu(): void {
  if (--sessions === 0) delete process.env[CLAIM];
}
