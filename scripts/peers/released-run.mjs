// A released model through `npm run released` in small: that every part of it works together.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RunStore } from '../../dist/store/store.js';

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url));
const MAIN = join(PACKAGE, 'dist', 'cli', 'main.js');

export const RELEASED_RUN = [
  {
    name: 'released-run',
    what: 'SmolLM2-135M-Instruct through npm run released in small: import, warm starts, probe, three steps, evaluation',
    environment: 'released',
    run: smallRun,
  },
];

/** Documents, labels and steps of a run in small: enough for every part to have something to do, not for any effect. */
const SMALL = { generator: 320, solver: 96, labels: 64, steps: 3, batch: 16, evaluate: 32 };

/** The whole way of `npm run released`, in small. Labels are the micro-world's own, as so little training gives no frontier. */
async function smallRun({ python, folder }) {
  const files = await python(['released.py', 'files', folder]);
  const micro = join(folder, 'micro');
  command(folder, MAIN, 'label', '--out', micro, '--set', `label.tasks=${SMALL.labels}`);
  const labels = join(folder, 'labels.jsonl');
  writeFileSync(
    labels,
    labelledRows(micro)
      .map((row) => `${JSON.stringify(row)}\n`)
      .join(''),
  );
  const settings = [
    `train.batch=${SMALL.batch}`,
    `train.microBatch=${SMALL.batch}`,
    `evaluate.generations=${SMALL.evaluate}`,
    `evaluate.batch=${SMALL.evaluate}`,
    `evaluate.rescoreEvery=${SMALL.steps}`,
    'probe.features=[[{layer: 12, pooling: mean}]]',
  ].flatMap((setting) => ['--set', setting]);
  const options = ['--gguf', files.smollm2, '--labels', labels, '--out', 'run', '--steps', String(SMALL.steps)];
  const documents = ['--generator', String(SMALL.generator), '--solver', String(SMALL.solver)];
  command(folder, join(PACKAGE, 'scripts', 'released.mjs'), ...options, ...documents, ...settings);
  const { arms, label } = JSON.parse(readFileSync(join(folder, 'run', 'results.json'), 'utf8'));
  const store = RunStore.read(join(folder, 'run'));
  const steps = store.steps('propel').length;
  store.close();
  if (steps !== SMALL.steps) throw new Error(`${steps} of ${SMALL.steps} steps`);
  const valid = arms.map(({ name, valid: n }) => `${name} ${n} of ${SMALL.evaluate} valid`);
  return { labels: label?.labelled ?? SMALL.labels, steps, evaluated: valid.join(', ') };
}

function command(cwd, script, ...args) {
  const { status, stderr } = spawnSync(process.execPath, [script, ...args], { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${args[0]}: ${stderr.trim().split('\n').at(-1)}`);
}

function labelledRows(run) {
  const store = RunStore.read(run);
  try {
    return store.labelledTasks({ phase: 'label' }).map(({ task, output, passes }) => {
      const { type, snippet, input } = task;
      return { type, snippet, input, output, passes, k: 8 };
    });
  } finally {
    store.close();
  }
}
