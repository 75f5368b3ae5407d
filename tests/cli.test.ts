/** The compiled command as a child process: usage, exit codes, one line an error, and nothing but JSON with --json. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const MAIN = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'propel-cli-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs from a folder that is not the package's. */
function propel(...args: string[]): { code: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], { cwd: folder, encoding: 'utf8' });
  return { code: status, stdout, stderr };
}

function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const row = (snippet: string, input: string, output: string): string =>
  JSON.stringify({ snippet, input, output, imports: [] });
const DOUBLE = 'def f(x):\n    return x * 2';

describe('usage', () => {
  it('shows its commands when called without one, and with --help', () => {
    const { code, stdout } = propel('--help');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Usage: propel /);
    expect(stdout).toMatch(/^ {2}check /m);
    expect(stdout).toMatch(/^ {2}doctor /m);
    expect(propel()).toEqual({ code: 0, stdout, stderr: '' });
  });

  it('gives examples in the help of a command', () => {
    expect(propel('check', '--help').stdout).toContain('$ propel check tasks.jsonl --json');
  });

  it('tells its version', () => {
    expect(propel('--version').stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it.each([
    [['frobnicate'], "propel: unknown command 'frobnicate'; see --help"],
    [['chekc'], "propel: unknown command 'chekc' (Did you mean check?); see --help"],
    [['check'], "propel: missing required argument 'file'; see --help"],
    [['check', 'a.jsonl', '--frob'], "propel: unknown option '--frob'; see --help"],
    [
      ['check', 'a.jsonl', '--workers', '0'],
      "propel: option '--workers <n>' argument '0' is invalid. Give a whole number from 1.; see --help",
    ],
  ])('refuses %j with one line and exit code 2', (args, line) => {
    expect(propel(...args)).toEqual({ code: 2, stdout: '', stderr: `${line}\n` });
  });
});

describe('check', () => {
  it('counts outcomes and lists what was not reproduced', () => {
    const file = write('tasks.jsonl', `${row(DOUBLE, '3', '6')}\n${row(DOUBLE, '[1]', '[2]')}\n`);
    const { code, stdout } = propel('check', file, '--workers', '1');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^1 of 2 rows reproduced \(50\.0%\)\n/);
    expect(stdout).toMatch(/^recorded_output_differs {2}1$/m);
    expect(stdout).toMatch(/^1 {2}recorded_output_differs {2}recorded \[2\], came out as \[1, 1\]$/m);
  });

  it('prints one JSON document and nothing else with --json', () => {
    const endless = 'def f(x):\n    while True: pass';
    const rows = [row(DOUBLE, "'a'", "'aa'"), row(DOUBLE, "'a'", '"aa"'), row(endless, '1', '1')];
    const file = write('mixed.jsonl', rows.join('\n'));
    const { code, stdout, stderr } = propel('check', file, '--json', '--workers', '1', '--timeout', '300');
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      rows: 3,
      reproduced: 1,
      outcomes: { ok: 1, literal_equal: 1, timeout: 1 },
      programsPerSecond: expect.any(Number),
      results: [
        { index: 0, outcome: 'ok', reproduced: true, detail: '' },
        { index: 1, outcome: 'literal_equal', reproduced: false, detail: `recorded "aa", came out as 'aa'` },
        { index: 2, outcome: 'timeout', reproduced: false, detail: 'ran longer than 300 ms, twice' },
      ],
    });
    expect(stderr).toMatch(/^(check \d.*\n)*check: 1 of 3 recorded outputs came out again \(.*\)\n$/);
  });

  it('refuses a file that is cut off, naming the line', () => {
    const file = write('cut.jsonl', `${row(DOUBLE, '3', '6')}\n${row(DOUBLE, '4', '8').slice(0, 30)}`);
    const line = `propel: ${file}, line 2: the file ends in the middle of this row; fetch the file again, or remove the row\n`;
    expect(propel('check', file, '--json')).toEqual({ code: 2, stdout: '', stderr: line });
  });

  it('refuses a file that does not exist', () => {
    const line = 'propel: none.jsonl does not exist; give the path of a JSON Lines file\n';
    expect(propel('check', 'none.jsonl')).toEqual({ code: 2, stdout: '', stderr: line });
  });
});

describe('doctor', () => {
  it('tests every part and prints one JSON document with --json', () => {
    const { code, stdout, stderr } = propel('doctor', '--json');
    const { ready, versions, parts } = JSON.parse(stdout) as {
      ready: boolean;
      versions: Record<string, string>;
      parts: { kind: string; name: string; status: string }[];
    };
    expect(stderr).toBe('');
    expect(code).toBe(ready ? 0 : 1);
    expect(versions).toMatchObject({ node: process.versions.node, 'onnxruntime-node': '1.30.0' });
    expect(parts.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
      'provider cpu',
      'provider cuda',
      'provider webgpu',
      'sandbox wasm',
      'sandbox docker',
      'store SQLite',
      'model micro-world generator',
      'model micro-world solver',
    ]);
    const working = parts.filter(({ status }) => status === 'ok').map(({ name }) => name);
    expect(working).toEqual(expect.arrayContaining(['cpu', 'wasm', 'SQLite']));
    // A GPU in software takes its time.
  }, 300_000);
});

it('ends quietly when its reader has gone', async () => {
  const child = spawn(process.execPath, [MAIN, 'check', '--help'], { stdio: ['ignore', 'pipe', 'pipe'] });
  child.stdout.destroy();
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const code = await new Promise((resolve) => child.on('close', resolve));
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
});
