/** `propel compare`: two seeds of two arms in processes of their own, killed and gone on from, and what it refuses. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { seededRandom } from '../src/metrics/random.js';
import { reportComparison } from '../src/pipeline/compare-report.js';
import type { Comparison } from '../src/report/comparison.js';
import { lockRunFolder, RunLockedError } from '../src/store/lock.js';
import { contentsOf, MAIN, PACKAGE, propelIn, temporaryFolder } from './propel-process.js';

const folder = temporaryFolder();

const SMALL = `extends: ${PACKAGE}/pipelines/azr-micro.yaml
name: small
seeds: [3, 5]
engine: { threads: 1 }
sandbox: { workers: 1 }
domain: { types: [code_o], validity: { distinctOutputs: null } }
band: { min: 2, max: 4, of: 4 }
label: { tasks: 40, batch: 24 }
probe: { features: [[{ layer: 1, pooling: mean }]], l2: [0.1] }
train: { steps: 4, batch: 8, checkpointEvery: 2 }
arms:
  base: { reward: none }
  propel: { reward: probe }
  propel-wco: null
evaluate: { generations: 20, batch: 10, rescoreEvery: 0 }
`;
writeFileSync(join(folder, 'small.yaml'), SMALL);

const whole = join(folder, 'whole');
const compareArgs = (out: string, ...more: string[]): string[] => ['compare', 'small.yaml', '--out', out, ...more];

/** `comparison.json` without what the clock gave. */
function comparisonOf(out: string): unknown {
  const text = readFileSync(join(out, 'comparison.json'), 'utf8');
  return JSON.parse(text, (key, value: unknown) => (key === 'seconds' ? undefined : value));
}

function start(out: string): { child: ChildProcess; ended: Promise<number | null> } {
  const child = spawn(process.execPath, [MAIN, ...compareArgs(out)], { cwd: folder, stdio: 'ignore' });
  return { child, ended: new Promise((resolve) => child.on('exit', resolve)) };
}

/** Whether a process works in a seed's folder. */
function isRunning(out: string): boolean {
  return [3, 5].some((seed) => {
    const run = join(out, `seed-${seed}`);
    if (!existsSync(run)) return false;
    try {
      lockRunFolder(run).release();
      return false;
    } catch (error) {
      if (error instanceof RunLockedError) return true;
      throw error;
    }
  });
}

async function until(condition: () => boolean, milliseconds: number): Promise<boolean> {
  for (const end = performance.now() + milliseconds; performance.now() < end; await wait(100)) {
    if (condition()) return true;
  }
  return false;
}

describe('a comparison', () => {
  let milliseconds = 0;

  beforeAll(() => {
    const started = performance.now();
    const { code, stdout, stderr } = propelIn(folder, compareArgs(whole, '--json', '--parallel', '2'));
    milliseconds = performance.now() - started;
    expect(stderr).toMatch(/^seed 3 · finished/m);
    expect(stderr).toMatch(/^seed 5 · finished/m);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual(JSON.parse(readFileSync(join(whole, 'comparison.json'), 'utf8')));
  }, 300_000);

  it('is one folder: a run a seed, the resolved settings, the report', () => {
    expect(readdirSync(whole).sort()).toEqual([
      'comparison.json',
      'comparison.yaml',
      'pipeline.yaml',
      'report.html',
      'seed-3',
      'seed-5',
    ]);
    const { seeds, missing, arms, claims } = comparisonOf(whole) as Comparison;
    expect({ seeds, missing }).toEqual({ seeds: [3, 5], missing: [] });
    expect(arms.map(({ name, base, n }) => ({ name, base, n }))).toEqual([
      { name: 'base', base: 'base', n: 40 },
      { name: 'propel', base: 'base', n: 40 },
    ]);
    expect(claims.map(({ id }) => id)).toEqual(['enough-measured', 'lift-propel', 'of-valid']);
    const { arms: ofSeed } = JSON.parse(readFileSync(join(whole, 'seed-5', 'results.json'), 'utf8')) as {
      arms: { frontierRate: number }[];
    };
    expect(arms.map(({ frontierRate }) => frontierRate.values[1])).toEqual(ofSeed.map((arm) => arm.frontierRate));
  });

  it('ends the same whenever it was killed or stopped, and leaves no run behind', async () => {
    const out = join(folder, 'killed');
    const random = seededRandom('moments');
    for (const signal of ['SIGKILL', 'SIGINT', 'SIGKILL'] as const) {
      const { child, ended } = start(out);
      const early = await Promise.race([ended, wait(1500 + random() * (milliseconds / 3), 'running')]);
      if (early === 'running') child.kill(signal);
      // null: ended by a signal.
      const expected = signal === 'SIGKILL' ? null : 130;
      expect(await ended).toBe(early === 'running' ? expected : 0);
      expect(await until(() => !isRunning(out), 30_000)).toBe(true);
    }
    expect(await start(out).ended).toBe(0);
    expect(comparisonOf(out)).toEqual(comparisonOf(whole));
  }, 300_000);

  it('goes on from its own folder’s settings with nothing left to do; --check exits with code 1 and names the claims that do not hold', () => {
    const before = comparisonOf(whole);
    const { code, stderr } = propelIn(folder, ['compare', join(whole, 'comparison.yaml'), '--out', whole, '--check']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^propel: \d of 3 claims do not hold: enough-measured/m);
    expect(comparisonOf(whole)).toEqual(before);
  }, 60_000);

  it('names what results lack that it did not write', () => {
    const out = join(folder, 'foreign');
    cpSync(whole, out, { recursive: true });
    const results = join(out, 'seed-5', 'results.json');
    writeFileSync(results, '{"seed": 5, "versions": {}, "arms": [{"name": "base"}, {"name": "propel"}]}');
    expect(() => reportComparison(out)).toThrow(`${results} lacks arms.0.seed; write it again with 'propel report`);
    writeFileSync(results, '{"seed": 5,');
    expect(() => reportComparison(out)).toThrow(`${results} is damaged; write it again with 'propel report`);
  });

  it('is reported again by propel report, as a table and as JSON', () => {
    const table = propelIn(folder, ['report', whole]);
    expect(table.code).toBe(0);
    expect(table.stdout).toMatch(/^propel +\d+\.\d% \(/m);
    const json = propelIn(folder, ['report', whole, '--json']);
    expect(JSON.parse(json.stdout)).toMatchObject({ name: 'small', seeds: [3, 5] });
  }, 60_000);

  it('finishes the other seeds when one fails, and says which and why', () => {
    const out = join(folder, 'failing');
    cpSync(whole, out, { recursive: true });
    rmSync(join(out, 'seed-3'), { recursive: true });
    writeFileSync(join(out, 'seed-3'), 'a file in the way');
    const { code, stdout, stderr } = propelIn(folder, compareArgs(out, '--json'));
    expect(code).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toMatch(
      /^propel: seed 3: .*seed-3.* \(the other seeds have finished, and the report is over them; the same command tries again\)$/m,
    );
    expect(comparisonOf(out)).toMatchObject({ seeds: [5], missing: [{ seed: 3 }] });
  }, 60_000);

  it('refuses other settings in the same folder, and changes nothing', () => {
    const before = contentsOf(whole);
    const { code, stderr } = propelIn(folder, compareArgs(whole, '--set', 'train.steps=5'));
    expect(code).toBe(2);
    expect(stderr).toBe(
      `propel: ${join(whole, 'seed-3')} holds a run with other settings (train.steps 4 → 5); give the settings it was begun with, start over with --fresh, or choose another folder with --out\n`,
    );
    expect(contentsOf(whole)).toEqual(before);
    expect(readFileSync(join(whole, 'pipeline.yaml'), 'utf8')).toContain('steps: 4');
  });
});

describe('bad input ends with code 2 and one line, and makes no folder', () => {
  const MANY = "; 'propel config --schema' documents every setting";
  const refusal = (...args: string[]): string => {
    const before = contentsOf(folder);
    const { code, stdout, stderr } = propelIn(folder, ['compare', ...args]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^propel: .*\n$/);
    expect(contentsOf(folder)).toEqual(before);
    return stderr.trimEnd().slice('propel: '.length);
  };
  const small = (...args: string[]): string => refusal('small.yaml', ...args);

  it.each([
    [['none.yaml'], 'configuration none.yaml does not exist'],
    [
      ['small.yaml', '--seeds', '0,x'],
      "option '--seeds <n,n,…>' argument '0,x' is invalid. Give a whole number from 0",
    ],
    [['small.yaml', '--seeds', ''], "option '--seeds <n,n,…>' argument '' is invalid"],
    [['small.yaml', '--parallel', '0'], "option '--parallel <n>' argument '0' is invalid. Give auto or a whole number"],
    [['small.yaml', '--seeds', '1,1'], `--seeds 1,1: seeds: names a seed twice${MANY}`],
    [['small.yaml', '--set', 'seeds=[]'], '--set seeds=[]: seeds: give at least 1 item'],
    [['small.yaml', '--set', 'parallel=many'], '--set parallel=many: parallel: give auto or a whole number from 1'],
    [['small.yaml', '--set', 'models.policy=nowhere'], 'models.policy nowhere does not exist'],
  ])('%j', (args, line) => {
    expect(refusal(...args)).toContain(line);
  });

  it('an arm that is compared with nothing', () => {
    expect(small('--set', 'arms.other={reward: probe, policy: data/micro-world/solver}')).toBe(
      `--set arms.other={reward: probe, policy: data/micro-world/solver}: arms.other: is compared with nothing: add an arm with reward none and the policy data/micro-world/solver${MANY}`,
    );
    expect(small('--set', 'arms.base.reward=valid')).toContain(
      "arms.propel: is compared with nothing: add an arm with reward none and the run's own policy",
    );
  });

  it('a file that extends what is not there, or itself', () => {
    writeFileSync(join(folder, 'orphan.yaml'), 'extends: nowhere.yaml\n');
    expect(refusal('orphan.yaml')).toMatch(/orphan\.yaml:1: extends: nowhere\.yaml does not exist; give a path from /);
    writeFileSync(join(folder, 'one.yaml'), 'extends: two.yaml\n');
    writeFileSync(join(folder, 'two.yaml'), 'extends: one.yaml\n');
    expect(refusal('one.yaml')).toMatch(/two\.yaml:1: extends: a circle, .*; take one 'extends' out$/);
  });

  it('a fault is told of the file that holds it', () => {
    writeFileSync(join(folder, 'faulty.yaml'), 'extends: small.yaml\ntrain: { stepz: 3 }\n');
    expect(refusal('faulty.yaml')).toBe(
      `${join(folder, 'faulty.yaml')}:2: unknown key train.stepz; did you mean steps?${MANY}`,
    );
    writeFileSync(join(folder, 'child.yaml'), 'extends: faulty.yaml\nname: child\n');
    expect(refusal('child.yaml')).toBe(
      `${join(folder, 'faulty.yaml')}:2: unknown key train.stepz; did you mean steps?${MANY}`,
    );
  });
});
