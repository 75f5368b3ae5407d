/** Killed at random moments and started again, a run ends with the same rows and results as one that was left alone. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seededRandom } from '../src/metrics/random.js';
import { RunStore } from '../src/store/store.js';

const KILLS = 20;
/** A run of every phase that lasts some seconds. */
const SHORT = [
  ['label.tasks', 150],
  ['label.batch', 40],
  ['train.steps', 6],
  ['train.batch', 32],
  ['train.checkpointEvery', 2],
  ['evaluate.generations', 60],
  ['evaluate.batch', 30],
  ['evaluate.rescoreEvery', 3],
].flatMap(([key, value]) => ['--set', `${key}=${value}`]);

const folder = mkdtempSync(join(tmpdir(), 'propel-resume-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Run to the end, or to a SIGKILL after so many milliseconds. @returns whether it ended by itself. */
function propelRun(out: string, killAfter: number | null): Promise<boolean> {
  const child = spawn(process.execPath, ['dist/cli/main.js', 'run', '--out', out, ...SHORT], {
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

describe('a run that is killed and started again', () => {
  const whole = join(folder, 'whole');
  let milliseconds = 0;

  beforeAll(async () => {
    const started = performance.now();
    expect(await propelRun(whole, null)).toBe(true);
    milliseconds = performance.now() - started;
  }, 300_000);

  it(`ends with the same rows and results after ${KILLS} kills`, async () => {
    const killed = join(folder, 'killed');
    const random = seededRandom('moments of the kills');
    let kills = 0;
    // Moments spread over a run's length, counted from each start: start-up, every phase and the report get their share.
    while (kills < KILLS) {
      if (!(await propelRun(killed, 300 + random() * (milliseconds / 4)))) kills++;
      else {
        // It has come to its end between the kills: begin another.
        expect(outcome(killed)).toEqual(outcome(whole));
        rmSync(killed, { recursive: true });
      }
    }
    expect(await propelRun(killed, null)).toBe(true);
    expect(outcome(killed)).toEqual(outcome(whole));
  }, 900_000);
});
