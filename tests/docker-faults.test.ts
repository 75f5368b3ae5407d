/** The container sandbox under faults: every program has one outcome, its own, and nothing is left behind. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { findDaemon } from '../src/sandbox/docker/daemon.js';
import { createDockerSandbox } from '../src/sandbox/docker/docker-sandbox.js';
import { buildImage } from '../src/sandbox/docker/image.js';
import { listContainers } from '../src/sandbox/docker/owner.js';
import { missing, notRun } from './docker-suite.js';

/** A script that takes `start` and `stop` and does so with a daemon, where a test may. */
const DAEMON_SCRIPT = process.env['PROPEL_TEST_DAEMON'];
const PROGRAMS = 2000;
/** One program in so many does what would be blamed if it could be: it exits, or runs out of time. */
const ODD_ONE = 50;

const sleep = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function ownContainers(pid: number): Promise<string[]> {
  const { docker } = await findDaemon();
  return (await listContainers(docker)).filter((each) => each.pid === pid).map(({ id }) => id);
}

/** Runs the programs while `disturb` is at work, and says how many were settled wrongly, more than once, or not at all. */
async function underFaults(disturb: (isOver: () => boolean) => Promise<void>) {
  const sandbox = await createDockerSandbox({ size: 2 });
  const settled = new Map<number, number>();
  const wrong: unknown[] = [];
  try {
    let over = false;
    const disturbance = disturb(() => over);
    const runs = Array.from({ length: PROGRAMS }, async (_, index) => {
      const isOdd = index % ODD_ONE === 0;
      const code = isOdd
        ? `import os\ndef f(x):\n    os._exit(${index % 7})`
        : `def f(x):\n    return sum(range(x)) + ${index}`;
      const { calls } = await sandbox.run(
        { code, calls: ['20000'] },
        { determinism: false, limits: { timeoutMs: 5000 } },
      );
      settled.set(index, (settled.get(index) ?? 0) + 1);
      const [call] = calls;
      const isRight = isOdd
        ? call?.outcome === 'runtime_error' && call.detail.includes(`exit code ${index % 7}`)
        : call?.outcome === 'ok' && call.repr === String(199_990_000 + index);
      if (!isRight || calls.length !== 1) wrong.push({ index, call });
    });
    await Promise.all(runs);
    over = true;
    await disturbance;
    const statistics = sandbox.statistics;
    // Back to full strength.
    await sleep(3000);
    return {
      settled: settled.size,
      twice: [...settled.values()].filter((times) => times > 1).length,
      wrong,
      statistics,
      after: sandbox.statistics.containers,
    };
  } finally {
    await sandbox.close();
  }
}

/** Containers younger than this are left alone: on a busy machine none would ever be ready, and the pool would rightly give up. */
const SETTLED_MS = 500;

describe.skipIf(missing !== null)(`docker sandbox: faults${notRun}`, () => {
  it(`survives containers that are killed at random during ${PROGRAMS} programs`, { timeout: 180_000 }, async () => {
    const { docker } = await findDaemon();
    let kills = 0;
    const result = await underFaults(async (isOver) => {
      for (let turn = 0; !isOver(); turn++) {
        await sleep(150 + ((turn * 97) % 400));
        const [id] = (await ownContainers(process.pid)).slice(turn % 2);
        if (id === undefined) continue;
        const container = docker.getContainer(id);
        try {
          const { Pid, StartedAt } = (await container.inspect()).State;
          if (Date.now() - Date.parse(StartedAt) < SETTLED_MS) continue;
          if (turn % 3 === 0) killProcess(Pid);
          else await (turn % 3 === 1 ? container.kill() : container.remove({ force: true }));
          kills++;
        } catch {
          // It went before.
        }
      }
    });
    console.log(`${kills} kills: ${JSON.stringify(result.statistics)}`);
    expect(kills).toBeGreaterThan(3);
    expect(result).toMatchObject({ settled: PROGRAMS, twice: 0, wrong: [], after: 2 });
    expect(result.statistics.lost).toBeGreaterThan(3);
  });

  it.skipIf(DAEMON_SCRIPT === undefined)(
    'survives a daemon that is stopped and started (needs PROPEL_TEST_DAEMON)',
    { timeout: 180_000 },
    async () => {
      // A daemon of this test's own: other suites use the usual one meanwhile.
      const folder = mkdtempSync(join(tmpdir(), 'propel-daemon-'));
      const usual = process.env['DOCKER_HOST'];
      const daemon = (what: 'start' | 'stop') => {
        const env = { ...process.env, PROPEL_DAEMON_FOLDER: folder };
        execFileSync('bash', [DAEMON_SCRIPT as string, what], { env, stdio: 'ignore' });
      };
      try {
        daemon('start');
        process.env['DOCKER_HOST'] = `unix://${folder}/docker.sock`;
        await buildImage((await findDaemon()).docker, 'plain');
        const result = await underFaults(async () => {
          await sleep(1000);
          daemon('stop');
          await sleep(1000);
          daemon('start');
        });
        console.log(`daemon restarted: ${JSON.stringify(result.statistics)}`);
        expect(result).toMatchObject({ settled: PROGRAMS, twice: 0, wrong: [], after: 2 });
        expect(result.statistics.lost).toBeGreaterThan(0);
      } finally {
        if (usual === undefined) delete process.env['DOCKER_HOST'];
        else process.env['DOCKER_HOST'] = usual;
        daemon('stop');
        rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 250 });
      }
    },
  );

  it('leaves no container 5 s after its process was killed', async () => {
    const built = fileURLToPath(new URL('../dist/sandbox/docker/docker-sandbox.js', import.meta.url));
    const script = `
      const { createDockerSandbox } = await import(${JSON.stringify(built)});
      const sandbox = await createDockerSandbox({ size: 2 });
      const code = 'def f():\\n    while True: pass';
      for (let index = 0; index < 4; index++) void sandbox.run({ code, calls: [''] }, { limits: { timeoutMs: 60000 } });
      setTimeout(() => console.log('running'), 1500);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    expect(await ownContainers(child.pid as number)).toHaveLength(2);
    child.kill('SIGKILL');
    const started = performance.now();
    while ((await ownContainers(child.pid as number)).length > 0 && performance.now() - started < 10_000)
      await sleep(100);
    const seconds = (performance.now() - started) / 1000;
    console.log(`gone after ${seconds.toFixed(1)} s`);
    expect(seconds).toBeLessThan(5);
  });

  it('removes what a dead process left behind, and only that', async () => {
    const { docker } = await findDaemon();
    const living = await createDockerSandbox({ size: 1 });
    const [own] = await ownContainers(process.pid);
    const { Config } = await docker.getContainer(own as string).inspect();
    const owner = (Config.Labels['propel.owner'] as string).split('/');
    const dead = [...owner.slice(0, 2), '4194000', '1'].join('/');
    const left = await docker.createContainer({
      Image: Config.Image,
      Labels: { ...Config.Labels, 'propel.owner': dead },
    });
    const next = await createDockerSandbox({ size: 1 });
    await expect(left.inspect()).rejects.toThrow('no such container');
    expect((await docker.getContainer(own as string).inspect()).State.Running).toBe(true);
    await Promise.all([living.close(), next.close()]);
    expect(await ownContainers(process.pid)).toEqual([]);
  });
});

/** A container that has ended has process 0, and a signal to that one would go to this process's own group. */
function killProcess(pid: number): void {
  if (pid === 0) throw new Error('the container has ended');
  process.kill(pid, 'SIGKILL');
}
