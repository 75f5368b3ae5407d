/** Models by name: folders, hub ids from the cache, what `list` and `check` say of them. */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FakeHub } from '../../tests/fake-hub.js';
import { temporaryFolder } from '../../tests/tiny-checkpoint.js';
import { hubSettings } from '../lm/hub/settings.js';
import type { HubSettings } from '../lm/hub/settings.js';
import { checkModel, findModel, listModels, pullModels } from './models.js';
import { packageRoot } from './paths.js';

const ID = 'org/micro';
const COMMIT = 'a'.repeat(40);
const silent = () => ({ update: () => {}, done: () => {} });

/** A hub with the micro-world's generator, and an empty cache. */
async function start(): Promise<{ hub: FakeHub; settings: HubSettings }> {
  const hub = await FakeHub.start();
  const folder = join(packageRoot(), 'data/micro-world/generator');
  const names = ['config.json', 'model.safetensors', 'tokenizer.json', 'tokenizer_config.json'];
  const files = Object.fromEntries(names.map((name) => [name, readFileSync(join(folder, name))]));
  hub.repositories.set(ID, { commit: COMMIT, files });
  const cache = join(temporaryFolder(), 'hub');
  return {
    hub,
    settings: { ...hubSettings({}), endpoint: hub.endpoint, cache, retryDelay: 5, stallAfter: 2000 },
  };
}

describe('a model is found', () => {
  it('as a folder, of the working folder or the package', () => {
    expect(findModel('data/micro-world/generator', 'models.policy')).toBe(
      join(packageRoot(), 'data/micro-world/generator'),
    );
  });

  it('as a hub id once it has been pulled, offline too', async () => {
    const { settings } = await start();
    expect(() => findModel(ID, 'models.policy', settings)).toThrow(
      `models.policy ${ID} is no folder and is not in the cache ${settings.cache}; run 'propel models pull ${ID}' first`,
    );
    const [pulled] = await pullModels([ID], silent, settings);
    const offline = { ...settings, endpoint: 'http://127.0.0.1:9', offline: true };
    expect(findModel(ID, 'models.policy', offline)).toBe(pulled!.folder);
    expect(findModel(`${ID}@${COMMIT}`, 'models.policy', offline)).toBe(pulled!.folder);
    expect(() => findModel(`${ID}@other`, 'models.policy', offline)).toThrow('HF_HUB_OFFLINE is set');
  });

  it('nowhere when its name is neither', () => {
    expect(() => findModel('no-such-model', 'models.policy')).toThrow(
      /^models\.policy no-such-model does not exist; give a path .* or a hub id such as Qwen\/Qwen2\.5-3B-Instruct$/,
    );
  });
});

describe('a pull', () => {
  it('refuses what is no hub id before it fetches anything', async () => {
    const { hub, settings } = await start();
    await expect(pullModels([ID, 'not an id'], silent, settings)).rejects.toThrow("'not an id' is no hub id");
    expect(hub.seen).toEqual([]);
  });
});

describe('a list', () => {
  it('tells what can be run, and why others cannot', async () => {
    const { settings } = await start();
    expect(listModels(settings)).toEqual([]);
    const [pulled] = await pullModels([ID], silent, settings);
    const broken = join(settings.cache, 'models--org--broken', 'snapshots', COMMIT);
    mkdirSync(broken, { recursive: true });
    writeFileSync(join(broken, 'tokenizer.json'), '{}');
    writeFileSync(join(broken, 'config.json'), '{"model_type": "mamba"}');
    writeFileSync(join(broken, 'model.safetensors'), 'weights');
    const half = join(settings.cache, 'models--org--half', 'snapshots', COMMIT);
    mkdirSync(half, { recursive: true });
    writeFileSync(join(half, 'config.json'), '{}');
    const { folder, bytes } = pulled!;
    expect(listModels(settings)).toEqual([
      {
        id: 'org/broken',
        revisions: [],
        commit: COMMIT,
        folder: broken,
        bytes: 32,
        problem: expect.stringMatching(/^config\.json: model_type 'mamba' is not supported; supported are /),
      },
      {
        id: 'org/half',
        revisions: [],
        commit: COMMIT,
        folder: half,
        bytes: 2,
        problem: "not whole: 'propel models pull org/half' goes on",
      },
      { id: ID, revisions: ['main'], commit: COMMIT, folder, bytes, problem: null },
    ]);
  });
});

describe('a check', () => {
  it('says what a model is, and finds its hashes right', async () => {
    const { settings } = await start();
    await pullModels([ID], silent, settings);
    expect(await checkModel(ID, silent, settings)).toMatchObject({
      family: 'llama',
      types: ['F32'],
      hasChat: false,
      ends: [2],
      hashesChecked: 4,
    });
  });

  it('names the file that is damaged, and what to do', async () => {
    const { settings } = await start();
    const [pulled] = await pullModels([ID], silent, settings);
    const file = join(pulled!.folder, 'model.safetensors');
    const bytes = readFileSync(file);
    bytes[bytes.length - 1]! ^= 1;
    writeFileSync(file, bytes);
    await expect(checkModel(ID, silent, settings)).rejects.toThrow(
      /^org\/micro: the hash of model\.safetensors is wrong, as of 1 of 4 files; delete .*\/blobs\/[0-9a-f]{64} and pull again$/,
    );
  });

  it('of a folder outside a cache compares no hashes', async () => {
    const folder = join(temporaryFolder(), 'model');
    cpSync(join(packageRoot(), 'data/micro-world/generator'), folder, { recursive: true });
    expect(await checkModel(folder, silent)).toMatchObject({ family: 'llama', hashesChecked: 0 });
  });
});
