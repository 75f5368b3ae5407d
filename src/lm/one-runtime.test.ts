import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { UserError } from '../errors.js';
import { requireOneRuntime } from './one-runtime.js';

/** A project's folder with these packages, by their paths below it. */
function project(packages: Readonly<Record<string, string>>): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'propel-runtime-')));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [path, version] of Object.entries(packages)) {
    const at = join(folder, path);
    mkdirSync(at, { recursive: true });
    writeFileSync(join(at, 'package.json'), JSON.stringify({ name: 'any', version, main: 'index.js' }));
    writeFileSync(join(at, 'index.js'), '');
  }
  return folder;
}

it('is so here', () => {
  expect(() => requireOneRuntime()).not.toThrow();
});

it('is so in a project that leaves the choice to this package', () => {
  const folder = project({
    'node_modules/onnxruntime-node': '1.30.0',
    'node_modules/@huggingface/transformers': '4.3.2',
    'node_modules/propel-rl': '0.1.0',
  });
  expect(() => requireOneRuntime(join(folder, 'node_modules/propel-rl/index.js'))).not.toThrow();
});

it('is refused in a project with a version of its own, which says what to do', () => {
  const folder = project({
    'node_modules/onnxruntime-node': '1.20.0',
    'node_modules/propel-rl/node_modules/onnxruntime-node': '1.30.0',
    'node_modules/@huggingface/transformers/node_modules/onnxruntime-node': '1.30.0',
    'node_modules/@huggingface/transformers': '4.3.2',
    'node_modules/propel-rl': '0.1.0',
  });
  const check = () => requireOneRuntime(join(folder, 'node_modules/propel-rl/index.js'));
  expect(check).toThrow(UserError);
  expect(check).toThrow(
    `two copies of onnxruntime-node are installed, ${folder}/node_modules/propel-rl/node_modules/onnxruntime-node and ` +
      `${folder}/node_modules/@huggingface/transformers/node_modules/onnxruntime-node, and a process can load only one: ` +
      'let your package.json ask for no onnxruntime-node, or for 1.30.0, and install again',
  );
});
