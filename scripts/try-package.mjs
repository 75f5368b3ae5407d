/**
 * What a user of the package meets: packs it, installs it in an empty folder by `npm i` alone, and runs the embedded pipeline there, in small.
 * Needs npm's registry and no other host. Ends with exit code 1 and a line when something is not as it should be.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SMALL = {
  'label.tasks': 150,
  'label.batch': 64,
  'train.steps': 1,
  'train.batch': 16,
  'evaluate.generations': 32,
  'evaluate.batch': 32,
};
const ARMS = ['base', 'propel', 'propel-wco'];

/** The environment without what this repository's own .npmrc, or a user, tells onnxruntime-node's script. */
const environment = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) =>
      !/^(npm_package_|npm_lifecycle_|npm_config_local_prefix|(npm_config_)?onnxruntime_node_install)/i.test(name),
  ),
);

/** @param {string} folder @param {string} command @param {readonly string[]} args */
function run(folder, command, ...args) {
  const began = performance.now();
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: folder, env: environment, encoding: 'utf8' });
  const name = [command, ...args].join(' ').slice(0, 80);
  if (status !== 0) throw new Error(`${name}: exit code ${status}\n${stdout}${stderr}`);
  console.log(`${name}: ${((performance.now() - began) / 1000).toFixed(0)} s`);
  return stdout;
}

/** @param {unknown} holds @param {string} what */
function expectThat(holds, what) {
  if (!holds) throw new Error(`not so: ${what}`);
}

/** The folders of a package in a tree, also below other packages. @param {string} folder @param {string} name @returns {string[]} */
function copiesOf(folder, name) {
  const modules = join(folder, 'node_modules');
  if (!existsSync(modules)) return [];
  const entries = readdirSync(modules).flatMap((entry) =>
    entry.startsWith('@') ? readdirSync(join(modules, entry)).map((scoped) => join(entry, scoped)) : [entry],
  );
  return entries.flatMap((entry) => [
    ...(entry === name ? [join(modules, entry)] : []),
    ...copiesOf(join(modules, entry), name),
  ]);
}

const work = mkdtempSync(join(tmpdir(), 'propel-package-'));
try {
  run(ROOT, 'npm', 'pack', '--ignore-scripts', '--pack-destination', work);
  const tarball = readdirSync(work).find((name) => name.endsWith('.tgz'));
  const folder = join(work, 'empty');
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  run(folder, 'npm', 'i', '--prefer-offline', '--no-audit', '--no-fund', join('..', String(tarball)));

  const installed = join(folder, 'node_modules', 'propel-rl');
  expectThat(existsSync(join(installed, 'docs', 'endpoint-solver.md')), 'the package holds its documentation');
  const runtimes = copiesOf(folder, 'onnxruntime-node');
  expectThat(runtimes.length === 1, `one onnxruntime-node is installed, not ${runtimes.length}`);
  const libraries = readdirSync(join(runtimes[0] ?? '', 'bin'), { recursive: true, encoding: 'utf8' });
  expectThat(!libraries.some((name) => name.includes('providers_cuda')), 'no CUDA library was downloaded');

  expectThat(run(folder, 'npx', 'propel', '--help').startsWith('Usage: propel '), 'propel --help says how it is used');
  run(folder, 'npx', 'propel', 'doctor');
  const sets = Object.entries(SMALL).flatMap(([key, value]) => ['--set', `${key}=${value}`]);
  run(folder, 'npx', 'propel', 'run', '--out', 'small', ...sets);
  const { arms } = JSON.parse(readFileSync(join(folder, 'small', 'results.json'), 'utf8'));
  const names = arms.map((/** @type {{ name: string }} */ { name }) => name);
  expectThat(names.join() === ARMS.join(), `results.json has the arms ${ARMS.join(', ')}, not ${names.join(', ')}`);
  expectThat(existsSync(join(folder, 'small', 'report.html')), 'the run has a report');
} catch (error) {
  console.error(String(error instanceof Error ? error.message : error));
  process.exitCode = 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}
