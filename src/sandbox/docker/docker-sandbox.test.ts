/** The container sandbox as its users see it, and beside the embedded one: the same program, the same outcome. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { missing, notRun } from '../../../tests/docker-suite.js';
import { CASES } from '../cases.js';
import { LIBRARY_CASES } from '../module-cases.js';
import { DIFFERENCES, differenceCases } from '../differences.js';
import { ESCAPE_CASES, WITNESS } from '../escape-cases.js';
import { EXHAUSTION_CASES } from '../exhaustion-cases.js';
import { HOST_CASES } from '../host-cases.js';
import { IMPORT_CASES } from '../import-cases.js';
import { ISOLATION_CASES, SYSCALL, UNLOCK } from '../isolation-cases.js';
import type { Sandbox } from '../sandbox.js';
import { selfTest } from '../self-test.js';
import { createWasmSandbox } from '../wasm/wasm-sandbox.js';
import { createDockerSandbox, type DockerSandbox } from './docker-sandbox.js';

const IDENTITY = 'def f(x):\n    return x';

let sandbox: DockerSandbox;
let embedded: Sandbox;
beforeAll(async () => {
  if (missing !== null) return;
  sandbox = await createDockerSandbox({ size: 2 });
  embedded = await createWasmSandbox({ size: 1 });
});
afterAll(() => Promise.all([sandbox?.close(), embedded?.close()]));

const passes = (name: string): object => ({ name, ok: true, detail: '' });

describe.skipIf(missing !== null)(`docker sandbox: conformance${notRun}`, () => {
  it.each([...CASES, ...LIBRARY_CASES])('$name', async (each) => {
    expect(await selfTest(sandbox, [each])).toMatchObject([passes(each.name)]);
  });

  it.each(DIFFERENCES.map(({ name }, index) => ({ name, index })))(
    'version or word size: $name',
    async ({ name, index }) => {
      expect(await selfTest(sandbox, differenceCases(sandbox).slice(index, index + 1))).toMatchObject([passes(name)]);
      expect(await selfTest(embedded, differenceCases(embedded).slice(index, index + 1))).toMatchObject([passes(name)]);
    },
  );

  it('finds the same syntax facts as the embedded sandbox', async () => {
    const code = [
      'import os.path',
      'def f(items, k, *rest, unused=None):',
      '    total = 0',
      '    for x in items[::-1]:',
      '        if x > k and x % 2 or not rest:',
      '            total += len(str(x).strip())',
      '    return [y for y in sorted(items) if y], total, -123456789012345678901234567890',
    ].join('\n');
    const facts = async (one: Sandbox) => (await one.run({ code, calls: [] }, { facts: true })).facts;
    expect(await facts(sandbox)).toEqual(await facts(embedded));
    expect((await facts(sandbox))?.largestInteger).toBe('123456789012345678901234567890');
  });

  it('reads literal arguments as the embedded sandbox does, and executes nothing', async () => {
    const texts = [
      '1,2',
      '[ \'a\',"b" ]',
      'x = {2, 1}, y=-3',
      '{"k": (1,)}',
      '',
      '1e3',
      'None',
      'f(1)',
      'x',
      '1) + f(2',
    ];
    const more = ['[1', '*[1]', '**{}', '__import__("os")', '\ud800', '('.repeat(10_000), '-'.repeat(50_000)];
    const all = [...texts, ...more];
    expect(await sandbox.literals(all)).toEqual(await embedded.literals(all));
    expect(await sandbox.literals(texts.slice(0, 3))).toEqual(['1, 2', "['a', 'b']", 'x={1, 2}, y=-3']);
  });
});

describe.skipIf(missing !== null)(`docker sandbox: attacks${notRun}`, () => {
  let small: DockerSandbox;
  beforeAll(async () => {
    small = await createDockerSandbox({ size: 1, limits: { memoryMiB: 128 } });
  });
  afterAll(() => small.close());

  it.each([...EXHAUSTION_CASES, ...ESCAPE_CASES, ...IMPORT_CASES, ...ISOLATION_CASES, ...HOST_CASES])(
    '$name',
    async (attack) => {
      expect(await selfTest(small, [attack])).toMatchObject([passes(attack.name)]);
      expect(await selfTest(small, [WITNESS])).toMatchObject([passes(WITNESS.name)]);
    },
  );

  it('reach the kernel, so that what stops them is its filter', async () => {
    const { calls } = await small.run({
      code: `${SYSCALL}\ndef f(): return call(39, 172), call(57, 220, 17)`,
      calls: [''],
    });
    expect(calls[0]?.repr).toBe("('reached', 'stopped')");
  });

  it('do not find what an earlier program held', async () => {
    const secret = 'def f(): return "SEC" + "RET-7f3a" * 100000';
    await small.run({ code: secret, calls: [''] }, { determinism: false });
    const scan = `
for cell in __builtins__.__import__.__closure__:
    if type(cell.cell_contents).__name__ == 'Policy': cell.cell_contents.active = False
def f():
    import ctypes
    # Put together here, so that the program's own text does not hold it.
    needle = b'-7f3a'.join([b'RET'] * 4)
    count = scanned = 0
    gc = __import__('sys').modules['gc']
    gc.unfreeze()
    libc = ctypes.CDLL(None)
    libc.sbrk.restype = ctypes.c_size_t
    end, page = libc.sbrk(0), 4096
    # The heap, and each page that holds an object: what lies there is mapped, and no call is left that would tell of more.
    pages = {id(each) // page for each in gc.get_objects()}
    heap = [number for number in pages if 0 <= end - number * page < 1 << 27]
    spans = [(min(heap) * page, end)] + [(number * page, (number + 1) * page) for number in pages.difference(heap)]
    for start, end in spans:
        data = ctypes.string_at(start, end - start)
        scanned += len(data)
        count += data.count(needle)
        del data
    return scanned > 1 << 20, count < 10`;
    const { calls } = await small.run({ code: scan, calls: [''] }, { determinism: false });
    expect(calls[0]).toMatchObject({ outcome: 'ok', repr: '(True, True)' });
  });

  it('tell one signal from another', async () => {
    const crash = `${UNLOCK}
def f(kind):
    import ctypes
    if kind == 'address': return ctypes.string_at(8)
    if kind == 'abort': os.abort()
    if kind == 'stack':
        # Of C alone: neither Python's limit nor the memory's ends it first.
        compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        libc = ctypes.CDLL(None)
        two = ctypes.create_string_buffer(2)
        def again(a, b):
            libc.qsort(two, 2, 1, again_c)
            return 0
        again_c = compare(again)
        sys.setrecursionlimit(10 ** 9)
        libc.qsort(two, 2, 1, again_c)`;
    const told = async (kind: string): Promise<unknown> => {
      const { calls } = await small.run({ code: crash, calls: [`"${kind}"`] }, { determinism: false });
      return [calls[0]?.outcome, calls[0]?.detail];
    };
    expect(await told('address')).toEqual(['runtime_error', 'the interpreter gave up: SIGSEGV']);
    expect(await told('abort')).toEqual(['runtime_error', 'the interpreter gave up: SIGABRT']);
    expect(await told('stack')).toEqual(['runtime_error', 'RecursionError: the interpreter ran out of stack']);
  });

  it('leave no process and take no container with them', () => {
    expect(small.statistics).toMatchObject({ containers: 1, lost: 0, repeated: 0, leftOver: 0 });
  });
});

describe.skipIf(missing !== null)(`docker sandbox: run${notRun}`, () => {
  it('gives one result a call, and none for no calls', async () => {
    const two = await sandbox.run({ code: IDENTITY, calls: ['1', '"a"'] });
    expect(two.calls).toEqual([
      { outcome: 'ok', repr: '1', detail: '' },
      { outcome: 'ok', repr: "'a'", detail: '' },
    ]);
    expect(two.milliseconds).toBeGreaterThan(0);
    expect((await sandbox.run({ code: IDENTITY, calls: [] })).calls).toEqual([]);
  });

  it('refuses lone surrogates as a syntax error', async () => {
    const { calls } = await sandbox.run({ code: IDENTITY, calls: ['"\ud800"', '1'] });
    expect(calls.map(({ outcome }) => outcome)).toEqual(['syntax_error', 'syntax_error']);
  });

  it('runs many programs at once, each with its own result', async () => {
    const programs = Array.from({ length: 100 }, (_, index) => ({
      code: `k = ${index}\ndef f(x): return k * x`,
      calls: ['2'],
    }));
    const results = await Promise.all(programs.map((program) => sandbox.run(program)));
    expect(results.map(({ calls }) => calls[0]?.repr)).toEqual(programs.map((_, index) => String(2 * index)));
  });

  it('keeps to the limits of a single run', async () => {
    const code = 'def f(n):\n    return len(bytes(n << 20))';
    const little = await sandbox.run({ code, calls: ['10', '100'] }, { limits: { memoryMiB: 64 } });
    expect(little.calls.map(({ outcome }) => outcome)).toEqual(['ok', 'memory']);
    expect((await sandbox.run({ code, calls: ['100'] })).calls[0]?.repr).toBe(String(100 << 20));
    const over = sandbox.run({ code, calls: ['1'] }, { limits: { memoryMiB: 5000 } });
    await expect(over).rejects.toThrow("memoryMiB must lie between 32 and the containers' 512");
  });

  it('takes large programs and gives large results back', async () => {
    const code = `text = ${JSON.stringify('x'.repeat(3 << 20))}\ndef f(n):\n    return text[:n]`;
    const { calls } = await sandbox.run(
      { code, calls: ['1000000', '1000001', '9'] },
      { limits: { timeoutMs: 10_000 } },
    );
    expect(calls.map(({ repr }) => repr?.length)).toEqual([1_000_002, 1_000_003, 11]);
  });

  it('reads the clock and chance of its variant where determinism is not asked for', async () => {
    const code = 'import random, time, datetime\ndef f(): return random.random(), time.time(), datetime.datetime.now()';
    const runs = await Promise.all([0, 1, 2].map(() => sandbox.run({ code, calls: [''] }, { determinism: false })));
    expect(new Set(runs.map(({ calls }) => calls[0]?.repr)).size).toBe(1);
    expect(runs[0]?.calls[0]?.repr).toContain('1700000000.000001, datetime.datetime(2023, 11, 14, 22, 13, 20, 2)');
  });

  it('tells its interpreter, image and engine', () => {
    expect(sandbox.name).toBe('docker');
    expect(sandbox.size).toBe(2);
    expect(sandbox.versions).toEqual({
      python: expect.stringMatching(/^3\.1[12]\.\d+$/),
      image: expect.stringMatching(/^sha256:/),
      base: expect.stringMatching(/^(python:3\.12-slim|debian packages)$/),
      engine: expect.any(String),
    });
  });

  it('shows the first program of a container the interpreter that it shows to every later one', async () => {
    const look = `import sys
def f():
    gc, objects = sys.modules['gc'], [object() for _ in range(50)] + [[] for _ in range(50)] + [{} for _ in range(50)]
    counts = gc.get_count(), gc.get_stats(), len(gc.get_objects()), sys.getallocatedblocks(), sys.getrefcount(None), sys.getrefcount(())
    return sorted(sys.modules), counts, [id(each) - id(objects) for each in objects], sys.intern('an interned text') is None`;
    const fresh = await createDockerSandbox({ size: 1 });
    const seen = [];
    for (let turn = 0; turn < 4; turn++) {
      const { calls } = await fresh.run({ code: look, calls: [''] }, { determinism: false });
      seen.push(calls[0]?.repr);
    }
    await fresh.close();
    expect(seen[0]).toContain("'sys'");
    expect(seen[0]).not.toContain("'resource'");
    expect(seen.slice(1)).toEqual([seen[0], seen[0], seen[0]]);
  });

  it('answers sandbox_failure once closed', async () => {
    const other = await createDockerSandbox({ size: 1 });
    await other.close();
    expect((await other.run({ code: IDENTITY, calls: ['1'] })).calls).toEqual([
      { outcome: 'sandbox_failure', repr: null, detail: 'the sandbox is closed' },
    ]);
  });

  it('keeps no process alive that has nothing else to do', async () => {
    const built = fileURLToPath(new URL('../../../dist/sandbox/docker/docker-sandbox.js', import.meta.url));
    const script = `
      const { createDockerSandbox } = await import(${JSON.stringify(built)});
      const sandbox = await createDockerSandbox({ size: 2 });
      console.log((await sandbox.run({ code: 'def f(): return 42', calls: [''] })).calls[0].repr);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script]);
    let printed = '';
    child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number];
    expect({ code, printed }).toEqual({ code: 0, printed: '42\n' });
  });
});

describe.skipIf(missing !== null)(`docker sandbox: an image with packages${notRun}`, () => {
  it('lets programs import numpy, seen to like everything else', { timeout: 300_000 }, async () => {
    const science = await createDockerSandbox({ size: 1, image: 'numpy' });
    const call = async (expression: string): Promise<string> => {
      const { calls } = await science.run({ code: `import numpy as np\ndef f(): return ${expression}`, calls: [''] });
      return calls[0]?.repr ?? calls[0]?.outcome ?? '';
    };
    expect(await call('np.sort(np.array([3, 1, 2]))')).toBe('array([1, 2, 3])');
    expect(await call('np.random.default_rng(3).integers(0, 9)')).toBe('7');
    expect(await call('np.random.rand()')).toBe('nondeterministic');
    expect(await call('np.random.default_rng().random()')).toBe('nondeterministic');
    expect(await call('np.zeros(10 ** 9).sum()')).toBe('memory');
    expect(await call('__import__("socket")')).toBe('forbidden');
    await science.close();
  });
});
