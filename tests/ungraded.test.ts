/** Tasks whose attempts an endpoint loses in an evaluation are counted as ungraded, and no rate takes them for tasks out of band. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Results } from '../src/report/results.js';
import { RunStore } from '../src/store/store.js';
import { startChatServer } from './chat-server.js';
import { MAIN, sets, temporaryFolder } from './propel-process.js';

const folder = temporaryFolder();
const GENERATIONS = 32;

function propel(args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [MAIN, ...args], { cwd: folder });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  return new Promise((resolve, reject) =>
    child.on('close', (code) => (code === 0 ? resolve(stdout + stderr) : reject(new Error(stderr)))),
  );
}

it('counts them beside the rates over all others, in results, report and table', async () => {
  // A third of the questions find no answer, however often they are asked.
  const lost = (question: string): boolean => question.length % 3 === 0;
  const server = await startChatServer((request) =>
    lost(request.messages[0]!.content)
      ? { kind: 'status', status: 502 }
      : {
          kind: 'choices',
          choices: Array.from({ length: request.n ?? 1 }, () => ({ content: '2\n', finish: 'stop' })),
        },
  );
  const settings = {
    arms: { base: { reward: 'none' } },
    'models.solver': null,
    'solver.endpoint': server.url,
    'solver.model': 'm',
    'solver.retries': 0,
    'solver.stops': [],
    'evaluate.generations': GENERATIONS,
    'evaluate.batch': GENERATIONS,
  };
  const printed = await propel(['run', '--out', 'run', ...sets(settings)]);

  const store = RunStore.read(join(folder, 'run'));
  const valid = store.tasks({ phase: 'evaluate', arm: 'base', valid: true });
  const graded = store.labelledTasks({ phase: 'evaluate', arm: 'base' });
  store.close();
  const { arms } = JSON.parse(readFileSync(join(folder, 'run', 'results.json'), 'utf8')) as Results;
  const arm = arms[0]!;
  const ungraded = valid.length - graded.length;
  expect(ungraded).toBeGreaterThan(0);
  expect(graded.length).toBeGreaterThan(0);
  expect(arm).toMatchObject({ n: GENERATIONS, valid: valid.length, ungraded });
  expect(arm.validity).toBe(valid.length / GENERATIONS);
  expect(arm.frontierRate).toBe(arm.frontier / (GENERATIONS - ungraded));
  expect(arm.passCounts.reduce((sum, count) => sum + count)).toBe(graded.length);
  expect(arm.byType['code_o']).toMatchObject({ n: GENERATIONS, ungraded, frontierRate: arm.frontierRate });
  expect(printed).toContain(`of ${GENERATIONS - ungraded} in band, ${ungraded} not graded: attempts lost to failures`);
  expect(printed).toMatch(new RegExp(`ungraded +${ungraded}\\n|ungraded\\n[^]*base .* ${ungraded}\\n`));
  expect(readFileSync(join(folder, 'run', 'report.html'), 'utf8')).toContain('>ungraded</th>');
});
