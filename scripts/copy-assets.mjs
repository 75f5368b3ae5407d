// Copies what tsc does not: the Python sources that a sandbox loads, beside the compiled files that load them.
import { cpSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
for (const file of readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })) {
  if (!file.endsWith('.py')) continue;
  const to = join(root, 'dist', file);
  mkdirSync(dirname(to), { recursive: true });
  cpSync(join(root, 'src', file), to);
}
