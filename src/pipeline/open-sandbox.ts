/** Starts the sandbox of a command. */
import { RunError } from '../errors.js';
import type { Sandbox } from '../sandbox/sandbox.js';
import { createWasmSandbox } from '../sandbox/wasm/wasm-sandbox.js';

/** @param workers programs at once; undefined: one a core. @throws RunError when it cannot start */
export async function openSandbox(workers?: number): Promise<Sandbox> {
  try {
    return await createWasmSandbox(workers === undefined ? {} : { size: workers });
  } catch (cause) {
    const [why] = (cause as Error).message.split('\n');
    throw new RunError(`the sandbox cannot start: ${why}; install propel again, and see 'propel doctor'`, { cause });
  }
}
