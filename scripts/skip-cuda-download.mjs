/**
 * Before the packages of an installation run their own scripts: onnxruntime-node's post-install script downloads CUDA libraries on Linux x64, and
 * where their host cannot be reached it fails, and the whole installation with it. Nothing in a package can set the flag that skips the
 * download for its consumer, so that script is given a line that ends it when nobody has asked for anything.
 *
 * It is left as it is when the flag is set, to `skip` or to `cuda12`, and when the consumer's own package.json names onnxruntime-node: then it is
 * the consumer's. `node node_modules/onnxruntime-node/script/install.js --onnxruntime-node-install=cuda12` fetches the libraries later.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const FLAGS = ['ONNXRUNTIME_NODE_INSTALL', 'ONNXRUNTIME_NODE_INSTALL_CUDA'];
const MARK = '// Added by propel-rl: without a flag nothing is downloaded.';
const STRICT = /^[^]*?^'use strict';\n/m;
const LINES = `${MARK}
if (!process.argv.some((argument) => argument.startsWith('--onnxruntime-node-install')) && ![${FLAGS.flatMap((flag) => [
  flag,
  `npm_config_${flag.toLowerCase()}`,
])
  .map((name) => `'${name}'`)
  .join(', ')}].some((name) => process.env[name])) process.exit(0);
`;

/** The scripts that would download: of the copy that this package loads, and of one that transformers.js has for itself. */
function installScripts() {
  const here = createRequire(import.meta.url);
  const found = new Set();
  for (const from of [here, requireOf(here, '@huggingface/transformers')]) {
    const folder = from && folderOf(from, 'onnxruntime-node');
    const script = folder && join(folder, 'script', 'install.js');
    if (script && existsSync(script)) found.add(script);
  }
  return found;
}

/** @param {NodeJS.Require} from @param {string} name */
function folderOf(from, name) {
  return from.resolve
    .paths(name)
    ?.map((path) => join(path, name))
    .find((folder) => existsSync(folder));
}

/** @param {NodeJS.Require} from @param {string} name */
function requireOf(from, name) {
  const folder = folderOf(from, name);
  return folder && createRequire(join(folder, 'package.json'));
}

/** Whether the project that installs this package depends on onnxruntime-node itself. */
function isConsumersOwn() {
  const prefix = process.env['npm_config_local_prefix'];
  const file = prefix && join(prefix, 'package.json');
  // In this package's own repository its .npmrc says what to do.
  if (!file || !existsSync(file) || dirname(fileURLToPath(new URL('.', import.meta.url))) === prefix) return false;
  const { dependencies, devDependencies, optionalDependencies } = JSON.parse(readFileSync(file, 'utf8'));
  return 'onnxruntime-node' in { ...dependencies, ...devDependencies, ...optionalDependencies };
}

const isAsked = FLAGS.some((flag) => process.env[flag] || process.env[`npm_config_${flag.toLowerCase()}`]);
if (!isAsked && !isConsumersOwn()) {
  for (const script of installScripts()) {
    const text = readFileSync(script, 'utf8');
    // Behind the directive, which must stand first.
    const at = STRICT.exec(text)?.[0].length ?? 0;
    if (!text.includes(MARK)) writeFileSync(script, `${text.slice(0, at)}${LINES}${text.slice(at)}`);
  }
}
