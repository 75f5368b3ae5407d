import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createFakeSandbox, failed, type FakeSandbox } from '../../../tests/fake-sandbox.js';
import { RunError, UserError } from '../../errors.js';
import { checkFile, type CheckFileReport } from './check-file.js';

const folder = mkdtempSync(join(tmpdir(), 'check-file-'));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function fileOf(content: string | Uint8Array): string {
  const path = join(folder, `${files++}.jsonl`);
  writeFileSync(path, content);
  return path;
}
const linesOf = (rows: readonly object[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join('');
const check = (
  content: string | Uint8Array,
  sandbox = createFakeSandbox((_, input) => input),
): Promise<CheckFileReport> => checkFile(fileOf(content), async () => sandbox);
const sent = ({ requests }: FakeSandbox): string[] => requests.map(({ program }) => program.code);
const row = (input: string, output = input): object => ({
  snippet: 'def f(x):\n    return x',
  input,
  output,
  imports: [],
});

describe('checking a file', () => {
  it('counts what is reproduced to the character, what is equal, and what differs', async () => {
    const sandbox = createFakeSandbox((_, input) =>
      input === '4' ? failed('timeout', 'ran longer than 2000 ms') : input,
    );
    const report = await check(linesOf([row('1'), row("'a'", '"a"'), row('3', '30'), row('4'), row('5', '')]), sandbox);
    expect(report).toMatchObject({
      rows: 5,
      reproduced: 1,
      literalEqual: 1,
      outcomes: { ok: 1, literal_equal: 1, recorded_output_differs: 2, timeout: 1 },
      // The fake sandbox's n-th program takes n milliseconds.
      medianMilliseconds: 3,
    });
    expect(report.results).toEqual([
      { index: 0, outcome: 'ok', reproduced: true, detail: '' },
      { index: 1, outcome: 'literal_equal', reproduced: false, detail: `recorded "a", came out as 'a'` },
      { index: 2, outcome: 'recorded_output_differs', reproduced: false, detail: 'recorded 30, came out as 3' },
      { index: 3, outcome: 'timeout', reproduced: false, detail: 'ran longer than 2000 ms' },
      { index: 4, outcome: 'recorded_output_differs', reproduced: false, detail: 'recorded nothing, came out as 5' },
    ]);
    expect(report.programsPerSecond).toBeGreaterThan(0);
    expect(report.startupMilliseconds).toBeGreaterThanOrEqual(0);
  });

  it('counts calls apart from rows, those that a recording can be held against', async () => {
    const sandbox = createFakeSandbox((_, input) =>
      input === '9' ? failed('runtime_error', "ModuleNotFoundError: No module named 'sympy'") : input,
    );
    const rows = [
      { snippet: 'def f(x): return x', inputs: ['1', '2', '3', '4'], outputs: ['1', '2.0', '', '5'] },
      { snippet: 'def f(x): return x', inputs: ['9'], outputs: ['9'] },
    ];
    const report = await check(linesOf(rows), sandbox);
    expect(report).toMatchObject({ rows: 2, reproduced: 0, calls: { total: 5, counted: 3, equal: 2 } });
    expect((await check(linesOf([row('1'), row('2', '3')]))).calls).toEqual({ total: 2, counted: 2, equal: 1 });
  });

  it('never sends the recorded output', async () => {
    const sandbox = createFakeSandbox(() => '1');
    await check(linesOf([row('1', "'canary'")]), sandbox);
    expect(JSON.stringify(sandbox.requests)).not.toContain('canary');
  });

  it('says where a recording was cut', async () => {
    const sandbox = createFakeSandbox(() => '[1, 2, 3, 4]');
    const { results } = await check(linesOf([row('1', '[1, ...4]')]), sandbox);
    expect(results[0]?.detail).toBe('recorded [1, ...4] (cut in the middle), came out as [1, 2, 3, 4]');
  });

  it('reproduces an induction row only when every output comes out', async () => {
    const sandbox = createFakeSandbox((_, input) => (input === '3' ? '[1,2]' : input));
    const induction = (outputs: readonly string[]) => ({
      snippet: 'def f(x): return x',
      inputs: ['1', '2', '3'],
      outputs,
    });
    const { results, reproduced } = await check(
      linesOf([induction(['1', '2', '[1,2]']), induction(['1', '2', '[1, 2]']), induction(['1', '5', '[1, 2]'])]),
      sandbox,
    );
    expect(sandbox.requests[0]?.program.calls).toEqual(['1', '2', '3']);
    expect(reproduced).toBe(1);
    expect(results.map(({ outcome }) => outcome)).toEqual(['ok', 'literal_equal', 'recorded_output_differs']);
    expect(results[2]?.detail).toBe('call 2 of 3: recorded 5, came out as 2');
  });

  it("takes CRUXEval's fields, multi-line inputs, imports apart, and a function by another name", async () => {
    const sandbox = createFakeSandbox(() => '1');
    const report = await check(
      linesOf([
        { code: 'def f(x): return x', input: '1', output: '1', id: 'sample_0' },
        { snippet: 'def area(x): return pi', input: '[\n 1\n]', output: '1', imports: ['from math import pi'] },
        {
          snippet: 'import math\ndef f(x): return g(x)\ndef g(x): return 1',
          input: '1',
          output: '1',
          imports: ['import math'],
        },
      ]),
      sandbox,
    );
    expect(report.reproduced).toBe(3);
    expect(sent(sandbox)).toEqual([
      'def f(x): return x',
      'from math import pi\ndef area(x): return pi\nf = area',
      'import math\ndef f(x): return g(x)\ndef g(x): return 1',
    ]);
    expect(sandbox.requests[1]?.program.calls).toEqual(['[\n 1\n]']);
  });

  it('reads rows that end without a line break, are parted by empty lines, or hold other separators', async () => {
    const report = await check(`${JSON.stringify(row('1'))}\r\n\n${JSON.stringify(row("'\u2028'"))}`);
    expect(report).toMatchObject({ rows: 2, reproduced: 2 });
  });

  it('evaluates a recording that is no literal in a run of its own, which the program does not meet', async () => {
    const program = 'def f(x): return x';
    const sandbox = createFakeSandbox((code, input) => (code === program ? "{'k': 1}" : `"{'k': ${input.length}}"`));
    const report = await check(linesOf([{ ...row('1'), snippet: program, output: 'dict(k=1)' }]), sandbox);
    expect(report.outcomes).toEqual({ recorded_output_differs: 1 });
    expect(sandbox.requests.map(({ program: { code, calls } }) => [code === program, calls])).toEqual([
      [true, ['1']],
      [false, ['dict(k=1)']],
      [false, ["{'k': 1}"]],
    ]);
  });

  it('reports each row as it is done', async () => {
    const done: number[] = [];
    const path = fileOf(linesOf([row('1'), row('2'), row('3')]));
    await checkFile(path, async () => createFakeSandbox((_, input) => input), { onRow: (rows) => done.push(rows) });
    expect(done).toEqual([1, 2, 3]);
  });

  it('fails when the sandbox does, and closes it', async () => {
    let closed = false;
    const dead = {
      ...createFakeSandbox(() => failed('sandbox_failure', 'no worker')),
      close: async () => void (closed = true),
    };
    const checking = check(linesOf([row('1')]), dead);
    await expect(checking).rejects.toThrow(new RunError('the fake sandbox keeps failing: no worker'));
    expect(closed).toBe(true);
  });
});

describe('a bad file', () => {
  const good = JSON.stringify(row('1'));
  it.each([
    ['a malformed row', `${good}\n{"snippet": oops}\n${good}\n`, 'line 2: not valid JSON'],
    ['a row cut off', `${good}\n${good.slice(0, -9)}`, 'line 2: the file ends in the middle of this row'],
    ['no rows', '\n\n', 'holds no rows'],
    ['a missing field', '{"snippet": "def f(x): return x", "output": "1"}\n', 'line 1: field input: '],
    ['a field of another type', '{"code": "def f(x): return x", "input": 1, "output": "1"}\n', 'line 1: field input: '],
    ['a row that is no object', '[1]\n', 'line 1: '],
    ['a row without an end', ' '.repeat((64 << 20) + 1), 'line 1: longer than 64 MiB; give one row a line'],
    [
      'more inputs than a program is run on',
      `{"snippet": "def f(x): return x", "inputs": [${'"1",'.repeat(1000)}"1"], "outputs": ["1"]}\n`,
      'line 1: field inputs: at most 1000',
    ],
    [
      'more imports than a program has',
      `{"snippet": "def f(x): return x", "input": "1", "output": "1", "imports": [${'"a",'.repeat(1000)}"b"]}\n`,
      'line 1: field imports: at most 1000 import statements',
    ],
    ['bytes that are no text', Uint8Array.of(0x7b, 0xff, 0xfe, 0x0a), 'is not UTF-8 text'],
  ])('is one clear line: %s', async (_, content, message) => {
    const error: unknown = await check(content).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UserError);
    expect(error).toMatchObject({ exitCode: 2, message: expect.stringContaining(message) });
    expect((error as UserError).message).toMatch(/^[^\n]*\.jsonl[^\n]*$/);
  });

  it('is named when it does not exist or is a folder', async () => {
    const open = async (): Promise<FakeSandbox> => createFakeSandbox(() => '1');
    await expect(checkFile(join(folder, 'none.jsonl'), open)).rejects.toThrow('none.jsonl does not exist');
    await expect(checkFile(folder, open)).rejects.toThrow('is a folder');
  });
});
