// Load on `propel serve`: many clients at once, each request judged, latencies and the server's memory. Needs a built package.
//   node scripts/load-serve.mjs [--requests 10000] [--clients 64] [--items 1] [--distinct 2000] [--hostile]
// Starts a server of the micro-world on a free port. Prints one JSON document; exit code 1 when a request failed, an item is an
// error, or memory grew. With --hostile a batch of 1,000 endless loops and a body of 100 MB come beside the load.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '10000' },
    clients: { type: 'string', default: '64' },
    items: { type: 'string', default: '1' },
    distinct: { type: 'string', default: '2000' },
    hostile: { type: 'boolean', default: false },
  },
});
const [requests, clients, items, distinct] = [values.requests, values.clients, values.items, values.distinct].map(
  Number,
);
/** Megabytes of resident memory that the second half of a load may add. */
const GROWTH = 64;
const DEADLINE_S = 20;
/** The same completions come again and again. */
const PAID_AGAIN = ['--set', 'domain.validity.rejectRepeats=false'];

/** The i-th of the distinct completions; every fifth is no task. */
function completion(i) {
  const n = i % distinct;
  if (n % 5 === 4) return `def f(x):\n    return x +\n>>> f(${n})\n`;
  return `def f(x):\n    y = [a * ${(n % 7) + 2} + ${n} for a in x]\n    return y[::-1][1:]\n>>> f([${n % 11}, 2, ${n % 5}, 4])\n`;
}

const server = await startServer();
const latencies = [];
const outcomes = {};
const failures = [];
const memory = [];
const started = performance.now();
const hostile = values.hostile ? [hostileBatch(), hugeBody()] : [];
let next = 0;
await Promise.all(Array.from({ length: clients }, client));
const seconds = (performance.now() - started) / 1000;
const attacks = await Promise.all(hostile);
memory.push(residentMiB());
server.child.kill('SIGTERM');
await new Promise((resolve) => server.child.once('exit', resolve));

latencies.sort((a, b) => a - b);
const half = memory[Math.floor(memory.length / 2)];
const growth = Math.round(memory.at(-1) - half);
const report = {
  requests,
  clients,
  itemsARequest: items,
  distinct,
  seconds: Number(seconds.toFixed(1)),
  requestsPerSecond: Number((requests / seconds).toFixed(1)),
  milliseconds: { p50: quantile(0.5), p90: quantile(0.9), p99: quantile(0.99), max: quantile(1) },
  outcomes,
  failed: failures.length,
  firstFailure: failures[0] ?? null,
  residentMiB: { start: memory[0], half, end: memory.at(-1) },
  ...(values.hostile ? { hostile: attacks } : {}),
};
process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
if (failures.length > 0 || outcomes.error > 0 || growth > GROWTH) process.exitCode = 1;

async function client() {
  while (next < requests) {
    const at = next++;
    if (at % Math.max(1, Math.floor(requests / 20)) === 0) memory.push(residentMiB());
    const began = performance.now();
    const query = Array.from({ length: items }, (_, i) => completion(at * items + i));
    try {
      const response = await post('/get_reward', JSON.stringify({ query, prompts: query.map(() => ''), labels: [] }));
      const body = await response.json();
      if (response.status !== 200 || body.rewards.length !== items)
        throw new Error(`${response.status} ${JSON.stringify(body)}`);
      for (const valid of body.extra_logs.valid) count(valid === 1 ? 'valid' : 'invalid');
    } catch (error) {
      failures.push(String(error));
    }
    latencies.push(performance.now() - began);
  }
}

async function hostileBatch() {
  const loops = Array.from({ length: 1000 }, (_, i) => ({
    completion: `def f(x):\n    while x != ${-i - 1}: x = abs(x)\n    return x\n>>> f(${i})\n`,
  }));
  const began = performance.now();
  const response = await post('/v1/reward', JSON.stringify({ items: loops, deadlineMs: DEADLINE_S * 1000 }));
  const { results } = await response.json();
  const kinds = {};
  for (const { status, outcome } of results) kinds[`${status} ${outcome}`] = (kinds[`${status} ${outcome}`] ?? 0) + 1;
  return {
    what: '1,000 endless loops',
    seconds: Number(((performance.now() - began) / 1000).toFixed(2)),
    results: kinds,
  };
}

async function hugeBody() {
  const began = performance.now();
  const response = await post('/get_reward', `{"query":["${'x'.repeat(100 << 20)}"]}`).catch((error) => ({
    status: String(error.cause ?? error),
  }));
  return {
    what: 'a body of 100 MB',
    status: response.status,
    seconds: Number(((performance.now() - began) / 1000).toFixed(2)),
  };
}

function post(path, body) {
  return fetch(`${server.url}${path}`, { method: 'POST', body, headers: { 'content-type': 'application/json' } });
}

function count(outcome) {
  outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
}

function quantile(q) {
  return Math.round(latencies[Math.min(latencies.length - 1, Math.ceil(q * latencies.length) - 1)]);
}

/** Of the server, as Linux tells. */
function residentMiB() {
  const status = readFileSync(`/proc/${server.child.pid}/status`, 'utf8');
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)[1]) / 1024);
}

async function startServer() {
  const main = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
  const args = [main, 'serve', '--probe', 'probes/azr-micro/probe-0', '--port', '0', '--json', ...PAID_AGAIN];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (chunk) => (text += chunk));
  for (;;) {
    if (child.exitCode !== null) throw new Error('the server has ended');
    if (text.trimEnd().endsWith('}')) return { child, url: JSON.parse(text).url };
    await sleep(50);
  }
}
