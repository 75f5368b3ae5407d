/** A run whose solver is an endpoint: broken off when the endpoint fails, it goes on and pays for no finished batch again. */
import { spawn } from 'node:child_process';
import { expect, it } from 'vitest';
import { existsSync, readFileSync } from 'node:fs';
import type { Results } from '../src/report/results.js';
import { RunStore } from '../src/store/store.js';
import { isTrial, startChatServer, type ChatServer, type Choice, type Reply } from './chat-server.js';
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
  const answered: string[] = [];
  const server = await startChatServer((request) => {
    if (isDown) return { kind: 'status', status: 503 };
    // The endpoint goes down in the second batch.
    if (!isTrial(request)) isDown = answered.push(request.messages[0]!.content) === ANSWERED;
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
    'solver.waitSeconds': 0,
    'solver.stops': [],
    'solver.prices': { prompt: 1000, completion: 0 },
    'label.tasks': 24,
    'label.batch': 12,
  };
  const label = ['label', '--out', 'run', '--json', ...sets(settings)];

  // The batch in which it goes down stays open: what it answered is kept, and no task of it is lost.
  const broken = await propel(label);
  expect(broken.code).toBe(1);
  expect(broken.stderr).toContain(`the solver's endpoint ${server.url} has stopped answering: status 503`);
  const before = RunStore.read(join(folder, 'run'));
  const finished = before.batches('label', '').length;
  const labelled = before.labelledTasks({ phase: 'label' }).length;
  const ungraded = before.countUngraded('label');
  before.close();
  expect(finished).toBeGreaterThan(0);
  expect(labelled).toBeLessThan(ANSWERED);
  expect(ungraded).toBe(0);

  isDown = false;
  const whole = await propel(label);
  expect(whole.code).toBe(0);
  const summary = JSON.parse(whole.stdout) as {
    labelled: number;
    ungraded: number;
    solverAccount: Record<string, number>;
  };
  expect(summary).toMatchObject({ labelled: 24, ungraded: 0 });
  // Each task was answered once, before or after.
  expect(answered).toHaveLength(24);
  expect(new Set(answered).size).toBe(24);
  const { promptTokens, cost } = summary.solverAccount;
  expect(promptTokens).toBe(10 * 24);
  expect(cost).toBeCloseTo(promptTokens! / 1000, 9);
}, 300_000);

it('says at once that there is no endpoint, and writes nothing', async () => {
  const settings = { 'models.solver': null, 'solver.endpoint': 'http://127.0.0.1:9/v1', 'solver.model': 'm' };
  const { code, stdout, stderr } = await propel(['label', '--out', 'none', ...sets(settings)]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(/propel: solver\.endpoint: http:\/\/127\.0\.0\.1:9\/v1 cannot be reached: .*\n$/);
});

/** A small run of the untrained generator whose solver is a server. */
function small(server: ChatServer, name: string, more: Record<string, unknown> = {}): Promise<Ended> {
  const settings = {
    arms: { base: { reward: 'none' } },
    'models.solver': null,
    'solver.endpoint': server.url,
    'solver.model': 'm',
    'solver.retries': 1,
    'solver.stops': [],
    'label.tasks': 6,
    'label.batch': 32,
    'evaluate.generations': 16,
    'evaluate.batch': 16,
    ...more,
  };
  return propel(['run', '--out', name, ...sets(settings)]);
}

const all =
  (choice: Choice) =>
  ({ n }: { readonly n?: number }): Reply => ({
    kind: 'choices',
    choices: Array.from({ length: n ?? 1 }, () => choice),
  });

it('stops when nearly all answers are empty, and says what to do', async () => {
  const server = await startChatServer(all({ content: null, finish: 'stop' }));
  const { code, stderr } = await small(server, 'empty');
  expect(code).toBe(1);
  expect(stderr).toMatch(/^propel: the solver's endpoint http.* answers nothing: of \d+ attempts \d+ are empty\. .*$/m);
  // Nothing came of the start, so nothing is left of it.
  expect(existsSync(join(folder, 'empty'))).toBe(false);
}, 120_000);

it('takes the reasoning where it holds the whole output, shows what is empty, and lets no token count end it', async () => {
  const whole: Choice = { content: null, finish: 'eos', message: { reasoning_content: '2' } };
  const server = await startChatServer(({ n = 1 }) => ({
    kind: 'text',
    text: JSON.stringify({
      choices: Array.from({ length: n }, (_, index) => ({
        index,
        message: index === 0 ? { content: null } : { content: null, ...whole.message },
        finish_reason: index === 1 ? 'my_own' : whole.finish,
      })),
      usage: { prompt_tokens: 5.5, completion_tokens: 1e300 },
    }),
  }));
  const { code, stdout, stderr } = await small(server, 'reasoning');
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(stderr.match(/warning: .*/g)).toHaveLength(2);
  expect(stderr).toMatch(/^solver: warning: http.*: content is empty and the text stands in the reasoning/m);
  expect(stderr).toMatch(/^solver: warning: http.*: finish_reason "my_own" is not known/m);
  const store = RunStore.read(join(folder, 'reasoning'));
  const tasks = store.labelledTasks({ phase: 'label' });
  const answers = tasks.flatMap(({ id }) => store.attempts(id).map(({ answer }) => answer));
  store.close();
  expect(answers.filter((answer) => answer === '2')).toHaveLength((7 / 8) * answers.length);
  const results = JSON.parse(readFileSync(join(folder, 'reasoning', 'results.json'), 'utf8')) as Results;
  const { empty, unmetered, promptTokens, requests } = results.solverAccount!;
  expect({ promptTokens, unmetered }).toEqual({ promptTokens: 0, unmetered: requests });
  expect(empty).toBe(requests);
  const [base] = results.arms;
  expect(base!.unanswered).toEqual({ cutOff: 0, empty: base!.valid, refused: 0 });
  expect(stdout).toMatch(/ empty\b/);
  expect(stdout).toContain(`${empty} answers empty`);
}, 120_000);

it('names the setting where the server refuses a field, and runs once it is changed', async () => {
  const server = await startChatServer((request) => {
    for (const field of ['max_tokens', 'seed']) {
      if (!(field in request)) continue;
      const error = { message: `${field} is no parameter of this model`, param: field };
      return { kind: 'status', status: 400, text: JSON.stringify({ error }) };
    }
    return all({ content: '2', finish: 'end' })(request);
  });
  const first = await small(server, 'fields');
  expect(first.code).toBe(2);
  expect(first.stderr).toMatch(/^propel: solver\.fields\.max_tokens: .*max_tokens is no parameter of this model\)$/m);
  const renamed = { 'solver.fields.max_tokens': 'max_completion_tokens' };
  const second = await small(server, 'fields-2', renamed);
  expect(second.code).toBe(2);
  expect(second.stderr).toMatch(/^propel: solver\.fields\.seed: .*seed is no parameter of this model\)$/m);
  const third = await small(server, 'fields-3', { ...renamed, 'solver.fields.seed': null });
  expect(third).toMatchObject({ code: 0 });
}, 180_000);
