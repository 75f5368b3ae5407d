/** Seeds of the store are those that were used: rows are made again from what the store holds. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { CodeTask } from '../src/domain/azr/index.js';
import { initialAdapter } from '../src/lm/adapter.js';
import { readAdapter } from '../src/lm/adapter-folder.js';
import type { Adapter } from '../src/lm/adapter.js';
import { deriveSeed } from '../src/metrics/random.js';
import { armTrain, isTrained } from '../src/pipeline/arm-config.js';
import type { Workspace as WorkspaceType } from '../src/pipeline/workspace.js';
import type { AttemptRow, TaskRow } from '../src/store/rows.js';
import { PACKAGE, propelIn, sets, temporaryFolder } from './propel-process.js';

// The built modules, of the same types as the source: they start threads.
const { Workspace } = (await import(new URL('../dist/pipeline/workspace.js', import.meta.url).href)) as {
  Workspace: typeof WorkspaceType;
};
const { sampleKind, taskEnding } = (await import(
  new URL('../dist/pipeline/propose.js', import.meta.url).href
)) as typeof import('../src/pipeline/propose.js');

const folder = temporaryFolder();
const run = join(folder, 'run');

/** All three types, enough valid tasks in a batch for several rollouts of the solver, and arms with the solver in their training. */
const SETTINGS = sets({
  band: { min: 1, max: 3, of: 4 },
  'label.tasks': 70,
  'label.batch': 150,
  arms: {
    base: { reward: 'none' },
    adversarial: { reward: 'probe', adversarial: { every: 2, mine: 12, share: 0.8 } },
    solver: { reward: 'solver' },
  },
  'train.steps': 3,
  'train.batch': 96,
  'train.checkpointEvery': 1,
  'evaluate.generations': 120,
  'evaluate.batch': 120,
  'evaluate.rescoreEvery': 2,
});

let workspace: WorkspaceType;

beforeAll(() => {
  const { code, stderr } = propelIn(folder, [
    'run',
    join(PACKAGE, 'pipelines', 'azr-mixed.yaml'),
    '--out',
    run,
    ...SETTINGS,
  ]);
  expect(code, stderr).toBe(0);
  const silent = () => ({ update: () => {}, done: () => {} });
  workspace = Workspace.read(run, silent, new AbortController().signal);
}, 300_000);

afterAll(() => workspace?.close());

/** The adapter that wrote an arm's batch: of training that before the step, of evaluation the last. */
async function adapterOf({ phase, arm, batch }: TaskRow): Promise<Adapter | null> {
  const { config, store } = workspace;
  const settings = config.arms[arm];
  if (settings === undefined || !isTrained(settings)) return null;
  const policy = await workspace.policy(arm);
  const checkpoints = store.checkpoints(arm);
  if (phase === 'evaluate') return readAdapter(join(run, checkpoints.at(-1)!.path), policy.config);
  const before = checkpoints.find(({ step }) => step === batch - 1);
  if (before) return readAdapter(join(run, before.path), policy.config);
  return initialAdapter(
    policy.config,
    armTrain(config.train, settings).lora,
    deriveSeed(config.seed, `adapter ${arm}`, 0),
  );
}

function groupedBy<Row>(rows: readonly Row[], keyOf: (row: Row) => string | number): Row[][] {
  const groups = new Map<string | number, Row[]>();
  for (const row of rows) groups.set(keyOf(row), [...(groups.get(keyOf(row)) ?? []), row]);
  return [...groups.values()];
}

it('every task is what the generator writes from its seed', async () => {
  const { config, store } = workspace;
  let made = 0;
  for (const phase of ['label', 'train-generator', 'evaluate'] as const) {
    const own = store.tasks({ phase }).filter(({ arm }) => !arm.includes('/'));
    for (const rows of groupedBy(own, ({ seed }) => seed!)) {
      const [first] = rows as [TaskRow];
      const policy = await workspace.policy(first.arm || undefined);
      const options = {
        key: { phase, arm: first.arm, batch: first.batch },
        policy,
        temperature: phase === 'train-generator' ? 1 : config.policy.temperature,
        adapter: await adapterOf(first),
      };
      const samples = await sampleKind(workspace, options, { kind: first.type, size: rows.length, seed: first.seed! });
      const ending = taskEnding(workspace, policy);
      const texts = samples.map(({ completion }) => ending.textOf(completion.tokens));
      expect(texts).toEqual(rows.map(({ completion }) => completion));
      made += rows.length;
    }
  }
  expect(made).toBeGreaterThan(1000);
}, 300_000);

it('every attempt is what the solver answers from its seed', async () => {
  const { config, domain, store } = workspace;
  const solver = await workspace.solver();
  const k = config.band.of;
  const tasks = (['label', 'train-generator', 'evaluate'] as const).flatMap((phase) =>
    store.tasks({ phase, valid: true }),
  );
  const questionOf = new Map(tasks.map(({ id, task }) => [id, domain.question(task as unknown as CodeTask)]));
  const splitOf = new Map(store.labelledTasks({ phase: 'train-generator' }).map(({ id, split }) => [id, split]));
  const made: Record<string, number> = {};
  const attempts = tasks.flatMap(({ id }) => store.attempts(id));
  const rollouts = groupedBy(
    attempts.filter(({ seed }) => seed !== null),
    ({ seed }) => seed!,
  );
  for (const rollout of rollouts) {
    const rows = rollout.toSorted((a, b) => a.draw! - b.draw!);
    const [first] = rows as [AttemptRow];
    const asked = rows.filter((_, i) => i % k === 0).map(({ taskId }) => questionOf.get(taskId)!);
    const again = (await solver.attempt(asked, k, first.seed!)).flat();
    expect(again.map(({ answer }) => answer)).toEqual(rows.map(({ answer }) => answer));
    for (const { taskId } of rows) {
      const [phase, arm] = taskId.split('/') as [string, string];
      const purpose = splitOf.get(taskId) ?? (taskId.includes('/step-') ? 're-score' : phase);
      const key = `${purpose} ${arm}`;
      made[key] = (made[key] ?? 0) + 1;
    }
  }
  expect(made).toEqual({
    'label ': expect.any(Number),
    'mined adversarial': expect.any(Number),
    'loop solver': expect.any(Number),
    'evaluate base': expect.any(Number),
    'evaluate adversarial': expect.any(Number),
    'evaluate solver': expect.any(Number),
    're-score adversarial': expect.any(Number),
  });
  expect(Math.min(...Object.values(made))).toBeGreaterThan(40);
  // Several rollouts for one batch: what only the first of them was given does not make the others.
  expect(rollouts.some((rows) => rows.length === 64 * k)).toBe(true);
}, 300_000);
