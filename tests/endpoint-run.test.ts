/** A run whose solver is an endpoint: broken off when the endpoint fails, it goes on and pays for no finished batch again. */
import { spawn } from 'node:child_process';
import { expect, it } from 'vitest';
import { RunStore } from '../src/store/store.js';
import { startChatServer } from './chat-server.js';
import { MAIN, sets, temporaryFolder, type Ended } from './propel-process.js';
import { join } from 'node:path';

/** Requests that are answered before the endpoint goes down. */
const ANSWERED = 18;

const folder = temporaryFolder();

function propel(args: readonly string[]): Promise<Ended> {
  const child = spawn(process.execPath, [MAIN, ...args], { cwd: folder });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, stdout, stderr })));
}

it('goes on after the endpoint was down, with every request of the finished batches kept', async () => {
  let isDown = false;
  let answered = 0;
  const server = await startChatServer((request) => {
    if (isDown) return { kind: 'status', status: 503 };
    // The endpoint goes down in the second batch.
    isDown = ++answered === ANSWERED;
    const choices = Array.from({ length: request.n ?? 1 }, (_, i) => ({
      content: i < 3 ? '[1]\n' : '2\n',
      finish: 'stop',
    }));
    return { kind: 'choices', choices };
  });
  const settings = {
    'models.solver': null,
    'solver.endpoint': server.url,
    'solver.model': 'm',
    'solver.retries': 0,
    'solver.stops': [],
    'solver.prices': { prompt: 1000, completion: 0 },
    'label.tasks': 24,
    'label.batch': 24,
  };
  const label = ['label', '--out', 'run', '--json', ...sets(settings)];

  // A batch in which some attempts could be had is kept; the next one, without any, is not.
  const broken = await propel(label);
  expect(broken.code).toBe(1);
  expect(broken.stderr).toContain(`the solver's endpoint ${server.url} answered none of `);
  const before = RunStore.read(join(folder, 'run'));
  const finished = before.batches('label', '').length;
  const labelled = before.labelledTasks({ phase: 'label' });
  const kept = new Set(before.tasks({ phase: 'label', valid: true }).map(({ rendered }) => rendered!));
  before.close();
  expect(finished).toBeGreaterThan(0);
  expect(labelled).toHaveLength(ANSWERED);

  isDown = false;
  const askedBefore = server.requests.length;
  const whole = await propel(label);
  expect(whole.code).toBe(0);
  const askedAgain = server.requests.slice(askedBefore).map(({ messages }) => messages[0]!.content);
  expect(askedAgain.filter((question) => kept.has(question))).toEqual([]);
  const summary = JSON.parse(whole.stdout) as { labelled: number; solverAccount: Record<string, number> };
  expect(summary.labelled).toBeGreaterThanOrEqual(24);
  const { requests, promptTokens, cost } = summary.solverAccount;
  expect(promptTokens).toBe(10 * (ANSWERED + askedAgain.length));
  expect(cost).toBeCloseTo(promptTokens! / 1000, 9);
  expect(requests).toBeGreaterThan(ANSWERED);
}, 300_000);

it('says at once that there is no endpoint, and writes nothing', async () => {
  const settings = { 'models.solver': null, 'solver.endpoint': 'http://127.0.0.1:9/v1', 'solver.model': 'm' };
  const { code, stdout, stderr } = await propel(['label', '--out', 'none', ...sets(settings)]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(/propel: solver\.endpoint: http:\/\/127\.0\.0\.1:9\/v1 cannot be reached: .*\n$/);
});
