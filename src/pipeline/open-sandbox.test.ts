import { afterEach, describe, expect, it, vi } from 'vitest';
import { openSandbox } from './open-sandbox.js';

const silent = () => ({ update: () => {}, done: () => {} });

describe('the embedded sandbox of a command', () => {
  afterEach(() => vi.restoreAllMocks());

  it("is opened for the programs' own memory: none of them waits for a second module to be compiled", async () => {
    const compile = vi.spyOn(WebAssembly, 'compile');
    const limits = { memoryMiB: 96 };
    const sandbox = await openSandbox({ kind: 'wasm', workers: 1, limits }, silent);
    try {
      const { calls } = await sandbox.run(
        { code: 'def f(n): return len(bytes(n << 20))', calls: ['1', '200'] },
        { limits },
      );
      expect(calls.map(({ outcome }) => outcome)).toEqual(['ok', 'memory']);
      expect(compile).toHaveBeenCalledTimes(1);
    } finally {
      await sandbox.close();
    }
  });
});
