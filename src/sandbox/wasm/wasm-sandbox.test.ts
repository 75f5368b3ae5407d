/** The WASM sandbox as its users see it. Worker threads run the last build in dist/. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CASES } from '../cases.js';
import { LIBRARY_CASES } from '../module-cases.js';
import type { Sandbox, SyntaxFacts } from '../sandbox.js';
import { selfTest } from '../self-test.js';
import { createWasmSandbox } from './wasm-sandbox.js';

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await createWasmSandbox({ size: 2 });
});
afterAll(() => sandbox.close());

const IDENTITY = 'def f(x):\n    return x';

describe('ordinary programs', () => {
  it.each([...CASES, ...LIBRARY_CASES])('$name', async (each) => {
    expect(await selfTest(sandbox, [each])).toMatchObject([{ name: each.name, ok: true, detail: '' }]);
  });
});

describe('run', () => {
  it('gives one result a call, and none for no calls', async () => {
    const two = await sandbox.run({ code: IDENTITY, calls: ['1', '"a"'] });
    expect(two.calls).toEqual([
      { outcome: 'ok', repr: '1', detail: '' },
      { outcome: 'ok', repr: "'a'", detail: '' },
    ]);
    expect(two.facts).toBeNull();
    expect(two.milliseconds).toBeGreaterThan(0);
    expect((await sandbox.run({ code: IDENTITY, calls: [] })).calls).toEqual([]);
  });

  it('refuses lone surrogates as a syntax error', async () => {
    const { calls } = await sandbox.run({ code: IDENTITY, calls: ['"\ud800"', '1'] });
    expect(calls.map(({ outcome }) => outcome)).toEqual(['syntax_error', 'syntax_error']);
  });

  it('lets programs that depend on chance through when determinism is not asked for', async () => {
    const code = 'import random, time\ndef f():\n    return type(random.random() + time.time()).__name__';
    const { calls } = await sandbox.run({ code, calls: [''] }, { determinism: false });
    expect(calls).toEqual([{ outcome: 'ok', repr: "'float'", detail: '' }]);
  });

  it('gives the same answer to the same program, also where it is not deterministic', async () => {
    const program = {
      code: 'import random\ndef f():\n    return random.random(), id([]), {"a", "b", "c"}',
      calls: [''],
    };
    const runs = await Promise.all(Array.from({ length: 6 }, () => sandbox.run(program, { determinism: false })));
    expect(new Set(runs.map(({ calls }) => calls[0]?.repr)).size).toBe(1);
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
    const small = await sandbox.run({ code, calls: ['10', '100'] }, { limits: { memoryMiB: 64 } });
    expect(small.calls.map(({ outcome }) => outcome)).toEqual(['ok', 'memory']);
    const usual = await sandbox.run({ code, calls: ['100'] });
    expect(usual.calls[0]?.repr).toBe(String(100 << 20));
  });

  it('gives a time-out to all calls: none of them has handed in its result', async () => {
    const code = 'def f(x):\n    while x: pass';
    const { calls, milliseconds } = await sandbox.run(
      { code, calls: ['0', '1'] },
      { limits: { timeoutMs: 200 }, facts: true },
    );
    expect(calls.map(({ outcome }) => outcome)).toEqual(['timeout', 'timeout']);
    expect(milliseconds).toBe(200);
  });

  it('marks only the call that is out of order as nondeterministic', async () => {
    const code = 'def f(x, seen=[]):\n    seen.append(x)\n    return x if x < 3 else list(seen)';
    const { calls } = await sandbox.run({ code, calls: ['1', '2', '3'] });
    expect(calls.map(({ outcome }) => outcome)).toEqual(['ok', 'ok', 'nondeterministic']);
  });

  it('frees the memory of programs that took much', async () => {
    const code = 'def f(n):\n    return len(bytes(n))';
    for (let index = 0; index < 12; index++) {
      const { calls } = await sandbox.run({ code, calls: [String(200 << 20)] }, { determinism: false });
      expect(calls[0]?.repr).toBe(String(200 << 20));
    }
    expect(process.memoryUsage().rss).toBeLessThan(2.5 * 2 ** 30);
  });
});

describe('facts', () => {
  const factsOf = async (code: string): Promise<SyntaxFacts | null> =>
    (await sandbox.run({ code, calls: [] }, { facts: true })).facts;

  it('counts what the syntax tree holds', async () => {
    const code = [
      'import os.path',
      'from collections import Counter',
      '',
      'def f(items, k, *rest, unused=None):',
      '    total = 0',
      '    for x in items[::-1]:',
      '        if x > k and x % 2 or not rest:',
      '            total += len(str(x).strip())',
      '    return [y for y in Counter(items).most_common(1000) if y], total',
    ].join('\n');
    expect(await factsOf(code)).toEqual({
      topLevel: ['Import', 'ImportFrom', 'FunctionDef'],
      functions: [{ name: 'f', parameters: ['items', 'k', 'rest', 'unused'], used: ['items', 'k', 'rest'] }],
      nodes: expect.objectContaining({ For: 1, If: 1, BoolOp: 2, Mod: 1, ListComp: 1, AugAssign: 1, Slice: 1, Not: 1 }),
      calledNames: { len: 1, str: 1, Counter: 1 },
      calledAttributes: { strip: 1, most_common: 1 },
      attributes: ['most_common', 'strip'],
      imports: ['collections', 'os.path'],
      reversedSlices: 1,
      largestInteger: '1000',
      // Module, FunctionDef, For, If, AugAssign, Call len, Call strip, Attribute, Call str, Name, Load.
      depth: 11,
      // 1, for, if, and, or, comprehension, its if.
      cyclomatic: 7,
      lines: 8,
      // total, x, y.
      variables: 3,
    });
  });

  it('gives huge integers as text', async () => {
    expect((await factsOf('x = -123456789012345678901234567890'))?.largestInteger).toBe(
      '123456789012345678901234567890',
    );
  });

  it('are there for programs that fail or never end, and null for those that do not parse', async () => {
    const limits = { timeoutMs: 300 };
    expect((await sandbox.run({ code: 'def f(): 1/0', calls: [''] }, { facts: true })).facts?.lines).toBe(1);
    expect(await factsOf('def f(:')).toBeNull();
    const endless = await sandbox.run({ code: 'while True: pass', calls: [''] }, { facts: true, limits });
    expect(endless.calls[0]?.outcome).toBe('timeout');
  });

  it('cannot be changed by the program', async () => {
    const code = 'import sys, json\njson.dumps = lambda *a: "{}"\nsys.modules["ast"].parse = None\ndef f(): return 1';
    expect((await sandbox.run({ code, calls: [''] }, { facts: true })).facts?.topLevel).toHaveLength(4);
  });
});

describe('literals', () => {
  it('reads literal arguments and gives them canonically', async () => {
    const texts = ['1,2', '[ \'a\',"b" ]', 'x = {2, 1}, y=-3', '{"k": (1,)}', '', '1e3', '"""a\nb"""', 'None'];
    expect(await sandbox.literals(texts)).toEqual(
      ['1, 2', "['a', 'b']", null, "{'k': (1,)}", '', '1000.0', "'a\\nb'", 'None'].with(2, 'x={1, 2}, y=-3'),
    );
  });

  it('gives null for what is not literal, and executes nothing', async () => {
    const texts = ['f(1)', 'x', '1) + f(2', '[1', '*[1]', '**{}', '__import__("os")', '\ud800', '('.repeat(10_000)];
    expect(await sandbox.literals(texts)).toEqual(texts.map(() => null));
  });
});

describe('what depends on the word size or the version of Python', () => {
  it.each([
    ['the largest index', 'import sys\ndef f(): return sys.maxsize', '2147483647'],
    ['the modulus of hashes', 'def f(): return hash(2 ** 31 + 6)', '7'],
    ['sizes of objects', 'import sys\ndef f(): return sys.getsizeof([])', '28'],
    ['compensated sums of floats (3.12)', 'def f(): return sum([0.1] * 10)', '1.0'],
    ['quotes inside f-strings (3.12)', "def f(): return f'{'a'}'", "'a'"],
  ])('%s', async (_name, code, repr) => {
    const { calls } = await sandbox.run({ code, calls: [''] });
    expect(calls[0]?.repr).toBe(repr);
  });
});

describe('life', () => {
  it('tells its interpreter and build', () => {
    expect(sandbox.name).toBe('wasm');
    expect(sandbox.size).toBe(2);
    expect(sandbox.versions).toEqual({
      python: '3.12.0',
      wasm: 'sha256:e5dc5a398b07b54ea8fdb503bf68fb583d533f10ec3f930963e02b9505f7a763',
    });
  });

  it('refuses sizes and memories that cannot work', async () => {
    await expect(createWasmSandbox({ size: 0 })).rejects.toThrow('size');
    await expect(createWasmSandbox({ limits: { memoryMiB: 8 } })).rejects.toThrow('memoryMiB');
  });

  it('answers sandbox_failure once closed', async () => {
    const other = await createWasmSandbox({ size: 1 });
    await other.close();
    expect((await other.run({ code: IDENTITY, calls: ['1'] })).calls).toEqual([
      { outcome: 'sandbox_failure', repr: null, detail: 'the sandbox is closed' },
    ]);
  });

  it('keeps no process alive that has nothing else to do', async () => {
    const built = fileURLToPath(new URL('../../../dist/sandbox/wasm/wasm-sandbox.js', import.meta.url));
    const script = `
      const { createWasmSandbox } = await import(${JSON.stringify(built)});
      const sandbox = await createWasmSandbox({ size: 2 });
      console.log((await sandbox.run({ code: 'def f(): return 42', calls: [''] })).calls[0].repr);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script]);
    let printed = '';
    child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number];
    expect({ code, printed }).toEqual({ code: 0, printed: '42\n' });
  });

  it('reports its rate', async () => {
    const count = 300;
    const started = performance.now();
    const runs = Array.from({ length: count }, (_, index) =>
      sandbox.run({ code: `def f(a):\n    return sorted(a)[:${index}]`, calls: ['[3, 1, 2]'] }),
    );
    const results = await Promise.all(runs);
    const rate = count / ((performance.now() - started) / 1000);
    console.log(`${rate.toFixed(0)} programs a second, determinism checked, ${sandbox.size} workers`);
    expect(results.every(({ calls }) => calls[0]?.outcome === 'ok')).toBe(true);
  });
});
