/** A run that is killed at random moments and started again, against one that is left alone. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { seededRandom } from '../src/metrics/random.js';
import { RunStore } from '../src/store/store.js';
import { MAIN, PACKAGE } from './propel-process.js';

export interface WholeRun {
  readonly folder: string;
  readonly milliseconds: number;
}

/** A folder for the runs of a test file, which the caller removes. */
export function runsFolder(): string {
  return mkdtempSync(join(tmpdir(), 'propel-resume-'));
}

/** Run to the end, and take the time. */
export async function runWhole(folder: string, args: readonly string[]): Promise<WholeRun> {
  const started = performance.now();
  expect(await propelRun(folder, args, null)).toBe(true);
  return { folder, milliseconds: performance.now() - started };
}

/**
 * Kill a run `kills` times, at moments spread over a part of its length and counted from each start, so that start-up, every phase and the
 * report get their share; whenever it comes to its end, then and at last, its rows and results must be those of the run that was left alone.
 */
export async function expectSameAfterKills(
  whole: WholeRun,
  killed: string,
  args: readonly string[],
  kills: number,
): Promise<void> {
  const random = seededRandom('moments of the kills');
  const expected = outcome(whole.folder);
  let done = 0;
  while (done < kills) {
    if (!(await propelRun(killed, args, 300 + random() * (whole.milliseconds / 4)))) done++;
    else {
      // It has come to its end between the kills: begin another.
      expect(outcome(killed)).toEqual(expected);
      rmSync(killed, { recursive: true });
    }
  }
  expect(await propelRun(killed, args, null)).toBe(true);
  expect(outcome(killed)).toEqual(expected);
}

/** Run to the end, or to a SIGKILL after so many milliseconds. @returns whether it ended by itself. */
function propelRun(out: string, args: readonly string[], killAfter: number | null): Promise<boolean> {
  const child = spawn(process.execPath, [MAIN, 'run', '--out', out, ...args], {
    cwd: PACKAGE,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const timer = killAfter === null ? null : setTimeout(() => child.kill('SIGKILL'), killAfter);
  return new Promise((resolve, reject) => {
    child.on('exit', (code, signal) => {
      if (timer) clearTimeout(timer);
      if (signal === 'SIGKILL') resolve(false);
      else if (code === 0) resolve(true);
      else reject(new Error(`propel run ended with ${code ?? signal}: ${errors.slice(-500)}`));
    });
  });
}

/** All rows but their timings, and `results.json` without its seconds. */
function outcome(out: string): { rows: unknown; results: unknown } {
  const store = RunStore.read(out);
  const rows = store.dumpRows();
  store.close();
  const results = JSON.parse(readFileSync(join(out, 'results.json'), 'utf8')) as { arms: Record<string, unknown>[] };
  for (const arm of results.arms) delete arm['seconds'];
  return { rows, results };
}
