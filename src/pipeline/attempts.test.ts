import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { startChatServer, type Choice, type Reply } from '../../tests/chat-server.js';
import { createFakeSandbox } from '../../tests/fake-sandbox.js';
import { TOPIC_RULES } from '../../tests/topic-rules.js';
import { codeDomainSchema, createCodeDomain, type CodeTask } from '../domain/azr/index.js';
import { seededRandom } from '../metrics/random.js';
import { NoAnswers } from '../solver/answer-watch.js';
import { openEndpointSolver } from '../solver/endpoint-solver.js';
import { RunStore } from '../store/store.js';
import { attemptTasks } from './attempts.js';
import { endpointSettings, solverSchema, type SolverConfig } from './solver-config.js';
import type { Workspace } from './workspace.js';

const TASKS = 400;
const K = 8;
const FIRST = { key: { phase: 'label', arm: '', batch: 0 }, purpose: 'test', index: 0, split: 'label' } as const;
const RIGHT = '```output\n7\n```';

function openStore(): RunStore {
  const folder = mkdtempSync(join(tmpdir(), 'propel-attempts-'));
  const store = RunStore.open(folder);
  onTestFinished(() => {
    store.close();
    rmSync(folder, { recursive: true });
  });
  return store;
}

/** A server that knows every answer, and of whose replies two in five go wrong in one of many ways. */
function faultyReply(random: () => number, served: Map<string, number>): (n: number) => Reply {
  const choices = (count: number): Choice[] =>
    Array.from({ length: count }, () => {
      const finish = random() < 0.1 ? 'length' : 'stop';
      return { content: finish === 'stop' ? RIGHT : '```output\n', finish };
    });
  const faults: ((n: number) => Reply)[] = [
    () => ({ kind: 'status', status: 500, text: RIGHT }),
    () => ({ kind: 'status', status: 503, text: 'loading' }),
    () => ({ kind: 'status', status: 429, headers: { 'retry-after': '0.02' } }),
    () => ({ kind: 'text', text: '{"choices": [{"index"' }),
    () => ({ kind: 'text', text: '{"choices": [{"message": {"content": 7}}]}' }),
    () => ({ kind: 'cut' }),
    () => ({ kind: 'reset' }),
    () => ({ kind: 'hang' }),
    (n) => ({ kind: 'choices', choices: choices(n), dripMs: 150 }),
    (n) => ({ kind: 'choices', choices: choices(n), dripMs: 2, usage: false }),
    (n) => ({ kind: 'choices', choices: choices(Math.max(0, n - 3)) }),
    (n) => ({ kind: 'choices', choices: choices(n + 2) }),
    (n) => ({ kind: 'choices', choices: choices(n).map((choice) => ({ ...choice, index: 0 })) }),
    (n) => ({
      kind: 'choices',
      choices: choices(n).map((choice, i) => (i % 2 ? { content: 'ab', finish: 'abort' } : choice)),
    }),
  ];
  return (n) => {
    if (random() < 0.6) return { kind: 'choices', choices: choices(n) };
    const which = Math.floor(random() * faults.length);
    served.set(String(which), (served.get(String(which)) ?? 0) + 1);
    return faults[which]!(n);
  };
}

/** What `attemptTasks` needs of a workspace, with an endpoint as solver. */
async function workspaceOf(solverConfig: SolverConfig): Promise<Workspace> {
  const solver = await openEndpointSolver(endpointSettings(solverConfig)!, { first: 2, longest: 20, checkSeconds: 5 });
  onTestFinished(() => solver.close());
  const sandbox = createFakeSandbox(() => '7');
  return {
    config: { seed: 0, band: { min: 1, max: 3, of: K }, solver: solverConfig },
    store: openStore(),
    progress: () => ({ update: () => {}, done: () => {} }),
    domain: createCodeDomain(codeDomainSchema.parse({}), TOPIC_RULES),
    solver: async () => solver,
    sandbox: async () => sandbox,
  } as unknown as Workspace;
}

function tasksOf(count: number): { id: string; task: CodeTask }[] {
  return Array.from({ length: count }, (_, i) => {
    const task: CodeTask = { type: 'code_o', snippet: 'def f(x):\n    return 7', input: `[${i}, 3]`, output: '7' };
    return { id: String(i), task };
  });
}

it('writes down of each attempt the seed that its request carried and its place there, also when asked for once more', async () => {
  // The first request of each question hangs or answers three of its attempts; a third question is down until it is asked again.
  let down = 3;
  const server = await startChatServer((request, ordinal) => {
    if (/\[2, 3\]/.test(request.messages[0]!.content) && down-- > 0) return { kind: 'status', status: 503 };
    const choices = Array.from({ length: Math.min(3, request.n ?? 1) }, (_, i) => ({
      content: `${request.seed} ${i} of ${ordinal}`,
      finish: 'stop',
    }));
    return { kind: 'choices', choices };
  });
  const workspace = await workspaceOf(
    solverSchema.parse({ endpoint: server.url, model: 'm', concurrency: 1, retries: 2, samples: 'together' }),
  );
  const { attempts } = await attemptTasks(workspace, tasksOf(3), FIRST);
  expect(attempts).toHaveLength(3 * K);
  expect(down).toBeLessThanOrEqual(0);
  expect(attempts.map(({ seed, draw }) => `${seed} ${draw}`)).toEqual(
    attempts.map(({ answer }) => answer.split(' of ')[0]),
  );
  // Requests of three choices, three choices and two for each question.
  expect(new Set(attempts.map(({ seed }) => seed)).size).toBe(9);
});

it('loses and miscounts no attempt of thousands, whatever the endpoint does', async () => {
  const random = seededRandom('faults of an endpoint');
  const served = new Map<string, number>();
  const reply = faultyReply(random, served);
  const dead = (question: string): boolean => /\[1, 3\]|\[2, 3\]/.test(question);
  const server = await startChatServer((request) =>
    dead(request.messages[0]!.content) ? { kind: 'status', status: 502 } : reply(request.n ?? 1),
  );
  const solverConfig = solverSchema.parse({
    endpoint: server.url,
    model: 'm',
    concurrency: 64,
    timeoutSeconds: 0.3,
    retries: 12,
  });
  const workspace = await workspaceOf(solverConfig);

  const { attempts, labels, usage } = await attemptTasks(workspace, tasksOf(TASKS), FIRST);

  expect(served.size).toBe(14);
  expect(attempts).toHaveLength(TASKS * K);
  expect(new Set(attempts.map(({ taskId, attempt }) => `${taskId} ${attempt}`)).size).toBe(TASKS * K);
  // The only fails are answers that the server itself cut off; every other answer was right.
  const of = (verdict: string) => attempts.filter((row) => row.verdict === verdict);
  expect(new Set(of('pass').map(({ answer }) => answer))).toEqual(new Set([RIGHT]));
  expect(new Set(of('fail').map(({ answer }) => answer))).toEqual(new Set(['```output\n']));
  expect(new Set(of('error').map(({ taskId }) => taskId))).toEqual(new Set(['1', '2']));
  expect(of('error')).toHaveLength(2 * K);
  expect(labels).toHaveLength(TASKS - 2);
  expect(labels.reduce((sum, { passes }) => sum + passes, 0)).toBe(of('pass').length);
  expect(of('fail').length / (TASKS * K)).toBeGreaterThan(0.05);
  expect(of('fail').length / (TASKS * K)).toBeLessThan(0.15);
  // Some are lost before the server has read them.
  expect(usage.requests).toBeGreaterThanOrEqual(server.requests.length);
  expect(usage.requests).toBeLessThan(1.05 * server.requests.length);
  expect(usage.retries).toBeGreaterThan(100);
});

it('keeps nothing of a batch whose answers are all empty, so that a server that is mended is asked anew', async () => {
  let isBroken = true;
  const server = await startChatServer((request) => ({
    kind: 'choices',
    choices: Array.from({ length: request.n ?? 1 }, () => ({ content: isBroken ? null : RIGHT, finish: 'stop' })),
  }));
  const solverConfig = solverSchema.parse({ endpoint: server.url, model: 'm', concurrency: 1 });
  const store = openStore();
  const earlier = { phase: 'label', arm: '', batch: 0 } as const;
  store.keepAnswer({ ...earlier, question: 'of another batch', ordinal: 0, response: {} });
  const key = { ...earlier, batch: 1 };
  const workspace = {
    config: { seed: 0, band: { min: 1, max: 3, of: K }, solver: solverConfig },
    store,
    progress: () => ({ update: () => {}, done: () => {} }),
    domain: createCodeDomain(codeDomainSchema.parse({}), TOPIC_RULES),
    solver: async () => {
      const solver = await openEndpointSolver(endpointSettings(solverConfig)!);
      onTestFinished(() => solver.close());
      return solver;
    },
    sandbox: async () => createFakeSandbox(() => '7'),
  } as unknown as Workspace;
  const tasks = Array.from({ length: 8 }, (_, i) => {
    const task: CodeTask = { type: 'code_o', snippet: 'def f(x):\n    return 7', input: `[${i}]`, output: '7' };
    return { id: String(i), task };
  });

  await expect(attemptTasks(workspace, tasks, { ...FIRST, key })).rejects.toThrow(NoAnswers);
  expect(store.keptAnswers(key)).toEqual([]);
  expect(store.keptAnswers(earlier)).toHaveLength(1);
  isBroken = false;
  const { labels } = await attemptTasks(workspace, tasks, { ...FIRST, key });
  expect(labels.map(({ passes }) => passes)).toEqual(Array(8).fill(K));
});
