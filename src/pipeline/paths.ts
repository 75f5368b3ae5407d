/** Where the package lies, so that what ships with it is found from any working folder. */
import { readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { UserError } from '../errors.js';
import { isThere } from '../store/files.js';
import { didYouMean, shortened } from '../schema-words.js';

/** The package's own folder: the one with `package.json`, `data/` and `pipelines/`. The same from `src/` and from `dist/`. */
export function packageRoot(): string {
  return fileURLToPath(new URL('../..', import.meta.url));
}

/**
 * The absolute path of a file or folder that the user or a configuration names: taken from the working folder, else from the package.
 * @param what what it should be, for the message: `configuration`, `model`
 * @throws {UserError} when it is in neither
 */
export function findFile(path: string, what: string): string {
  const candidates = [resolve(path), resolve(packageRoot(), path)];
  const found = candidates.find((candidate) => isThere(candidate));
  if (found !== undefined) return found;
  throw missing(what, path, candidates);
}

/** A pipeline's file as a command names it: a path as {@link findFile} takes it, or the name of one that ships. */
export function findPipeline(named: string): string {
  const candidates = [resolve(named), ...shipped(named)];
  const found = firstFile(candidates);
  if (found !== undefined) return found;
  throw missing('configuration', named, candidates);
}

/**
 * A pipeline's file as `extends` names it: a path from the folder of the file that extends it, else as {@link findPipeline} takes it.
 * @param where the file and line, for the message
 */
export function findExtended(named: string, folder: string, where: string): string {
  const candidates = [resolve(folder, named), resolve(named), ...shipped(named)];
  const found = firstFile(candidates);
  if (found !== undefined) return found;
  throw new UserError(
    `${where}: ${shortened(named)} does not exist; give a path from ${folder}, or a pipeline of the package such as azr-micro.yaml${meant(named, candidates)}`,
  );
}

function missing(what: string, path: string, candidates: readonly string[]): UserError {
  return new UserError(
    `${what} ${shortened(path)} does not exist; give a path from the working folder or from ${packageRoot()}${meant(path, candidates)}`,
  );
}

/** By its path within the package, by its file's name, by its own name. */
function shipped(named: string): string[] {
  const pipelines = join(packageRoot(), 'pipelines');
  return [resolve(packageRoot(), named), resolve(pipelines, named), resolve(pipelines, `${named}.yaml`)];
}

/** The first that is a file, else the first that is there at all, for whoever reads it to say what it is. */
function firstFile(candidates: readonly string[]): string | undefined {
  const there = candidates.filter((candidate) => isThere(candidate));
  return there.find((candidate) => !statSync(candidate).isDirectory()) ?? there[0];
}

/** `; did you mean …?` where a neighbour in one of the folders has a name like it. */
function meant(named: string, candidates: readonly string[]): string {
  const neighbours = candidates.flatMap((candidate) => namesIn(dirname(candidate)));
  // The package's pipelines are known by their bare names as well.
  return didYouMean(basename(named), [...neighbours, ...neighbours.map((name) => basename(name, '.yaml'))]);
}

/** What a folder holds, as far as it is one and may be read. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
