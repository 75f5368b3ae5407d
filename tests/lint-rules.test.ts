/** The linter as it is configured here refuses what once broke: lists of any length as arguments. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from './tiny-checkpoint.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const OXLINT = join(dirname(createRequire(import.meta.url).resolve('oxlint/package.json')), 'bin', 'oxlint');

/** The lines of a source that the rule refuses. */
function refused(lines: readonly string[]): string[] {
  const file = join(temporaryFolder(), 'source.ts');
  writeFileSync(file, lines.join('\n'));
  const args = [OXLINT, '-c', join(ROOT, '.oxlintrc.json'), '--format', 'json', file];
  let output: string;
  try {
    output = execFileSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch (error) {
    output = (error as { stdout: string }).stdout;
  }
  const { diagnostics } = JSON.parse(output) as {
    diagnostics: { code: string; labels: { span: { line: number } }[] }[];
  };
  const ours = diagnostics.filter(({ code }) => code === 'propel(no-spread-arguments)');
  return ours.map(({ labels }) => lines[labels[0]!.span.line - 1]!);
}

describe('a list as arguments', () => {
  const bad = [
    'export const a = (xs: number[]): number => Math.max(...xs);',
    'export const b = (xs: number[]): number => xs.push(...xs.map((x) => x + 1));',
    'export const c = (xs: number[]): string => String.fromCharCode(...xs);',
    'export const d = (xs: number[]): number[] => new Array(...xs);',
  ];
  const good = [
    "const OPTION = ['a', 'b'] as const;",
    'export const e = (xs: number[]): number[] => [...xs, 1];',
    'export const f = (set: (...texts: string[]) => void): void => set(...OPTION);',
    'export const g = (xs: number[]): Set<number> => new Set([...xs]);',
  ];
  it('is refused by the linter, of whatever call; lists in lists are not', () => {
    expect(refused([...bad, ...good])).toEqual(bad);
  });
});
