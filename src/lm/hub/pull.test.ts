/** Pulls from a local server that behaves like the hub: what is fetched, where it lies, and what becomes of every fault. */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FakeHub, gitHash, sha256 } from '../../../tests/fake-hub.js';
import type { Fault } from '../../../tests/fake-hub.js';
import { startProxy } from '../../../tests/fake-proxy.js';
import {
  addTokenizer,
  MICRO_WORLD_VOCABULARY,
  temporaryFolder,
  TINY_LLAMA,
  tinyCheckpoint,
} from '../../../tests/tiny-checkpoint.js';
import { openCheckpoint } from '../checkpoint.js';
import { cachedModels, CachedModel, parseHubModel } from './cache.js';
import { pullModel } from './pull.js';
import type { PulledModel } from './pull.js';
import type { HubSettings } from './settings.js';
import { verifySnapshot } from './verify.js';

const ID = 'org/tiny-model';
const MODEL = { id: ID, revision: 'main' };
const COMMIT = 'c0ffee'.padEnd(40, '0');
const WEIGHTS = 'model.safetensors';

/** A tiny checkpoint's files, and others that a repository also has. */
function repositoryFiles(): Record<string, Buffer> {
  const folder = tinyCheckpoint({ ...TINY_LLAMA, vocabulary: MICRO_WORLD_VOCABULARY });
  addTokenizer(folder);
  const own = Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
  return {
    ...own,
    'README.md': Buffer.from('a model'),
    'pytorch_model.bin': Buffer.alloc(64),
    'original/consolidated.safetensors': Buffer.alloc(64),
  };
}

interface Setting {
  readonly hub: FakeHub;
  readonly settings: HubSettings;
  readonly cached: CachedModel;
  readonly files: Record<string, Buffer>;
  readonly pull: (change?: Partial<HubSettings>) => Promise<PulledModel>;
  /** What a pull throws. */
  readonly refusal: (change?: Partial<HubSettings>) => Promise<string>;
  /** What the progress said of the file in hand. */
  readonly said: readonly string[];
}

async function start(faults: Readonly<Record<string, Fault[]>> = {}): Promise<Setting> {
  const hub = await FakeHub.start();
  const files = repositoryFiles();
  hub.repositories.set(ID, { commit: COMMIT, files });
  for (const [name, list] of Object.entries(faults)) hub.faults.set(name, list);
  const cache = join(temporaryFolder(), 'hub');
  const said: string[] = [];
  const settings: HubSettings = {
    endpoint: hub.endpoint,
    token: null,
    offline: false,
    cache,
    proxies: { http: null, https: null, except: '' },
    retryDelay: 5,
    stallAfter: 2000,
  };
  const pull = (change: Partial<HubSettings> = {}) =>
    pullModel(MODEL, { ...settings, ...change }, (_done, _total, text) => said.push(text));
  const refusal = async (change: Partial<HubSettings> = {}) => {
    const error = await pull(change).then(
      () => new Error('nothing thrown'),
      (thrown: unknown) => thrown as Error,
    );
    return `${error.name}: ${error.message}`.replaceAll(hub.endpoint, 'HUB');
  };
  return { hub, settings, cached: new CachedModel(cache, ID), files, pull, refusal, said };
}

/** Breaks of the transfer of the weights, each when so many bytes of them lie in the cache. */
function breakWeights({ hub, cached, files }: Setting, sizes: readonly number[]): void {
  const incomplete = `${cached.blob(sha256(files[WEIGHTS]!))}.incomplete`;
  const there = (): number => statSync(incomplete, { throwIfNoEntry: false })?.size ?? 0;
  const faults = sizes.map((size, i): Fault => {
    return { kind: 'break', after: size - (sizes[i - 1] ?? 0), once: () => there() >= size };
  });
  hub.faults.set(WEIGHTS, faults);
}

describe('a pull', () => {
  it('brings the files that are needed, in the layout that Hugging Face’s tools share', async () => {
    const { settings, files, pull } = await start();
    const pulled = await pull();
    const needed = ['config.json', 'model.safetensors', 'tokenizer.json', 'tokenizer_config.json'];
    const root = join(settings.cache, 'models--org--tiny-model');
    expect(pulled).toEqual({
      id: ID,
      commit: COMMIT,
      folder: join(root, 'snapshots', COMMIT),
      files: 4,
      bytes: needed.reduce((sum, name) => sum + files[name]!.length, 0),
      downloaded: needed.reduce((sum, name) => sum + files[name]!.length, 0),
    });
    expect(readdirSync(pulled.folder).toSorted()).toEqual(needed);
    expect(readlinkSync(join(pulled.folder, WEIGHTS))).toBe(`../../blobs/${sha256(files[WEIGHTS]!)}`);
    expect(readlinkSync(join(pulled.folder, 'config.json'))).toBe(`../../blobs/${gitHash(files['config.json']!)}`);
    expect(readFileSync(join(root, 'refs', 'main'), 'utf8')).toBe(COMMIT);
    expect(readdirSync(join(root, 'blobs')).every((name) => /^[0-9a-f]{40,64}$/.test(name))).toBe(true);
    for (const name of needed) expect(readFileSync(join(pulled.folder, name))).toEqual(files[name]);
    expect(openCheckpoint(pulled.folder).config.vocabulary).toBe(MICRO_WORLD_VOCABULARY);
    expect(cachedModels(settings.cache)).toEqual([ID]);
  });

  it('shows its token to the hub and not to the host that it is redirected to', async () => {
    const { hub, files, pull } = await start();
    hub.repositories.set(ID, { commit: COMMIT, files, token: 'hf_secret' });
    await pull({ token: 'hf_secret' });
    const of = (server: string): unknown[] => hub.seen.filter((r) => r.server === server).map((r) => r.authorization);
    expect(new Set(of('hub'))).toEqual(new Set(['Bearer hf_secret']));
    expect(of('cdn')).toEqual([undefined]);
  });

  it('a second time fetches nothing; of a new commit, what has changed', async () => {
    const { hub, cached, files, pull } = await start();
    await pull();
    expect(await pull()).toMatchObject({ downloaded: 0, files: 4 });
    const config = Buffer.from(files['config.json']!.toString().replace('1e-05', '2e-05').replace('0.00001', '2e-05'));
    expect(config).not.toEqual(files['config.json']);
    const next = 'd'.repeat(40);
    hub.repositories.set(ID, { commit: next, files: { ...files, 'config.json': config } });
    expect(await pull()).toMatchObject({ downloaded: config.length, commit: next });
    expect([...cached.snapshots()]).toEqual([
      [COMMIT, []],
      [next, ['main']],
    ]);
  });

  it('brings the shards that the index names, and no others', async () => {
    const { hub, files, pull } = await start();
    const { [WEIGHTS]: whole, ...rest } = files;
    const index = { weight_map: { a: 'model-1.safetensors', b: 'model-2.safetensors', c: 'model-1.safetensors' } };
    const sharded = {
      ...rest,
      'model.safetensors.index.json': Buffer.from(JSON.stringify(index)),
      'model-1.safetensors': whole!,
      'model-2.safetensors': Buffer.from('two'),
      'model-3.safetensors': Buffer.from('three'),
    };
    hub.repositories.set(ID, { commit: COMMIT, files: sharded });
    const { folder } = await pull();
    expect(readdirSync(folder).filter((name) => name.startsWith('model'))).toEqual([
      'model-1.safetensors',
      'model-2.safetensors',
      'model.safetensors.index.json',
    ]);
  });

  it('of two at once fetches every file once', async () => {
    const setting = await start();
    const { hub, pull } = setting;
    breakWeights(setting, [100]);
    const [a, b] = await Promise.all([pull(), pull()]);
    expect(a.folder).toBe(b.folder);
    expect(Math.min(a.downloaded, b.downloaded)).toBe(0);
    expect(hub.requestsFor('tokenizer.json')).toHaveLength(1);
    expect(hub.seen.filter(({ server }) => server === 'cdn')).toHaveLength(2);
  });
});

describe('a proxy', () => {
  const NAME = 'hub.test';
  const through = async (except: string, token = 'hf_secret') => {
    const setting = await start();
    const proxy = await startProxy(NAME, setting.hub.endpoint);
    setting.hub.repositories.set(ID, { commit: COMMIT, files: setting.files, token });
    const proxies = { http: proxy.address.replace('//', '//user:pass%21@'), https: null, except };
    return { ...setting, proxy, change: { endpoint: `http://${NAME}`, token, proxies } };
  };

  it('is asked for all that is fetched; it alone gets its password, and the hub alone the token', async () => {
    const { hub, files, pull, proxy, change } = await through('');
    const { folder } = await pull(change);
    expect(readFileSync(join(folder, WEIGHTS))).toEqual(files[WEIGHTS]);
    const hosts = proxy.seen.map(({ target }) => new URL(target).hostname);
    expect(hosts).toEqual([...Array<string>(hosts.length - 1).fill(NAME), '127.0.0.1']);
    const password = `Basic ${Buffer.from('user:pass!').toString('base64')}`;
    expect(new Set(proxy.seen.map(({ headers }) => headers['proxy-authorization']))).toEqual(new Set([password]));
    const tokens = (server: string) => new Set(hub.seen.filter((r) => r.server === server).map((r) => r.authorization));
    expect(tokens('hub')).toEqual(new Set(['Bearer hf_secret']));
    expect(tokens('cdn')).toEqual(new Set([undefined]));
  });

  it('is gone around to the hosts of NO_PROXY', async () => {
    const { hub, pull, proxy, change } = await through('127.0.0.1');
    await pull(change);
    expect(new Set(proxy.seen.map(({ target }) => new URL(target).hostname))).toEqual(new Set([NAME]));
    const seen = proxy.seen.length;
    await pull({ ...change, endpoint: hub.endpoint });
    expect(proxy.seen).toHaveLength(seen);
  });

  it('tunnels what is encrypted, and sees no token of it', async () => {
    const { proxy, refusal, change } = await through('');
    expect(await refusal({ ...change, endpoint: `https://${NAME}` })).toMatch(
      /^RunError: org\/tiny-model: the connection to hub\.test failed \(Proxy response \(403\) .*\), 6 times; /,
    );
    expect(proxy.seen).toHaveLength(6);
    for (const { method, target, headers } of proxy.seen) {
      expect(`${method} ${target}`).toBe(`CONNECT ${NAME}:443`);
      expect(headers.authorization).toBe(undefined);
    }
  });

  it('that does not answer is told', async () => {
    const { refusal, change } = await through('');
    const proxies = { ...change.proxies, http: 'http://127.0.0.1:9' };
    expect(await refusal({ ...change, proxies })).toContain(
      'connection to hub.test failed (connect ECONNREFUSED 127.0.0.1:9)',
    );
  });
});

describe('a transfer that', () => {
  it('breaks off goes on where it broke', async () => {
    const setting = await start();
    const { hub, files, cached, pull } = setting;
    breakWeights(setting, [1000, 1500]);
    await pull();
    const ranges = hub.seen.filter(({ server }) => server === 'cdn').map(({ range }) => range);
    expect(ranges).toEqual([undefined, 'bytes=1000-', 'bytes=1500-']);
    expect(readFileSync(cached.blob(sha256(files[WEIGHTS]!)))).toEqual(files[WEIGHTS]);
  });

  it('breaks off again and again ends only when nothing more comes', async () => {
    const setting = await start();
    const { cached, files, pull, refusal, hub } = setting;
    breakWeights(
      setting,
      Array.from({ length: 20 }, (_, i) => 100 * (i + 1)),
    );
    await pull();
    expect(existsSync(cached.blob(sha256(files[WEIGHTS]!)))).toBe(true);
    hub.repositories.set(ID, { commit: 'e'.repeat(40), files: { ...files, [WEIGHTS]: Buffer.alloc(1000, 1) } });
    hub.faults.set(
      WEIGHTS,
      Array.from({ length: 6 }, () => ({ kind: 'status', status: 503 })),
    );
    expect(await refusal()).toBe(
      'RunError: model.safetensors: the hub answered 503, 6 times; the same command goes on where it stopped',
    );
  });

  it('an ended process left is gone on with', async () => {
    const { hub, files, cached, pull } = await start();
    const blob = cached.blob(sha256(files[WEIGHTS]!));
    mkdirSync(join(blob, '..'), { recursive: true });
    writeFileSync(`${blob}.incomplete`, files[WEIGHTS]!.subarray(0, 777));
    const { downloaded, bytes } = await pull();
    expect(bytes - downloaded).toBe(777);
    expect(hub.seen.find(({ server }) => server === 'cdn')!.range).toBe('bytes=777-');
    expect(readFileSync(blob)).toEqual(files[WEIGHTS]);
    expect(existsSync(`${blob}.incomplete`)).toBe(false);
  });

  it.each([
    ['begins wrongly', (right: Buffer) => Buffer.alloc(300, right[0]! + 1)],
    ['is whole and wrong', (right: Buffer) => Buffer.alloc(right.length, right[0]! + 1)],
    ['is too long', (right: Buffer) => Buffer.concat([right, right])],
  ])('an ended process left and that %s is begun anew', async (_, left) => {
    const { files, cached, pull } = await start();
    const blob = cached.blob(sha256(files[WEIGHTS]!));
    mkdirSync(join(blob, '..'), { recursive: true });
    writeFileSync(`${blob}.incomplete`, left(files[WEIGHTS]!));
    await pull();
    expect(readFileSync(blob)).toEqual(files[WEIGHTS]);
  });

  it('was whole already needs no request', async () => {
    const { hub, files, cached, pull } = await start();
    const blob = cached.blob(sha256(files[WEIGHTS]!));
    mkdirSync(join(blob, '..'), { recursive: true });
    writeFileSync(`${blob}.incomplete`, files[WEIGHTS]!);
    await pull();
    expect(hub.seen.some(({ server }) => server === 'cdn')).toBe(false);
  });

  it('gets the whole instead of a range takes the whole', async () => {
    const setting = await start();
    const { hub, files, cached, pull } = setting;
    breakWeights(setting, [1000]);
    hub.faults.get(WEIGHTS)!.push({ kind: 'whole' });
    await pull();
    expect(readFileSync(cached.blob(sha256(files[WEIGHTS]!)))).toEqual(files[WEIGHTS]);
  });

  it('stands still is broken off and gone on with', async () => {
    const { hub, pull } = await start({ [WEIGHTS]: [{ kind: 'stall', after: 1000 }] });
    await pull({ stallAfter: 300 });
    expect(hub.seen.filter(({ server }) => server === 'cdn').map(({ range }) => range)).toEqual([
      undefined,
      'bytes=1000-',
    ]);
  });

  it('comes spoiled is fetched again; spoiled twice is refused, and nothing of it is kept', async () => {
    const once = await start({ [WEIGHTS]: [{ kind: 'spoil' }] });
    await once.pull();
    const twice = await start({ [WEIGHTS]: [{ kind: 'spoil' }, { kind: 'spoil' }] });
    const right = sha256(twice.files[WEIGHTS]!);
    const wrong = sha256(Buffer.alloc(twice.files[WEIGHTS]!.length, 7));
    expect(await twice.refusal()).toBe(
      `RunError: model.safetensors of ${ID} came with hash ${wrong}, the hub lists ${right}: something on the way changes it; try another network`,
    );
    expect(existsSync(twice.cached.blob(right))).toBe(false);
    expect(existsSync(`${twice.cached.blob(right)}.incomplete`)).toBe(false);
    expect(twice.cached.commit('main')).toBeNull();
  });

  it('meets a busy server waits as long as it asks', async () => {
    const { pull } = await start({
      listing: [{ kind: 'status', status: 429, headers: { 'retry-after': '0.3' } }],
      'config.json': [{ kind: 'status', status: 500 }],
    });
    const began = performance.now();
    await pull();
    expect(performance.now() - began).toBeGreaterThan(295);
  });

  it('is refused by the storage asks the hub for a new address, and waits aloud', async () => {
    const { hub, pull, said } = await start({ [WEIGHTS]: [{ kind: 'status', status: 403 }] });
    await pull();
    expect(hub.requestsFor(WEIGHTS).map(({ server }) => server)).toEqual(['hub', 'cdn', 'hub', 'cdn']);
    expect(said.filter((text) => text.includes('again in'))).toEqual([
      expect.stringMatching(
        /^model\.safetensors: 127\.0\.0\.1:\d+, where the hub keeps it, answered 403; again in 1 s$/,
      ),
    ]);
  });

  it('cannot begin says which host does not answer', async () => {
    const { refusal } = await start();
    expect(await refusal({ endpoint: 'http://127.0.0.1:9', retryDelay: 1 })).toMatch(
      /^RunError: org\/tiny-model: the connection to 127\.0\.0\.1:9 failed \(.*\), 6 times; /,
    );
  });
});

describe('a model that cannot be had is explained in a line:', () => {
  it.each([
    [
      'missing, or private without a token',
      null,
      `UserError: ${ID} does not exist or is private: check the name, or set HF_TOKEN`,
    ],
    ['missing, or private with a token', 'hf_x', `UserError: ${ID} does not exist at HUB: check the name`],
  ])('%s', async (_, token, message) => {
    const { hub, refusal } = await start();
    hub.repositories.clear();
    expect(await refusal({ token })).toContain(message);
  });

  it.each([
    ['without a token', null, 'then set HF_TOKEN to your access token'],
    ['with a token', 'hf_x', 'then use the HF_TOKEN of an account that has it'],
  ])('gated, %s', async (_, token, advice) => {
    const { hub, files, refusal } = await start();
    hub.repositories.set(ID, { commit: COMMIT, files, gated: true });
    expect(await refusal({ token })).toBe(`UserError: ${ID} is gated: ask for access at HUB/${ID}, ${advice}`);
  });

  it('of another revision', async () => {
    const { settings } = await start();
    const pull = pullModel({ id: ID, revision: 'v9' }, settings, () => {});
    await expect(pull).rejects.toMatchObject({
      name: 'UserError',
      message: expect.stringContaining("no revision 'v9'"),
    });
  });

  it('with HF_HUB_OFFLINE set', async () => {
    const { hub, refusal } = await start();
    expect(await refusal({ offline: true })).toBe(`UserError: HF_HUB_OFFLINE is set: unset it to pull ${ID}`);
    expect(hub.seen).toEqual([]);
  });

  it('not in a format that can be read', async () => {
    const { hub, files, refusal } = await start();
    const { [WEIGHTS]: _, ...pickled } = files;
    hub.repositories.set(ID, { commit: COMMIT, files: pickled });
    expect(await refusal()).toContain('has no model.safetensors: only safetensors weights can be read');
    const { 'tokenizer.json': __, ...slow } = files;
    hub.repositories.set(ID, { commit: COMMIT, files: slow });
    expect(await refusal()).toContain('has no tokenizer.json');
  });

  it('from a server that is no hub', async () => {
    const { hub, refusal } = await start();
    hub.repositories.set(ID, { commit: 'x', files: {} });
    expect(await refusal()).toBe('RunError: HUB does not answer like a hub: check HF_ENDPOINT');
  });
});

describe('a model’s name', () => {
  it.each([
    ['Qwen/Qwen2.5-3B-Instruct', { id: 'Qwen/Qwen2.5-3B-Instruct', revision: 'main' }],
    ['org/name@v1.0', { id: 'org/name', revision: 'v1.0' }],
    ['org/name@refs/pr/7', { id: 'org/name', revision: 'refs/pr/7' }],
    ['gpt2', null],
    ['data/micro-world/generator', null],
    ['../x', null],
    ['org/..', null],
    ['org/name@../../etc', null],
    ['/etc/passwd', null],
    ['org/name@', null],
  ])('%s', (text, model) => {
    expect(parseHubModel(text)).toEqual(model);
  });
});

describe('hashing a snapshot', () => {
  it('finds the file that has changed since', async () => {
    const { files, cached, pull } = await start();
    const { folder } = await pull();
    expect(lstatSync(join(folder, WEIGHTS)).isSymbolicLink()).toBe(true);
    expect(await verifySnapshot(folder, () => {})).toEqual({ damaged: [], checked: 4 });
    const blob = cached.blob(sha256(files[WEIGHTS]!));
    const changed = Buffer.from(files[WEIGHTS]!);
    changed[changed.length - 1]! ^= 1;
    writeFileSync(blob, changed);
    expect(await verifySnapshot(folder, () => {})).toEqual({ damaged: [{ file: WEIGHTS, blob }], checked: 4 });
  });
});
