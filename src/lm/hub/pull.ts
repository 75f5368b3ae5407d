/** A model from the hub into the cache: the files that are needed, each whole and checked, and then the snapshot's name. */
import { existsSync, statfsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { RunError, UserError } from '../../errors.js';
import { lockFile } from '../../store/lock.js';
import { readWeightMap, WEIGHTS_FILE, WEIGHTS_INDEX } from '../weight-files.js';
import { makeFolder } from '../../store/files.js';
import { CachedModel, formatHubModel } from './cache.js';
import type { HubModel } from './cache.js';
import { downloadBlob } from './download.js';
import type { HubFile } from './download.js';
import { get, withRetries } from './requests.js';
import type { RetryHooks } from './requests.js';
import type { HubSettings } from './settings.js';

/** What a model cannot do without, beside its weights. */
const REQUIRED = ['config.json', 'tokenizer.json', 'tokenizer_config.json'];
const OPTIONAL = ['generation_config.json', 'special_tokens_map.json', 'chat_template.jinja'];

export interface PulledModel {
  readonly id: string;
  readonly commit: string;
  /** The snapshot's folder: a checkpoint. */
  readonly folder: string;
  readonly files: number;
  readonly bytes: number;
  /** Of them, those that were not there yet. */
  readonly downloaded: number;
}

/** Told of bytes that are there, of all that are needed as far as is known, and of the file in hand. */
export type PullProgress = (bytes: number, total: number, file: string) => void;

/** Milliseconds between looks at a lock that another process holds. */
const LOCK_INTERVAL = 250;

/**
 * Fetch what is missing of a model. Another process that pulls the same model is waited for, and its files are then found.
 * @throws UserError for what the hub refuses or the model lacks; RunError for a transfer that cannot be finished
 */
export async function pullModel(model: HubModel, settings: HubSettings, progress: PullProgress): Promise<PulledModel> {
  const name = formatHubModel(model);
  if (settings.offline) throw new UserError(`HF_HUB_OFFLINE is set: unset it to pull ${name}`);
  const { commit, files } = await listFiles(model, settings, (fault, wait) => progress(0, 1, waiting(fault, wait)));
  const cached = new CachedModel(settings.cache, model.id);
  makeFolder(dirname(cached.lockPath));
  let lock = lockFile(cached.lockPath);
  while ('owner' in lock) {
    progress(0, 1, `process ${lock.owner.pid} pulls it already: waiting`);
    await sleep(LOCK_INTERVAL);
    lock = lockFile(cached.lockPath);
  }
  try {
    const pull = new Pull(model, commit, cached, settings, progress);
    await pull.fetch(smallFiles(name, files));
    await pull.fetch(weightFiles(name, files, cached.snapshot(commit)));
    cached.setCommit(model.revision, commit);
    return { id: model.id, commit, folder: cached.snapshot(commit), ...pull.totals };
  } finally {
    lock.release();
  }
}

function waiting(fault: Error, wait: number): string {
  return `${fault.message}; again in ${Math.ceil(wait / 1000)} s`;
}

class Pull {
  readonly totals = { files: 0, bytes: 0, downloaded: 0 };
  readonly #model: HubModel;
  readonly #commit: string;
  readonly #cached: CachedModel;
  readonly #settings: HubSettings;
  readonly #progress: PullProgress;

  constructor(model: HubModel, commit: string, cached: CachedModel, settings: HubSettings, progress: PullProgress) {
    this.#model = model;
    this.#commit = commit;
    this.#cached = cached;
    this.#settings = settings;
    this.#progress = progress;
  }

  /** Fetch files in turn and link them into the snapshot. */
  async fetch(files: readonly HubFile[]): Promise<void> {
    const total = this.totals.bytes + files.reduce((sum, { size }) => sum + size, 0);
    const missing = files.filter((file) => !this.#isThere(file));
    this.#checkRoom(missing);
    for (const file of files) {
      const before = this.totals.bytes;
      if (!this.#isThere(file)) {
        const had = this.#partOf(file);
        let bytes = had;
        await downloadBlob(file, this.#cached.blob(file.hash), {
          address: this.#address(file),
          model: this.#model,
          settings: this.#settings,
          onBytes: (there) => {
            bytes = there;
            this.#progress(before + bytes, total, file.path);
          },
          onWait: (fault, wait) => this.#progress(before + bytes, total, `${file.path}: ${waiting(fault, wait)}`),
        });
        this.totals.downloaded += file.size - had;
      }
      this.#cached.link(this.#commit, file.path, file.hash);
      this.totals.files++;
      this.totals.bytes += file.size;
      this.#progress(this.totals.bytes, total, file.path);
    }
  }

  #isThere(file: HubFile): boolean {
    const blob = this.#cached.blob(file.hash);
    return existsSync(blob) && statSync(blob).size === file.size;
  }

  /** Bytes that an earlier pull has left of it. */
  #partOf(file: HubFile): number {
    const incomplete = `${this.#cached.blob(file.hash)}.incomplete`;
    return existsSync(incomplete) ? Math.min(file.size, statSync(incomplete).size) : 0;
  }

  #address({ path }: HubFile): string {
    const { id } = this.#model;
    return `${this.#settings.endpoint}/${id}/resolve/${this.#commit}/${encodeURIComponent(path)}`;
  }

  #checkRoom(missing: readonly HubFile[]): void {
    const needed = missing.reduce((sum, file) => sum + file.size - this.#partOf(file), 0);
    const { bavail, bsize } = statfsSync(this.#settings.cache);
    if (needed <= bavail * bsize) return;
    const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;
    throw new RunError(
      `${formatHubModel(this.#model)} needs ${gigabytes(needed)} more in ${this.#settings.cache}, where ${gigabytes(bavail * bsize)} are free; free some, or set HF_HOME to a larger disk`,
    );
  }
}

const hex = z.string().regex(/^[0-9a-f]{40}$/);
const listSchema = z.looseObject({
  sha: hex,
  siblings: z.array(
    z.looseObject({
      rfilename: z.string(),
      size: z.int().nonnegative().nullish(),
      blobId: hex.nullish(),
      lfs: z.looseObject({ sha256: z.string().regex(/^[0-9a-f]{64}$/), size: z.int().nonnegative() }).nullish(),
    }),
  ),
});

/** The commit that a revision is now, and its files with sizes and hashes. */
async function listFiles(
  model: HubModel,
  settings: HubSettings,
  onWait: RetryHooks['onWait'],
): Promise<{ commit: string; files: ReadonlyMap<string, HubFile> }> {
  const name = formatHubModel(model);
  const address = `${settings.endpoint}/api/models/${model.id}/revision/${encodeURIComponent(model.revision)}?blobs=true`;
  const list = async (): Promise<unknown> => {
    const response = await get(address, model, settings, { signal: AbortSignal.timeout(settings.stallAfter) });
    return response.json().catch(() => null);
  };
  const json = await withRetries(name, settings, list, { onWait });
  const parsed = listSchema.safeParse(json);
  if (!parsed.success) throw new RunError(`${settings.endpoint} does not answer like a hub: check HF_ENDPOINT`);
  const files = parsed.data.siblings.flatMap(({ rfilename: path, size, blobId, lfs }): [string, HubFile][] => {
    if (lfs) return [[path, { path, size: lfs.size, hash: lfs.sha256 }]];
    return blobId && size !== null && size !== undefined ? [[path, { path, size, hash: blobId }]] : [];
  });
  return { commit: parsed.data.sha, files: new Map(files) };
}

/** All that is needed but the weights, and of those the index. */
function smallFiles(name: string, files: ReadonlyMap<string, HubFile>): HubFile[] {
  const missing = REQUIRED.find((path) => !files.has(path));
  if (missing !== undefined) throw new UserError(`${name} has no ${missing}: it is not a model that can be run here`);
  const isSharded = !files.has(WEIGHTS_FILE);
  if (isSharded && !files.has(WEIGHTS_INDEX))
    throw new UserError(
      `${name} has no ${WEIGHTS_FILE}: only safetensors weights can be read; look for a converted copy`,
    );
  return [...REQUIRED, ...OPTIONAL, ...(isSharded ? [WEIGHTS_INDEX] : [])].flatMap((path) => files.get(path) ?? []);
}

function weightFiles(name: string, files: ReadonlyMap<string, HubFile>, snapshot: string): HubFile[] {
  const single = files.get(WEIGHTS_FILE);
  if (single) return [single];
  const shards = [...new Set(Object.values(readWeightMap(join(snapshot, WEIGHTS_INDEX))))].toSorted();
  return shards.map((path) => {
    const file = files.get(path);
    if (!file) throw new UserError(`${name} has no ${path}, which its ${WEIGHTS_INDEX} names`);
    return file;
  });
}
