/** Where the package lies, so that what ships with it is found from any working folder. */
import { fileURLToPath } from 'node:url';

/** The package's own folder: the one with `package.json`, `data/` and `pipelines/`. The same from `src/` and from `dist/`. */
export function packageRoot(): string {
  return fileURLToPath(new URL('../..', import.meta.url));
}
