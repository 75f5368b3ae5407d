/** `propel models`, as a user runs it, against a local server that behaves like the hub. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ggufFile, LLAMA, LLAMA_TENSORS } from '../scripts/fuzz/seeds/gguf.mjs';
import { packageRoot } from '../src/pipeline/paths.js';
import { FakeHub } from './fake-hub.js';
import { startProxy } from './fake-proxy.js';
import { temporaryFolder } from './tiny-checkpoint.js';

const ID = 'org/micro';
const COMMIT = 'b'.repeat(40);
/** Several processes, each of which starts the whole command. */
const LONG = { timeout: 240_000 };
const FOLDER = join(packageRoot(), 'data/micro-world/generator');

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface Setting {
  readonly hub: FakeHub;
  readonly blobs: string;
  readonly start: (args: readonly string[], env?: Readonly<Record<string, string>>) => ChildProcess;
  readonly propel: (args: readonly string[], env?: Readonly<Record<string, string>>) => Promise<Ended>;
}

async function setUp(): Promise<Setting> {
  const hub = await FakeHub.start();
  const names = ['config.json', 'model.safetensors', 'tokenizer.json', 'tokenizer_config.json'];
  const files = Object.fromEntries(names.map((name) => [name, readFileSync(join(FOLDER, name))]));
  hub.repositories.set(ID, { commit: COMMIT, files });
  const home = temporaryFolder();
  const start: Setting['start'] = (args, env = {}) =>
    spawn(process.execPath, [join(packageRoot(), 'dist/cli/main.js'), ...args], {
      env: { PATH: process.env['PATH'], HF_HOME: home, HF_ENDPOINT: hub.endpoint, ...env },
    });
  const propel: Setting['propel'] = (args, env) =>
    new Promise((resolve, reject) => {
      const child = start(args, env);
      const output = { stdout: '', stderr: '' };
      child.stdout!.on('data', (data: Buffer) => (output.stdout += data.toString()));
      child.stderr!.on('data', (data: Buffer) => (output.stderr += data.toString()));
      child.on('error', reject);
      child.on('close', (code) => resolve({ code, ...output }));
    });
  return { hub, blobs: join(home, 'hub', 'models--org--micro', 'blobs'), start, propel };
}

const last = (text: string): string => text.trimEnd().split('\n').at(-1)!;

describe('propel models', () => {
  it('pulls, lists and checks a model, offline once it is there', LONG, async () => {
    const { hub, blobs, propel } = await setUp();
    expect(await propel(['models', 'list'])).toMatchObject({
      code: 0,
      stdout: "no models in the cache; 'propel models pull org/name' fetches one\n",
    });
    const pulled = await propel(['models', 'pull', ID, '--json']);
    expect(pulled.code).toBe(0);
    expect(JSON.parse(pulled.stdout)).toEqual([
      expect.objectContaining({ id: ID, commit: COMMIT, files: 4, folder: join(blobs, '..', 'snapshots', COMMIT) }),
    ]);
    expect(pulled.stderr).toMatch(/^MB of org\/micro: 4 files, \d+\.\d MB, of it downloaded \d+\.\d MB/m);
    const requests = hub.seen.length;
    const offline = { HF_HUB_OFFLINE: '1' };
    expect((await propel(['models', 'list'], offline)).stdout).toMatch(
      /^org\/micro +main +bbbbbbbb +\d+\.\d MB +ready$/m,
    );
    const checked = await propel(['models', 'check', ID], offline);
    expect(checked.stdout).toMatch(/^family +llama$/m);
    expect(checked.stdout).toMatch(/^hashes +4 files as the hub lists them$/m);
    expect(hub.seen).toHaveLength(requests);
  });

  it('goes on with the pull of a process that was killed', LONG, async () => {
    const { hub, blobs, start, propel } = await setUp();
    hub.faults.set('model.safetensors', [{ kind: 'stall', after: 5000 }]);
    const child = start(['models', 'pull', ID]);
    const incomplete = (): string | undefined =>
      existsSync(blobs) ? readdirSync(blobs).find((name) => name.endsWith('.incomplete')) : undefined;
    const bytes = (): number => (incomplete() ? statSync(join(blobs, incomplete()!)).size : 0);
    await expect.poll(bytes, { timeout: 30_000 }).toBe(5000);
    const ended = new Promise((resolve) => child.on('close', resolve));
    child.kill('SIGKILL');
    await ended;
    expect((await propel(['models', 'list'])).stdout).toMatch(
      /^org\/micro .* not whole: 'propel models pull org\/micro' goes on$/m,
    );
    expect((await propel(['models', 'pull', ID])).code).toBe(0);
    expect(hub.seen.filter(({ server }) => server === 'cdn').map(({ range }) => range)).toEqual([
      undefined,
      'bytes=5000-',
    ]);
    expect(incomplete()).toBeUndefined();
  });

  it('goes through the proxy of the environment', LONG, async () => {
    const { hub, propel } = await setUp();
    const proxy = await startProxy('hub.test', hub.endpoint);
    const env = { HF_ENDPOINT: 'http://hub.test', HTTP_PROXY: proxy.address, NO_PROXY: '127.0.0.1' };
    expect((await propel(['models', 'pull', ID], env)).code).toBe(0);
    // The list, three small files and the weights, whose storage is a host of NO_PROXY.
    expect(proxy.seen.map(({ target }) => new URL(target).hostname)).toEqual(Array(5).fill('hub.test'));
    expect(hub.seen.filter(({ server }) => server === 'cdn')).toHaveLength(1);
    expect(last((await propel(['models', 'pull', ID], { HTTPS_PROXY: 'socks5://127.0.0.1' })).stderr)).toBe(
      'propel: HTTPS_PROXY is not the address of a proxy for HTTP; give one such as http://proxy.example.org:3128',
    );
  });

  it('of two processes at once fetches every file once', LONG, async () => {
    const { hub, propel } = await setUp();
    const both = await Promise.all([propel(['models', 'pull', ID]), propel(['models', 'pull', ID])]);
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    expect(hub.seen.filter(({ server }) => server === 'cdn')).toHaveLength(1);
  });

  it.each([
    [
      ['models', 'pull', 'micro'],
      "propel: 'micro' is no hub id; give org/name, or org/name@revision for a branch, tag or commit",
    ],
    [['models', 'pull', 'org/none'], 'propel: org/none does not exist or is private: check the name, or set HF_TOKEN'],
    [['models', 'pull', `${ID}@v2`], "propel: org/micro has no revision 'v2'; see "],
    [['models', 'check', 'org/none'], 'propel: model org/none is no folder and is not in the cache '],
    [['config', '--set', 'models.policy='], 'propel: --set models.policy=: '],
  ])('%j ends with one line and exit code 2', async (args, message) => {
    const { propel } = await setUp();
    const { code, stderr } = await propel(args);
    expect(last(stderr)).toContain(message);
    expect(code).toBe(2);
  });

  it('a run with a model that was not pulled says what to do', async () => {
    const { propel } = await setUp();
    const out = join(temporaryFolder(), 'run');
    const { code, stderr } = await propel(['label', '--out', out, '--set', `models.policy=${ID}`]);
    expect(last(stderr)).toContain(`models.policy ${ID} is no folder and is not in the cache `);
    expect(last(stderr)).toContain(`; run 'propel models pull ${ID}' first`);
    expect(code).toBe(2);
  });

  it('a run takes a pulled model by its id', LONG, async () => {
    const { propel } = await setUp();
    await propel(['models', 'pull', ID]);
    const out = join(temporaryFolder(), 'run');
    const settings = [
      `models.policy=${ID}`,
      'label.tasks=2',
      'label.batch=16',
      'engine.provider=cpu',
      'engine.threads=1',
    ];
    const labelled = await propel(['label', '--out', out, '--json', ...settings.flatMap((set) => ['--set', set])]);
    expect(labelled.stderr).not.toContain('propel: ');
    expect(labelled.code).toBe(0);
    expect(JSON.parse(labelled.stdout)).toMatchObject({ labelled: expect.any(Number) as number });
  });
});

describe('propel models import', () => {
  it('makes a GGUF file into a folder that is opened like any other', LONG, async () => {
    const { propel } = await setUp();
    const folder = temporaryFolder();
    const file = join(folder, 'tiny.gguf');
    writeFileSync(file, ggufFile({ metadata: LLAMA, tensors: LLAMA_TENSORS }));
    const out = join(folder, 'tiny');
    const { code, stdout, stderr } = await propel([
      'models',
      'import',
      file,
      '--out',
      out,
      '--dtype',
      'bf16',
      '--json',
    ]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ folder: out, family: 'llama', quantised: { F32: 11 }, dtype: 'bf16' });
    expect(last(stderr)).toMatch(/^MB of tiny: 0\.0 MB of weights in bf16 \(/);
    expect((await propel(['models', 'check', out])).stdout).toMatch(/^family +llama$/m);
    const again = await propel(['models', 'import', file, '--out', out]);
    expect(again).toMatchObject({ code: 2, stderr: `propel: ${out} is not empty; give another --out\n` });
  });

  it('refuses a damaged file in one line', LONG, async () => {
    const { propel } = await setUp();
    const folder = temporaryFolder();
    const file = join(folder, 'tiny.gguf');
    writeFileSync(file, ggufFile({ metadata: LLAMA, tensors: LLAMA_TENSORS }).subarray(0, 500));
    const out = join(folder, 'tiny');
    expect(await propel(['models', 'import', file, '--out', out])).toMatchObject({
      code: 2,
      stderr: `propel: ${file} is not a usable GGUF file: it is cut off; fetch it again\n`,
    });
    expect(readdirSync(folder)).toEqual(['tiny.gguf']);
  });
});
