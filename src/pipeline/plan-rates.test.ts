/** A run's rates and expectations, from a store with a handful of rows. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../tests/tiny-checkpoint.js';
import type { BatchKey, TaskRow } from '../store/rows.js';
import { taskId } from '../store/rows.js';
import { RunStore } from '../store/store.js';
import { loadConfig } from './config-file.js';
import { rescoredArm } from './evaluate.js';
import { runBasis } from './plan-rates.js';
import { secondsLikeRun } from './plan-time.js';
import { planWork } from './plan-work.js';

const ARMS = 'arms={base: {reward: none}, propel: {reward: probe}}';
const CONFIG = loadConfig('pipelines/azr-micro.yaml', [ARMS, 'band={min: 1, max: 1, of: 2}']);

const task = (key: BatchKey, item: number, valid: boolean): TaskRow => ({
  ...key,
  id: taskId(key, item),
  item,
  type: 'code_o',
  seed: 0,
  completion: '',
  tokens: 10 + item,
  valid,
  outcome: valid ? 'ok' : 'syntax_error',
  detail: '',
  topic: 'text',
  structure: null,
  rendered: valid ? '' : null,
  task: null,
  output: null,
});

/** Tasks of a batch, the first `valid` of them valid, each of those attempted twice. */
function commit(store: RunStore, key: BatchKey, tasks: number, valid: number, seconds: number): void {
  const rows = Array.from({ length: tasks }, (_, item) => task(key, item, item < valid));
  store.commitBatch(key, seconds, () => {
    store.insertTasks(rows);
    for (const { id } of rows.slice(0, valid)) {
      if (key.phase === 'train-generator') continue;
      store.insertAttempts(
        [0, 1].map((attempt) => ({ taskId: id, attempt, seed: 0, draw: attempt, answer: '', verdict: 'pass' })),
      );
      store.insertLabels([{ taskId: id, passes: 2, k: 2, split: 'label' }]);
    }
  });
}

function plantedRun(config = CONFIG): string {
  const folder = join(temporaryFolder(), 'run');
  const store = RunStore.open(folder);
  const { seed, ...settings } = config;
  store.startRun({ seed, config: settings, versions: {} });
  commit(store, { phase: 'label', arm: '', batch: 0 }, 8, 6, 4);
  store.finishPhase('train-probe', '', 3);
  commit(store, { phase: 'train-generator', arm: 'propel', batch: 1 }, 4, 2, 6);
  store.insertStep({
    arm: 'propel',
    step: 1,
    rewardMean: 0,
    rewardSd: 1,
    validity: 0.5,
    klPerSequence: 0,
    gradientNorm: 0,
    loss: 0,
    clippedShare: 0,
    entropy: 0,
    claimedInBand: null,
    measuredInBand: null,
    solverTrials: 0,
    proposeSeconds: 2,
    checkSeconds: 2,
    scoreSeconds: 1,
    updateSeconds: 1,
  });
  commit(store, { phase: 'evaluate', arm: 'base', batch: 0 }, 10, 5, 5);
  commit(store, { phase: 'evaluate', arm: 'propel', batch: 0 }, 10, 10, 7);
  commit(store, { phase: 'evaluate', arm: rescoredArm('propel', 1), batch: 0 }, 4, 4, 2);
  store.close();
  return folder;
}

describe('a run that was made', () => {
  it('gives seconds of a generation, a label, a sample and a trial, and how many were valid', () => {
    const { rates, expected } = runBasis(plantedRun(), CONFIG, null);
    expect(rates).toEqual({
      label: 4 / 8,
      'train-probe': 3 / 6,
      evaluate: 12 / 20,
      // Four tasks, two attempts each.
      're-score': 2 / 8,
      training: new Map([['probe', 6 / 4]]),
    });
    expect(expected).toEqual({
      validity: { label: 6 / 8, train: 2 / 4, evaluate: 15 / 20 },
      // 10 to 17 tokens of label and 10 to 13 of training.
      taskTokens: (8 * 13.5 + 4 * 11.5) / 12,
    });
  });

  it('makes the time of a configuration in proportion to its work', () => {
    const { rates } = runBasis(plantedRun(), CONFIG, null);
    const work = planWork(CONFIG, {
      validity: { label: 1, train: 1, evaluate: 1 },
      taskTokens: 1,
      answerTokens: 1,
      promptTokens: 1,
      questionTokens: 1,
    });
    const seconds = (phase: string, arm: string): number | null =>
      secondsLikeRun(
        CONFIG,
        work.find((one) => one.phase === phase && one.arm === arm)!,
        rates,
      );
    expect(seconds('label', '')).toBe(0.5 * Math.ceil(CONFIG.label.tasks / CONFIG.label.batch) * CONFIG.label.batch);
    expect(seconds('train-probe', '')).toBe(0.5 * CONFIG.label.tasks);
    expect(seconds('train-generator', 'propel')).toBe(1.5 * CONFIG.train.steps * CONFIG.train.batch);
    expect(seconds('evaluate', 'base')).toBeCloseTo(0.6 * CONFIG.evaluate.generations);
    expect(secondsLikeRun(CONFIG, work[0]!, { ...rates, label: null })).toBe(null);
  });

  it('says nothing of other models, and is refused', () => {
    const other = loadConfig('pipelines/azr-micro.yaml', [ARMS, 'models.policy=data/micro-world/solver']);
    const run = plantedRun();
    expect(() => runBasis(run, other, null)).toThrow(
      `${run} was run with other models: its rates say nothing of this configuration`,
    );
  });
});
