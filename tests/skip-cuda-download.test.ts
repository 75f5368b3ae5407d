/** A consumer's installation downloads nothing that nobody asked for: the package's preinstall script, on a project with a stand-in for onnxruntime-node. */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';

const SCRIPT = fileURLToPath(new URL('../scripts/skip-cuda-download.mjs', import.meta.url));
/** As the real one begins; at its end is what it would download. */
const INSTALL = `// A licence.

'use strict';

require('fs').writeFileSync(__dirname + '/downloaded', process.argv.slice(2).join());
`;

interface Project {
  readonly folder: string;
  readonly install: string;
  /** Runs a script of a package as npm does, and says whether anything was downloaded. */
  readonly run: (script: string, environment?: Record<string, string>, ...args: string[]) => boolean;
}

function project(dependencies: Readonly<Record<string, string>> = {}): Project {
  const folder = mkdtempSync(join(tmpdir(), 'propel-consumer-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ dependencies }));
  const install = join(folder, 'node_modules', 'onnxruntime-node', 'script', 'install.js');
  mkdirSync(join(install, '..'), { recursive: true });
  writeFileSync(install, INSTALL);
  mkdirSync(join(folder, 'node_modules', 'propel-rl', 'scripts'), { recursive: true });
  cpSync(SCRIPT, join(folder, 'node_modules', 'propel-rl', 'scripts', 'skip.mjs'));
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(npm_|onnxruntime)/i.test(name)),
  ) as Record<string, string>;
  const downloaded = join(install, '..', 'downloaded');
  return {
    folder,
    install,
    run: (script, environment = {}, ...args) => {
      rmSync(downloaded, { force: true });
      const options = { env: { ...env, npm_config_local_prefix: folder, ...environment }, encoding: 'utf8' } as const;
      const { status, stderr } = spawnSync(process.execPath, [script, ...args], options);
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      return existsSync(downloaded);
    },
  };
}

const preinstall = ({ folder, run }: Project, environment: Record<string, string> = {}): boolean =>
  run(join(folder, 'node_modules', 'propel-rl', 'scripts', 'skip.mjs'), environment);

it('is skipped where nobody has asked, and can be asked for later', () => {
  const consumer = project({ 'propel-rl': 'file:../propel-rl-0.1.0.tgz' });
  expect(consumer.run(consumer.install)).toBe(true);
  preinstall(consumer);
  expect(consumer.run(consumer.install)).toBe(false);
  expect(readFileSync(consumer.install, 'utf8')).toMatch(/^\/\/ A licence\.\n\n'use strict';\n\/\/ Added by propel-rl/);
  expect(consumer.run(consumer.install, {}, '--onnxruntime-node-install=cuda12')).toBe(true);
  expect(consumer.run(consumer.install, { ONNXRUNTIME_NODE_INSTALL: 'cuda12' })).toBe(true);
  const once = readFileSync(consumer.install, 'utf8');
  preinstall(consumer);
  expect(readFileSync(consumer.install, 'utf8')).toBe(once);
});

it('is left to a copy that transformers.js has for itself no more than to ours', () => {
  const consumer = project();
  const own = join(consumer.folder, 'node_modules', '@huggingface', 'transformers', 'node_modules', 'onnxruntime-node');
  mkdirSync(join(own, 'script'), { recursive: true });
  writeFileSync(join(own, 'script', 'install.js'), INSTALL);
  preinstall(consumer);
  expect(readFileSync(join(own, 'script', 'install.js'), 'utf8')).toContain('Added by propel-rl');
});

it.each<[string, Record<string, string>, Record<string, string>]>([
  ['the flag is set', {}, { ONNXRUNTIME_NODE_INSTALL: 'cuda12' }],
  ['npm’s configuration has the flag', {}, { npm_config_onnxruntime_node_install: 'cuda12' }],
  ['the project depends on onnxruntime-node itself', { 'onnxruntime-node': '1.30.0' }, {}],
])('is left as it is where %s', (_, dependencies, environment) => {
  const consumer = project(dependencies);
  preinstall(consumer, environment);
  expect(readFileSync(consumer.install, 'utf8')).toBe(INSTALL);
});
