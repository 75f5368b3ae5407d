// The container sandbox's benchmarks: the pool against a `docker exec` a program, and ten inputs of a program at once against one by one.
import { findDaemon } from '../../dist/sandbox/docker/daemon.js';
import { createDockerSandbox } from '../../dist/sandbox/docker/docker-sandbox.js';

const PROGRAMS = 200;
const EXECS = 10;
const INPUTS = Array.from({ length: 10 }, (_, i) => `[${i}, 3, 1, 2], 7`);
const code = (i) =>
  `def f(a, k):\n    s = 0\n    for i, x in enumerate(a):\n        s += x * i % k\n    return [s, sorted(a), ${i}]`;
const ONE_PASS = { determinism: false };

export async function rows({ rounds }) {
  const size = 2;
  let sandbox;
  try {
    sandbox = await createDockerSandbox({ size });
  } catch (error) {
    return [{ name: 'container sandbox', notRun: error.message }];
  }
  const { docker } = await findDaemon();
  const idle = await docker.createContainer({
    Image: sandbox.versions.image,
    Entrypoint: ['python3', '-c', 'import time; time.sleep(10 ** 6)'],
    HostConfig: { NetworkMode: 'none', AutoRemove: true },
  });
  try {
    await idle.start();
    const best = { pool: 0, exec: 0, singles: 0, batches: 0 };
    for (let round = 0; round < rounds; round++) {
      best.pool = Math.max(best.pool, await poolRate(sandbox));
      best.exec = Math.max(best.exec, await execRate(docker, idle));
      best.singles = Math.max(best.singles, await inputRate(sandbox, 1));
      best.batches = Math.max(best.batches, await inputRate(sandbox, INPUTS.length));
    }
    return [
      {
        name: `containers, one pass, ${size} of them`,
        unit: 'programs/s',
        peer: 'a docker exec a program',
        ours: best.pool,
        theirs: best.exec,
      },
      {
        name: 'ten inputs of a program at once',
        unit: 'inputs/s',
        peer: 'one by one',
        ours: best.batches,
        theirs: best.singles,
      },
    ];
  } finally {
    await Promise.all([idle.remove({ force: true }), sandbox.close()]);
  }
}

async function poolRate(sandbox) {
  const started = performance.now();
  const runs = Array.from({ length: PROGRAMS }, (_, i) => sandbox.run({ code: code(i), calls: [INPUTS[0]] }, ONE_PASS));
  expectOk(await Promise.all(runs));
  return (PROGRAMS / (performance.now() - started)) * 1000;
}

/** The same number of programs under way at once as the pool has containers. */
async function execRate(docker, container) {
  const started = performance.now();
  const run = async (i) => {
    const exec = await container.exec({
      Cmd: ['python3', '-S', '-c', `${code(i)}\nprint(repr(f(${INPUTS[0]})))`],
      AttachStdout: true,
      AttachStderr: true,
    });
    const stream = await exec.start({});
    let printed = '';
    stream.on('data', (chunk) => (printed += chunk));
    await new Promise((resolve) => stream.on('end', resolve));
    if (!printed.includes(`[0, 1, 2, 3], ${i}]`)) throw new Error(`a program under docker exec printed ${printed}`);
  };
  for (let i = 0; i < EXECS; i += 2) await Promise.all([run(i), run(i + 1)]);
  return (EXECS / (performance.now() - started)) * 1000;
}

async function inputRate(sandbox, together) {
  const started = performance.now();
  const programs = PROGRAMS / INPUTS.length;
  const runs = Array.from({ length: programs }, (_, i) => {
    const groups = Array.from({ length: INPUTS.length / together }, (_unused, at) =>
      INPUTS.slice(at * together, (at + 1) * together),
    );
    return groups.map((calls) => sandbox.run({ code: code(i), calls }, ONE_PASS));
  });
  expectOk(await Promise.all(runs.flat()));
  return (PROGRAMS / (performance.now() - started)) * 1000;
}

function expectOk(results) {
  if (!results.every(({ calls }) => calls.every(({ outcome }) => outcome === 'ok')))
    throw new Error('a benchmark program did not run');
}
