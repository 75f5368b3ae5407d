/**
 * Hugging Face's cache: `models--org--name/` with `blobs/` named by their hash, `snapshots/<commit>/` of links to them, and `refs/` from
 * branches and tags to commits. https://huggingface.co/docs/huggingface_hub/guides/manage-cache
 */
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { makeFolder, writeFileAtomic } from '../../store/files.js';

/** A model of the hub, at a branch, a tag or a commit. */
export interface HubModel {
  /** `org/name`. */
  readonly id: string;
  readonly revision: string;
}

const NAME = '[A-Za-z0-9_][A-Za-z0-9_.-]*';
const HUB_MODEL = new RegExp(`^(${NAME}/${NAME})(?:@(${NAME}(?:/${NAME})*))?$`);
const COMMIT = /^[0-9a-f]{40}$/;

/** `org/name` or `org/name@revision`; null for a text that is neither. */
export function parseHubModel(text: string): HubModel | null {
  const [, id, revision = 'main'] = HUB_MODEL.exec(text) ?? [];
  return id === undefined || text.includes('..') ? null : { id, revision };
}

export function formatHubModel({ id, revision }: HubModel): string {
  return revision === 'main' ? id : `${id}@${revision}`;
}

/** What to call a checkpoint folder: its own name, or the model's whose snapshot it is. */
export function modelName(folder: string): string {
  const snapshots = dirname(folder);
  if (basename(snapshots) !== 'snapshots') return basename(folder);
  return idOf(basename(dirname(snapshots))) ?? basename(folder);
}

/** The hub id of a cache's snapshot, with its commit as revision; null for another folder. */
export function hubNameOf(folder: string): string | null {
  const snapshots = dirname(folder);
  if (basename(snapshots) !== 'snapshots') return null;
  const id = idOf(basename(dirname(snapshots)));
  return id === null ? null : formatHubModel({ id, revision: basename(folder) });
}

/** `models--org--name` → `org/name`. */
function idOf(name: string): string | null {
  const [kind, org, ...rest] = name.split('--');
  return kind === 'models' && org !== undefined && rest.length > 0 ? `${org}/${rest.join('--')}` : null;
}

/** One model's part of the cache. */
export class CachedModel {
  readonly #folder: string;
  readonly lockPath: string;

  constructor(cache: string, id: string) {
    const name = `models--${id.replace('/', '--')}`;
    this.#folder = join(cache, name);
    this.lockPath = join(cache, '.locks', name, 'propel.lock');
  }

  blob(hash: string): string {
    return join(this.#folder, 'blobs', hash);
  }

  snapshot(commit: string): string {
    return join(this.#folder, 'snapshots', commit);
  }

  /** The commit of a revision, as far as the cache knows it. */
  commit(revision: string): string | null {
    const ref = join(this.#folder, 'refs', revision);
    if (existsSync(ref)) return readFileSync(ref, 'utf8').trim();
    return COMMIT.test(revision) && existsSync(this.snapshot(revision)) ? revision : null;
  }

  /** Remember what commit a revision is; a commit needs no note. */
  setCommit(revision: string, commit: string): void {
    if (revision !== commit) writeFileAtomic(join(this.#folder, 'refs', revision), commit);
  }

  /** Put a blob into a snapshot under its file's name. Where links may not be made, as on some Windows, it is copied. */
  link(commit: string, file: string, hash: string): void {
    const path = join(this.snapshot(commit), file);
    makeFolder(dirname(path));
    rmSync(path, { force: true });
    try {
      symlinkSync(relative(dirname(path), this.blob(hash)), path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error;
      copyFileSync(this.blob(hash), path);
    }
  }

  /** Commits with a snapshot, each with the revisions that stand for it. */
  snapshots(): Map<string, string[]> {
    const commits = new Map(names(join(this.#folder, 'snapshots')).map((commit) => [commit, [] as string[]]));
    const refs = join(this.#folder, 'refs');
    if (!existsSync(refs)) return commits;
    for (const entry of readdirSync(refs, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const revision = relative(refs, join(entry.parentPath, entry.name));
      commits.get(this.commit(revision) ?? '')?.push(revision);
    }
    return commits;
  }
}

/** Ids of the models that a cache holds anything of. */
export function cachedModels(cache: string): string[] {
  return names(cache).flatMap((name) => idOf(name) ?? []);
}

function names(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).toSorted() : [];
}
