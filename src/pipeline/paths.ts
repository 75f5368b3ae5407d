/** Where the package lies, so that what ships with it is found from any working folder. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { UserError } from '../errors.js';

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
  const found = candidates.find((candidate) => existsSync(candidate));
  if (found === undefined)
    throw new UserError(`${what} ${path} does not exist; give a path from the working folder or from ${packageRoot()}`);
  return found;
}
