/** A run whose solver is an endpoint, killed in the middle of what it asks: no answer is asked for twice, and the rows are those of a run that was not. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Dump } from '../src/store/dump.js';
import type { BatchKey } from '../src/store/rows.js';
import { RunStore } from '../src/store/store.js';
import { isTrial, startChatServer, type ChatRequest, type ChatServer, type Reply } from './chat-server.js';
import { MAIN, sets, temporaryFolder } from './propel-process.js';

const folder = temporaryFolder();

/** Answers that follow from the request, as a deterministic server's do: some right for some tasks, most not. */
function answer({ seed, n = 1 }: ChatRequest): Reply {
  const content = (i: number): string => `${(seed! + i) % 3 === 0 ? '[1]' : (seed! + i) % 7}\n`;
  const choices = Array.from({ length: n }, (_, i) => ({ content: content(i), finish: 'stop' }));
  return { kind: 'choices', choices };
}

interface Asked {
  readonly server: ChatServer;
  /** From now on so many requests are answered, and the others hang. */
  readonly answerOnly: (count: number) => void;
}

async function startServer(reply: (request: ChatRequest) => Reply = answer): Promise<Asked> {
  let left = Infinity;
  const server = await startChatServer((request) =>
    isTrial(request) ? answer(request) : left-- > 0 ? reply(request) : { kind: 'hang' },
  );
  return { server, answerOnly: (count) => (left = count) };
}

/** Runs to the end, or is killed once `isDue`. @returns standard output and error, null of a killed run. */
async function propel(
  args: readonly string[],
  isDue: () => boolean = () => false,
): Promise<{ readonly stdout: string; readonly stderr: string } | null> {
  const child = spawn(process.execPath, [MAIN, ...args], { cwd: folder });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  let watching: NodeJS.Timeout | undefined;
  const due = new Promise<'due'>((resolve) => (watching = setInterval(() => isDue() && resolve('due'), 50)));
  const end = await Promise.race([ended, due]);
  clearInterval(watching);
  if (end !== 'due') {
    expect({ code: end, stderr: end === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
    return { stdout, stderr };
  }
  child.kill('SIGKILL');
  await ended;
  return null;
}

function inStore<Result>(out: string, read: (store: RunStore) => Result): Result {
  const store = RunStore.read(join(folder, out));
  try {
    return read(store);
  } finally {
    store.close();
  }
}

const rowsOf = (out: string): Dump => inStore(out, (store) => store.dumpRows());

/** Responses that a running command has kept of a batch. */
function kept(out: string, key: BatchKey): number {
  try {
    return inStore(out, (store) => store.keptAnswers(key).length);
  } catch {
    // It has only just begun.
    return 0;
  }
}

const ENDPOINT = { 'models.solver': null, 'solver.model': 'm', 'solver.concurrency': 4 };

it.each(['together', 'single'])(
  'keeps the answers of a batch that is broken off: %s',
  async (samples) => {
    const { server, answerOnly } = await startServer();
    const args = (out: string): string[] => {
      const settings = {
        ...ENDPOINT,
        'solver.endpoint': server.url,
        'solver.samples': samples,
        'label.tasks': 20,
        'label.batch': 48,
      };
      return ['label', '--out', `${out}-${samples}`, '--json', ...sets(settings)];
    };
    const whole = await propel(args('whole'));
    const all = server.requests.length;
    const summary = JSON.parse(whole!.stdout) as { labelled: number; ungraded: number };
    // Of an endpoint no more is asked than is needed.
    expect(summary).toMatchObject({ labelled: 20, ungraded: 0 });
    expect(inStore(`whole-${samples}`, (store) => store.countTrials('label'))).toBe(20 * 8);

    const answered = 9;
    const first: BatchKey = { phase: 'label', arm: '', batch: 0 };
    answerOnly(answered);
    expect(await propel(args('killed'), () => kept(`killed-${samples}`, first) === answered)).toBeNull();
    answerOnly(Infinity);
    const before = server.requests.length;
    expect(await propel(args('killed'))).not.toBeNull();
    expect(server.requests.length - before).toBe(all - answered);
    expect(rowsOf(`killed-${samples}`)).toEqual(rowsOf(`whole-${samples}`));
  },
  300_000,
);

it('keeps the answers of training steps that no checkpoint holds yet, and leaves out the tasks that it refuses', async () => {
  const refuses = ({ messages }: ChatRequest): boolean => messages[0]!.content.length % 9 === 0;
  const { server, answerOnly } = await startServer((request) =>
    refuses(request) && request.n !== undefined ? { kind: 'status', status: 400, text: 'filtered' } : answer(request),
  );
  const args = (out: string): string[] => {
    const settings = {
      ...ENDPOINT,
      'solver.endpoint': server.url,
      'solver.samples': 'together',
      arms: { sil: { reward: 'solver' } },
      'train.steps': 2,
      'train.batch': 48,
      'train.checkpointEvery': 2,
    };
    return ['train-generator', '--out', out, '--json', ...sets(settings)];
  };
  const whole = await propel(args('sil-whole'));
  const [arm] = (JSON.parse(whole!.stdout) as { arms: { ungraded: number }[] }).arms;
  expect(arm!.ungraded).toBeGreaterThan(0);
  expect(whole!.stderr).toMatch(/train-generator sil: 2 steps, \d+ not graded: attempts lost to failures/);
  const { tasks, labels, attempts, step_scores: scores } = rowsOf('sil-whole');
  const valid = tasks!.filter((row) => row['valid'] === 1).length;
  expect(labels).toHaveLength(valid - arm!.ungraded);
  expect(scores).toHaveLength(tasks!.length - arm!.ungraded);
  expect(attempts!.filter(({ verdict }) => verdict === 'error')).toHaveLength(8 * arm!.ungraded);

  // Killed in the second step; the first has no checkpoint.
  const asked = server.requests.filter((request) => !refuses(request)).length;
  const firstStep = inStore('sil-whole', (store) =>
    store.labelledTasks({ phase: 'train-generator', arm: 'sil', batch: 1 }),
  );
  const answered = firstStep.length + 3;
  const second: BatchKey = { phase: 'train-generator', arm: 'sil', batch: 2 };
  answerOnly(answered + server.requests.filter(refuses).length);
  expect(await propel(args('sil-killed'), () => kept('sil-killed', second) >= 1)).toBeNull();
  const keptOfBoth = kept('sil-killed', { ...second, batch: 1 }) + kept('sil-killed', second);
  expect(keptOfBoth).toBeGreaterThan(firstStep.length);
  answerOnly(Infinity);
  const before = server.requests.length;
  expect(await propel(args('sil-killed'))).not.toBeNull();
  const again = server.requests.slice(before).filter((request) => !refuses(request));
  expect(again).toHaveLength(asked - keptOfBoth);
  const { solver_usage: _, ...killedRows } = rowsOf('sil-killed');
  const { solver_usage: _usage, ...wholeRows } = rowsOf('sil-whole');
  expect(killedRows).toEqual(wholeRows);
}, 300_000);
