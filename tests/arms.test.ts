/** Every kind of arm, trained for some steps: what each records, and that it goes on from any moment as if it had not been stopped. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readTensors } from '../src/lm/safetensors.js';
import { writeCheckpoint } from '../src/lm/checkpoint.js';
import type { Results } from '../src/report/results.js';
import { RunStore } from '../src/store/store.js';
import { expectSameAfterKills, runsFolder, runWhole } from './killed-run.js';
import type { WholeRun } from './killed-run.js';
import { sets } from './propel-process.js';
import { addTokenizer, MICRO_WORLD_VOCABULARY, randomWeights, TINY_QWEN2 } from './tiny-checkpoint.js';

const KILLS = 12;
const STEPS = 5;
const K = 4;
/** Graded attempts that the arm with the solver in the loop stops at: so many and less than one step's more. */
const TRIALS = 100;
const folder = runsFolder();
afterAll(() => rmSync(folder, { recursive: true }));

/** All arms on the micro-world's models, and one whose generator is of another family. */
function settings(otherFamily: string): string[] {
  return sets({
    band: { min: 2, max: K, of: K },
    'domain.validity.distinctOutputs': null,
    'policy.maxNewTokens': 60,
    'solver.maxNewTokens': 30,
    'label.tasks': 50,
    'label.batch': 32,
    'probe.features': [[{ layer: 1, pooling: 'mean' }], [{ layer: 3, pooling: 'last' }]],
    'probe.l2': [0.1],
    'train.steps': STEPS,
    'train.batch': 16,
    'train.checkpointEvery': 3,
    arms: {
      base: { reward: 'none' },
      adversarial: {
        reward: 'probe',
        probes: 2,
        adversarial: { every: 2, mine: 3, share: 1 },
      },
      crowded: { reward: 'probe', crowding: { by: 'activations', weight: 1, window: 1 }, train: { steps: 3 } },
      sil: { reward: 'solver', trials: TRIALS },
      valid: { reward: 'valid', crowding: { by: 'topic', weight: 0.5 } },
      random: { reward: 'random', train: { steps: 2, lora: { rank: 2 } } },
      length: { reward: 'length', train: { updates: 2 } },
      family: { reward: 'probe', policy: otherFamily, train: { steps: 2 } },
      'family-base': { reward: 'none', policy: otherFamily },
    },
    'evaluate.generations': 16,
    'evaluate.batch': 16,
    'evaluate.rescoreEvery': 2,
  });
}

/** A generator of another architecture that has learnt nothing. */
function writeOtherFamily(checkpoint: string): void {
  const config = { ...TINY_QWEN2, vocabulary: MICRO_WORLD_VOCABULARY, maxPositions: 96 };
  writeCheckpoint(checkpoint, config, randomWeights(config, 1), { bos: 1, eos: 2, pad: 0 });
  addTokenizer(checkpoint);
}

describe('every kind of arm', () => {
  let whole: WholeRun;
  let args: string[];
  let store: RunStore;

  beforeAll(async () => {
    const otherFamily = join(folder, 'qwen2');
    writeOtherFamily(otherFamily);
    args = settings(otherFamily);
    whole = await runWhole(join(folder, 'whole'), args);
    store = RunStore.read(whole.folder);
  }, 300_000);
  afterAll(() => store.close());

  const scores = (arm: string) => store.steps(arm).flatMap(({ step }) => store.stepScores(arm, step));
  const earned = (arm: string) => {
    const valid = new Set(store.tasks({ phase: 'train-generator', arm, valid: true }).map(({ id }) => id));
    return scores(arm).flatMap(({ taskId, reward }) => (valid.has(taskId) ? [reward] : []));
  };

  it('solver in the loop: K attempts at every valid task are rows, and the arm stops once its trials are spent', () => {
    const steps = store.steps('sil');
    const tasks = store.tasks({ phase: 'train-generator', arm: 'sil', valid: true });
    const labelled = store.labelledTasks({ phase: 'train-generator', arm: 'sil', split: 'loop' });
    expect(labelled.map(({ id }) => id)).toEqual(tasks.map(({ id }) => id));
    const trials = store.countTrials('train-generator', 'sil');
    expect(trials).toBe(K * tasks.length);
    expect(steps.reduce((sum, { solverTrials }) => sum + solverTrials, 0)).toBe(trials);
    expect(trials).toBeGreaterThanOrEqual(TRIALS);
    expect(trials - steps.at(-1)!.solverTrials).toBeLessThan(TRIALS);
    const rewardOf = new Map(scores('sil').map(({ taskId, reward }) => [taskId, reward]));
    for (const { id, passes } of labelled) expect(rewardOf.get(id)).toBe(passes >= 2 ? 1 : 0);
    const last = labelled.filter(({ batch }) => batch === steps.length);
    const inBand = last.filter(({ passes }) => passes >= 2).length;
    expect(steps.at(-1)!.measuredInBand).toBeCloseTo(inBand / last.length, 12);
  });

  it('adversarial: mines after every second step but the last, and rewards the minimum with the auxiliary probe', () => {
    const minings = store.minings('adversarial');
    expect(minings.map(({ step }) => step)).toEqual([2, 4]);
    expect(minings.map(({ mined, solverTrials }) => [mined, solverTrials])).toEqual([
      [3, 3 * K],
      [3, 3 * K],
    ]);
    const mined = store.labelledTasks({ phase: 'train-generator', arm: 'adversarial', split: 'mined' });
    const outOfBand = mined.filter(({ passes }) => passes < 2).length;
    expect(minings.reduce((sum, { falsePositives }) => sum + falsePositives, 0)).toBe(outOfBand);
    const results = JSON.parse(readFileSync(join(whole.folder, 'results.json'), 'utf8')) as Results;
    expect(results.arms.flatMap((arm) => (arm.mined ? [[arm.name, arm.mined]] : []))).toEqual([
      ['adversarial', { tasks: 6, falsePositives: outOfBand }],
    ]);
    expect(mined.map(({ batch }) => (batch <= 2 ? 2 : 4))).toEqual([2, 2, 2, 4, 4, 4]);
    expect(store.countTrials('train-generator', 'adversarial')).toBe(2 * 3 * K);
    const scorers = store.steps('adversarial').map(({ step }) => {
      const seen = store.stepScores('adversarial', step).find(({ logits }) => logits !== null)!;
      return Object.keys(seen.logits!);
    });
    const members = ['probe-0', 'probe-1'];
    expect(scorers).toEqual([
      members,
      members,
      [...members, 'auxiliary-2'],
      [...members, 'auxiliary-2'],
      [...members, 'auxiliary-4'],
    ]);
    expect(store.lastCheckpoint('adversarial')!.step).toBe(STEPS);
  });

  it('adversarial: pays the smallest of the logits that it keeps, each standardised by its probe’s own scale and clipped', () => {
    const scaleOf = (file: string) => readTensors(join(whole.folder, file)).get('logit_scale')!.data;
    const scales = new Map([
      ...store.probes().map(({ name, path }) => [name, scaleOf(path)] as const),
      ...store.minings('adversarial').map(({ step, path }) => [`auxiliary-${step}`, scaleOf(path)] as const),
    ]);
    const smallest = new Map<string, number>();
    for (const { logits, reward } of scores('adversarial')) {
      if (logits === null) continue;
      const standardised = Object.entries(logits).map(([name, logit]) => {
        const [mean, sd] = scales.get(name)! as unknown as [number, number];
        return [name, Math.min(2.5, Math.max(-2.5, (logit - mean) / sd))] as const;
      });
      expect(reward).toBeCloseTo(Math.min(...standardised.map(([, value]) => value)), 9);
      const [least] = standardised.toSorted(([, a], [, b]) => a - b);
      smallest.set(least![0], (smallest.get(least![0]) ?? 0) + 1);
    }
    // None of them pays for nothing: each is the smallest of some task.
    expect([...smallest.keys()].sort()).toEqual([...scales.keys()].sort());
  });

  it('crowding by activations: a valid task earns at most its probe’s standardised logit, and no less than the clip', () => {
    const rewards = scores('crowded').flatMap(({ logits, reward }) => (logits === null ? [] : [reward]));
    expect(rewards.length).toBeGreaterThan(0);
    expect(rewards.every((reward) => reward >= -2.5 && reward <= 2.5)).toBe(true);
  });

  it('a step of more than one update says how many tokens the clip moved, in the store and in the results', () => {
    const shares = (arm: string) => store.steps(arm).map(({ clippedShare }) => clippedShare!);
    expect(shares('valid').every((share) => share === 0)).toBe(true);
    expect(shares('length').some((share) => share > 0 && share < 1)).toBe(true);
    const { arms } = JSON.parse(readFileSync(join(whole.folder, 'results.json'), 'utf8')) as Results;
    const own = shares('length');
    const mean = own.reduce((sum, share) => sum + share, 0) / own.length;
    expect(arms.find(({ name }) => name === 'length')!.clippedShare).toBeCloseTo(mean, 12);
    expect(arms.find(({ name }) => name === 'base')!.clippedShare).toBeNull();
  });

  it('crowding: what a valid task earns for being valid shrinks with the share of its topic', () => {
    const [first] = store.steps('valid');
    const tasks = store.tasks({ phase: 'train-generator', arm: 'valid', batch: first!.step, valid: true });
    const rewardOf = new Map(store.stepScores('valid', 1).map(({ taskId, reward }) => [taskId, reward]));
    for (const { id, topic } of tasks) {
      const alike = tasks.filter((other) => other.topic === topic).length - 1;
      expect(rewardOf.get(id)).toBeCloseTo(1 - (0.5 * alike) / (tasks.length - 1), 12);
    }
  });

  it('controls: chance within [0, 1), and the length’s own logit', () => {
    expect(store.steps('random')).toHaveLength(2);
    expect(earned('random').every((reward) => reward >= 0 && reward < 1)).toBe(true);
    expect(new Set(earned('random')).size).toBe(earned('random').length);
    const lengths = scores('length').flatMap(({ logits }) => (logits ? [Object.keys(logits)] : []));
    expect(lengths.every((names) => names.join() === 'length')).toBe(true);
    expect(earned('length').every((reward) => Math.abs(reward) <= 2.5)).toBe(true);
  });

  it('another family writes for itself, trained and not', () => {
    const text = (arm: string) => store.tasks({ phase: 'evaluate', arm }).map(({ completion }) => completion);
    expect(store.steps('family')).toHaveLength(2);
    expect(text('family-base')).not.toEqual(text('base'));
    expect(store.tasks({ phase: 'train-generator', arm: 'family' })).toHaveLength(32);
  });

  it('invalid tasks earn the penalty in all of them', () => {
    for (const arm of ['adversarial', 'crowded', 'sil', 'valid', 'random', 'length', 'family']) {
      const invalid = new Set(store.tasks({ phase: 'train-generator', arm, valid: false }).map(({ id }) => id));
      const paid = scores(arm).filter(({ taskId }) => invalid.has(taskId));
      expect(paid.length).toBe(invalid.size);
      expect(paid.every(({ reward }) => reward === -3)).toBe(true);
    }
  });

  it(`ends with the same rows and results after ${KILLS} kills`, async () => {
    await expectSameAfterKills(whole, join(folder, 'killed'), args, KILLS);
  }, 900_000);
});
