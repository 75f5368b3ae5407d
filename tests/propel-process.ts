/** The compiled command as a child process, for tests of how it fails: what it says, with which code, and what it leaves behind. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect } from 'vitest';

export const PACKAGE = fileURLToPath(new URL('..', import.meta.url));
export const MAIN = join(PACKAGE, 'dist', 'cli', 'main.js');

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A folder that is removed when the tests of this file have ended. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'propel-fail-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Run a command to its end in a working folder that is not the package's. */
export function propelIn(folder: string, args: readonly string[], main = MAIN): Ended {
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], { cwd: folder, encoding: 'utf8' });
  return { code: status, stdout, stderr };
}

/** `{ 'label.tasks': 60 }` → `--set label.tasks=60`; JSON is YAML. */
export function sets(settings: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${JSON.stringify(value)}`]);
}

/** Paths of all files and folders within a folder, sorted. */
export function contentsOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
}

/** Files that a write was broken off in, and locks that nobody holds. */
export function leftovers(folder: string): string[] {
  return contentsOf(folder).filter((path) => /\.tmp$|propel\.lock|\.stale/.test(path));
}

/** What a phase writes on standard error as it goes: `label 53/60 · 8.1/s`, `label: 110 labelled tasks (8.8 s)`. */
const PROGRESS =
  /^(engine|solver|label|import|train-probe|probe study|train-generator|evaluate|re-score|check|grade)\b/;

/** The one line of an error. Fails when there is another line that is not progress, or when standard output holds anything. */
export function errorLine({ stdout, stderr }: Ended): string {
  expect(stdout).toBe('');
  expect(stderr).toMatch(/\n$/);
  const lines = stderr
    .trimEnd()
    .split('\n')
    .filter((line) => !PROGRESS.test(line));
  expect(lines).toEqual([expect.stringMatching(/^propel: /)]);
  return lines[0]!;
}
