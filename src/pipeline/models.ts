/** Models by name: a checkpoint folder, or one of the Hugging Face hub in its cache; pulled, listed and checked. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { UserError } from '../errors.js';
import { openCheckpoint } from '../lm/checkpoint.js';
import { CachedModel, cachedModels, formatHubModel, parseHubModel } from '../lm/hub/cache.js';
import type { HubModel } from '../lm/hub/cache.js';
import { pullModel } from '../lm/hub/pull.js';
import type { PulledModel } from '../lm/hub/pull.js';
import { hubSettings } from '../lm/hub/settings.js';
import type { HubSettings } from '../lm/hub/settings.js';
import { verifySnapshot } from '../lm/hub/verify.js';
import { openModelFiles } from '../lm/language-model.js';
import { WEIGHTS_FILE, WEIGHTS_INDEX } from '../lm/weight-files.js';
import { packageRoot } from './paths.js';
import type { ProgressFactory } from './progress.js';

const MEGABYTE = 1e6;

/**
 * The folder of a model: a path from the working folder or the package, else a hub id, `org/name` or `org/name@revision`, that has been
 * pulled. Nothing is fetched here: gigabytes come only when asked for.
 * @param what the setting that names it, for the message
 * @throws UserError when it is neither
 */
export function findModel(name: string, what: string, settings: HubSettings = hubSettings()): string {
  const folder = [resolve(name), resolve(packageRoot(), name)].find((candidate) => existsSync(candidate));
  if (folder !== undefined) return folder;
  const model = parseHubModel(name);
  if (model === null) {
    throw new UserError(
      `${what} ${name} does not exist; give a path from the working folder or from ${packageRoot()}, or a hub id such as Qwen/Qwen2.5-3B-Instruct`,
    );
  }
  const snapshot = cachedFolder(model, settings);
  if (snapshot !== null) return snapshot;
  const advice = settings.offline
    ? `HF_HUB_OFFLINE is set: put it there from elsewhere, or unset it`
    : `run 'propel models pull ${name}' first`;
  throw new UserError(`${what} ${name} is no folder and is not in the cache ${settings.cache}; ${advice}`);
}

function cachedFolder(model: HubModel, { cache }: HubSettings): string | null {
  const cached = new CachedModel(cache, model.id);
  const commit = cached.commit(model.revision);
  if (commit === null) return null;
  const folder = cached.snapshot(commit);
  return existsSync(folder) ? folder : null;
}

/** Fetch models of the hub into the cache, one after the other. @throws UserError for a name that is no hub id */
export async function pullModels(
  names: readonly string[],
  progress: ProgressFactory,
  settings: HubSettings = hubSettings(),
): Promise<PulledModel[]> {
  const models = names.map((name) => {
    const model = parseHubModel(name);
    if (model === null)
      throw new UserError(`'${name}' is no hub id; give org/name, or org/name@revision for a branch, tag or commit`);
    return model;
  });
  const pulled: PulledModel[] = [];
  for (const model of models) {
    const line = progress(`MB of ${formatHubModel(model)}`);
    const one = await pullModel(model, settings, (bytes, total, file) =>
      line.update(Math.round(bytes / MEGABYTE), Math.ceil(total / MEGABYTE), file),
    );
    line.done(`${one.files} files, ${megabytes(one.bytes)}, of it downloaded ${megabytes(one.downloaded)}`);
    pulled.push(one);
  }
  return pulled;
}

function megabytes(bytes: number): string {
  return `${(bytes / MEGABYTE).toFixed(1)} MB`;
}

/** A snapshot in the cache. */
export interface ListedModel {
  readonly id: string;
  /** Branches and tags that stand for it. */
  readonly revisions: readonly string[];
  readonly commit: string;
  readonly folder: string;
  readonly bytes: number;
  /** Null when it can be run; else why not. */
  readonly problem: string | null;
}

export function listModels(settings: HubSettings = hubSettings()): ListedModel[] {
  return cachedModels(settings.cache).flatMap((id) => {
    const cached = new CachedModel(settings.cache, id);
    return [...cached.snapshots()].map(([commit, revisions]) => {
      const folder = cached.snapshot(commit);
      return { id, revisions, commit, folder, bytes: sizeOf(folder), problem: problemOf(folder, id) };
    });
  });
}

/** Bytes of what a folder's files and links lead to. */
function sizeOf(folder: string): number {
  const files = readdirSync(folder).map((file) => statSync(join(folder, file), { throwIfNoEntry: false }));
  return files.reduce((sum, stat) => sum + (stat?.isFile() ? stat.size : 0), 0);
}

function problemOf(folder: string, id: string): string | null {
  // Weights come last in a pull.
  const isWhole = [WEIGHTS_FILE, WEIGHTS_INDEX].some((file) => existsSync(join(folder, file)));
  if (!isWhole) return `not whole: 'propel models pull ${id}' goes on`;
  if (!existsSync(join(folder, 'tokenizer.json'))) return 'it has no tokenizer.json';
  try {
    openCheckpoint(folder);
    return null;
  } catch (error) {
    if (error instanceof UserError) return error.message.replaceAll(`${folder}/`, '');
    throw error;
  }
}

/** What a model is, read from its files. */
export interface CheckedModel {
  readonly name: string;
  readonly folder: string;
  readonly family: string;
  readonly parameters: number;
  /** Element types of its weights. */
  readonly types: readonly string[];
  readonly layers: number;
  readonly width: number;
  readonly vocabulary: number;
  readonly maxPositions: number;
  readonly hasChat: boolean;
  /** Tokens that end what it writes. */
  readonly ends: readonly number[];
  /** Files whose hash was found right; none of a folder outside a cache, which lists no hashes. */
  readonly hashesChecked: number;
}

/** Open a model as a run would, and hash its files where the cache says what they should be. @throws UserError for what is wrong */
export async function checkModel(
  name: string,
  progress: ProgressFactory,
  settings: HubSettings = hubSettings(),
): Promise<CheckedModel> {
  const folder = findModel(name, 'model', settings);
  const { config, tokenizer } = await openModelFiles(folder);
  const entries = [...openCheckpoint(folder).entries.values()];
  const checked = basename(dirname(folder)) === 'snapshots' ? await verified(name, folder, progress) : 0;
  return {
    name,
    folder,
    family: config.family,
    parameters: entries.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0),
    types: [...new Set(entries.map(({ type }) => type))].toSorted(),
    layers: config.layers,
    width: config.width,
    vocabulary: config.vocabulary,
    maxPositions: config.maxPositions,
    hasChat: tokenizer.hasChat,
    ends: tokenizer.ends,
    hashesChecked: checked,
  };
}

async function verified(name: string, folder: string, progress: ProgressFactory): Promise<number> {
  const line = progress(`MB of ${name}`);
  const { damaged, checked } = await verifySnapshot(folder, (bytes, total) =>
    line.update(Math.round(bytes / MEGABYTE), Math.ceil(total / MEGABYTE), 'hashing'),
  );
  line.done(`${checked} files hashed`);
  if (damaged.length === 0) return checked;
  const [{ file, blob }] = damaged as [(typeof damaged)[number]];
  throw new UserError(
    `${name}: the hash of ${file} is wrong, as of ${damaged.length} of ${checked} files; delete ${blob} and pull again`,
  );
}
