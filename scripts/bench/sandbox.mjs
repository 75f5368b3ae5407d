// The sandbox's benchmarks: programs a second, and a restored snapshot against a Python process a program.
import { execFileSync } from 'node:child_process';
import { createWasmSandbox } from '../../dist/sandbox/wasm/wasm-sandbox.js';

const PROGRAMS = 200;
const PROCESSES = 10;
const program = (i) => ({
  code: `def f(a, k):\n    s = 0\n    for i, x in enumerate(a):\n        s += x * i % k\n    return [s, sorted(a), ${i}]`,
  calls: ['[3, 1, 2], 7'],
});

export async function rows({ rounds }) {
  const size = 2;
  const sandbox = await createWasmSandbox({ size });
  try {
    const all = Array.from({ length: PROGRAMS }, (_, i) => program(i));
    const rate = async (options) => {
      const started = performance.now();
      const results = await Promise.all(all.map((one) => sandbox.run(one, options)));
      if (!results.every(({ calls: [call] }) => call.outcome === 'ok'))
        throw new Error('a benchmark program did not run');
      return (PROGRAMS / (performance.now() - started)) * 1000;
    };
    const best = async (measure) => {
      let most = 0;
      for (let round = 0; round < rounds; round++) most = Math.max(most, await measure());
      return most;
    };
    await rate({ determinism: false });
    const once = await best(() => rate({ determinism: false }));
    const confirmed = await best(() => rate({}));
    const row = { name: `sandbox, one pass, ${size} workers`, unit: 'programs/s', ours: once };
    return [
      python() ? { ...row, peer: 'a python3 process a program', theirs: await best(async () => processRate()) } : row,
      { name: `sandbox, determinism confirmed, ${size} workers`, unit: 'programs/s', ours: confirmed },
    ];
  } finally {
    await sandbox.close();
  }
}

function python() {
  try {
    execFileSync('python3', ['-c', '0']);
    return true;
  } catch {
    return false;
  }
}

function processRate() {
  const started = performance.now();
  for (let i = 0; i < PROCESSES; i++) {
    const { code, calls } = program(i);
    execFileSync('python3', ['-I', '-c', `${code}\nprint(repr(f(${calls[0]})))`]);
  }
  return (PROCESSES / (performance.now() - started)) * 1000;
}
