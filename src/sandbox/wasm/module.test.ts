import { describe, expect, it } from 'vitest';
import { loadPythonModule, rewriteModule } from './module.js';

describe('the rewritten module', async () => {
  const { bytes, sha256 } = await loadPythonModule();
  const rewritten = rewriteModule(bytes, 1000);
  const module = new WebAssembly.Module(new Uint8Array(rewritten));

  it('comes from the one build whose function indices are known', () => {
    expect(sha256).toBe('e5dc5a398b07b54ea8fdb503bf68fb583d533f10ec3f930963e02b9505f7a763');
  });

  it('exports the run-string function and the stack pointer beside what it had', () => {
    expect(WebAssembly.Module.exports(module)).toEqual([
      { name: 'memory', kind: 'memory' },
      { name: '_start', kind: 'function' },
      { name: 'wasi_vfs_pack_fs', kind: 'function' },
      { name: 'run_string', kind: 'function' },
      { name: '__stack_pointer', kind: 'global' },
    ]);
  });

  it('imports nothing but WASI functions', () => {
    const namespaces = WebAssembly.Module.imports(module).map((entry) => `${entry.module} ${entry.kind}`);
    expect(new Set(namespaces)).toEqual(new Set(['wasi_snapshot_preview1 function']));
  });

  it('is half as large, without its debug sections', () => {
    expect(bytes.length).toBe(26_267_204);
    expect(rewritten.length).toBeLessThan(14_000_000);
    expect(WebAssembly.Module.customSections(module, 'name')).toEqual([]);
  });

  it('refuses a memory below its own minimum', () => {
    expect(() => rewriteModule(bytes, 10)).toThrow('below the module');
  });
});
