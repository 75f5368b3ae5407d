// Many programs through one pool of containers that are never replaced: what Node.js and the supervisors take must not grow.
//     npm run soak [-- --programs 10000]
// Reads the supervisors in /proc, so it needs a daemon on this machine and the right to look. Exit code 1 when something grew.
import { readdirSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { findDaemon } from '../dist/sandbox/docker/daemon.js';
import { createDockerSandbox } from '../dist/sandbox/docker/docker-sandbox.js';
import { listContainers } from '../dist/sandbox/docker/owner.js';

const { values } = parseArgs({ options: { programs: { type: 'string', default: '10000' } } });
const programs = Number(values.programs);
const WARM_UP = 0.3;
const ALLOWED_GROWTH = 0.05;
const AT_ONCE = 8;

const { docker } = await findDaemon();
const sandbox = await createDockerSandbox({ size: 2, pool: { recycleAfter: Number.MAX_SAFE_INTEGER } });
await sandbox.run(program(0));
await new Promise((resolve) => setTimeout(resolve, 2000));
const own = (await listContainers(docker)).filter(({ pid }) => pid === process.pid);
const supervisors = await Promise.all(own.map(async ({ id }) => (await docker.getContainer(id).inspect()).State.Pid));

const samples = [];
const started = performance.now();
for (let done = 0; done <= programs;) {
  samples.push({ done, ...measure() });
  const { node, supervisor, descriptors } = samples.at(-1);
  const rate = done / ((performance.now() - started) / 1000);
  console.log(
    `${String(done).padStart(6)} programs  ${rate.toFixed(0).padStart(4)}/s  Node ${node} KiB  supervisors ${supervisor} KiB  descriptors ${descriptors}`,
  );
  const until = Math.min(done + Math.ceil(programs / 20), programs);
  if (until === done) break;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async (_, lane) => {
      for (let index = done + lane; index < until; index += AT_ONCE) await check(index);
    }),
  );
  done = until;
}
const { lost, leftOver, containers } = sandbox.statistics;
await sandbox.close();

const after = samples.filter(({ done }) => done >= WARM_UP * programs);
const half = Math.ceil(after.length / 2);
const growth = (key) => mean(after.slice(-half), key) / mean(after.slice(0, half), key) - 1;
const report = {
  node: growth('node'),
  supervisor: growth('supervisor'),
  descriptors: after.at(-1).descriptors - after[0].descriptors,
};
console.log(
  `after warm-up, second half against first: Node ${percent(report.node)}, supervisors ${percent(report.supervisor)}, descriptors ${report.descriptors}`,
);
console.log(`containers ${containers}, lost ${lost}, processes left over ${leftOver}`);
const grew = report.node > ALLOWED_GROWTH || report.supervisor > ALLOWED_GROWTH || report.descriptors > 0;
process.exitCode = grew || lost > 0 || leftOver > 0 ? 1 : 0;

/** Ordinary programs, and every so often one that fails, floods, exits, or takes much memory. */
function program(index) {
  switch (index % 25) {
    case 7:
      return { code: 'def f(x):\n    return 1 // 0', calls: ['1'] };
    case 11:
      return { code: 'import os\ndef f(x):\n    os._exit(3)', calls: ['1'] };
    case 13:
      return { code: 'def f(x):\n    return [0] * 10 ** 9', calls: ['1'] };
    case 17:
      return { code: 'def f(x):\n    while True: print("spam" * 1000)', calls: ['1'] };
    case 19:
      return { code: 'def f(x):\n    return "y" * 200000', calls: ['1'] };
    default:
      return { code: `def f(x):\n    return sorted(range(${index % 100}), key=lambda v: -v)[:x]`, calls: ['5', '7'] };
  }
}

async function check(index) {
  const { calls } = await sandbox.run(program(index), { determinism: false });
  const expected = { 7: 'runtime_error', 11: 'runtime_error', 13: 'memory', 17: 'output_limit' }[index % 25] ?? 'ok';
  if (!calls.every(({ outcome }) => outcome === expected))
    throw new Error(`program ${index}: ${JSON.stringify(calls)}`);
}

function measure() {
  globalThis.gc?.();
  const residents = supervisors.map((pid) =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]),
  );
  const open = [process.pid, ...supervisors].map((pid) => readdirSync(`/proc/${pid}/fd`).length);
  return { node: Math.round(process.memoryUsage().rss / 1024), supervisor: sum(residents), descriptors: sum(open) };
}

function sum(numbers) {
  return numbers.reduce((total, each) => total + each, 0);
}

function mean(rows, key) {
  return sum(rows.map((row) => row[key])) / rows.length;
}

function percent(share) {
  return `${share >= 0 ? '+' : ''}${(100 * share).toFixed(1)}%`;
}
