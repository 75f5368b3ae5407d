import { describe, expect, test } from 'vitest';
import { loadConfig } from './config-file.js';
import { evaluatedCheckpoint, trainingEnd } from './training-end.js';
import type { RunStore } from '../store/store.js';

/** A step of an arm: how far it is from its start, what its samples earned in the mean, and the advantages of two of them. */
interface Step {
  readonly kl?: number;
  readonly reward?: number;
  readonly advantages?: readonly number[];
}
const HEALTHY: Step = { advantages: [1, -1] };
const SILENT: Step = { reward: -3, advantages: [0, 0] };

/** A run whose arm `mine` has so many steps, a checkpoint after every second and the last. */
function run(steps: readonly Step[], arm: string, trials = 0, ...settings: string[]) {
  const rows = steps.map(({ kl = 1, reward = 0.5 }, i) => ({
    step: i + 1,
    klPerSequence: kl,
    rewardMean: reward,
    validity: reward === -3 ? 0 : 0.5,
  }));
  const checkpoints = rows.map(({ step }) => ({ step })).filter(({ step }) => step % 2 === 0 || step === rows.length);
  const store = {
    steps: () => rows,
    stepScores: (_: string, step: number) => steps[step - 1]!.advantages!.map((advantage) => ({ advantage })),
    checkpoints: () => checkpoints,
    lastCheckpoint: () => checkpoints.at(-1),
    countTrials: () => trials,
  } as unknown as RunStore;
  const config = loadConfig('pipelines/azr-micro.yaml', [
    `arms={mine: ${arm}, base: {reward: none}}`,
    'train.klStop=8',
    'train.noSignalStop=3',
    ...settings,
  ]);
  return { config, store };
}

const ended = (...args: Parameters<typeof run>) => trainingEnd(run(...args), 'mine');
const five = (last: Step) => [HEALTHY, HEALTHY, HEALTHY, HEALTHY, last];

describe('an arm’s training', () => {
  test('that went to its end is measured at its last checkpoint', () => {
    expect(ended(five(HEALTHY), '{reward: valid}')).toEqual({
      status: 'finished',
      reason: null,
      steps: 5,
      evaluatedStep: 5,
    });
    expect(trainingEnd(run(five(HEALTHY), '{reward: valid}'), 'base')).toBeNull();
    expect(evaluatedCheckpoint(run(five(HEALTHY), '{reward: valid}'), 'mine')).toEqual({ step: 5 });
    expect(evaluatedCheckpoint(run(five(HEALTHY), '{reward: valid}'), 'base')).toBeNull();
  });

  test('that is too far from its start is measured at the checkpoint that a step has sampled from before', () => {
    const far = five({ ...HEALTHY, kl: 8.5 });
    expect(ended(far, '{reward: probe}')).toMatchObject({ status: 'collapsed', steps: 5, evaluatedStep: 2 });
    expect(evaluatedCheckpoint(run(far, '{reward: probe}'), 'mine')).toEqual({ step: 2 });
    expect(ended(far, '{reward: probe}', 0, 'evaluate.checkpoint=last')).toMatchObject({ evaluatedStep: 5 });
    expect(ended(far, '{reward: probe, train: {klStop: 9}}')).toMatchObject({ status: 'finished', evaluatedStep: 5 });
  });

  test('that learnt nothing for long is measured at what was before, be it the untrained generator', () => {
    const silent = [HEALTHY, HEALTHY, HEALTHY, SILENT, SILENT, SILENT];
    expect(ended(silent, '{reward: probe}')).toMatchObject({ status: 'collapsed', evaluatedStep: 2 });
    expect(ended([SILENT, SILENT, SILENT], '{reward: probe}')).toMatchObject({ status: 'collapsed', evaluatedStep: 0 });
    expect(evaluatedCheckpoint(run([SILENT, SILENT, SILENT], '{reward: probe}'), 'mine')).toBeNull();
    expect(ended(silent, '{reward: probe, train: {noSignalStop: 4}}')).toMatchObject({ status: 'finished' });
    const longer = [...silent, SILENT];
    expect(ended(longer, '{reward: probe, train: {noSignalStop: 4}}')).toMatchObject({ status: 'collapsed' });
  });

  test('that earned a reward of 0 or 1 in full has not collapsed; one that earned another reward has', () => {
    const full = Array.from({ length: 4 }, (): Step => ({ reward: 1, advantages: [0, 0] }));
    for (const reward of ['valid', 'solver']) {
      expect(ended(full, `{reward: ${reward}}`)).toMatchObject({ status: 'finished' });
    }
    expect(ended(full, '{reward: probe}')).toMatchObject({ status: 'collapsed' });
    const none = Array.from({ length: 4 }, (): Step => ({ reward: 0, advantages: [0, 0] }));
    expect(ended(none, '{reward: solver}')).toMatchObject({ status: 'collapsed' });
  });

  test('that spent its trials is measured at its end', () => {
    const sil = '{reward: solver, trials: 100}';
    const spent = { status: 'budget-spent', reason: '100 of 100 solver trials spent', steps: 5, evaluatedStep: 5 };
    expect(ended(five(HEALTHY), sil, 100)).toEqual(spent);
    expect(ended(five(HEALTHY), sil, 99)).toMatchObject({ status: 'finished', reason: null });
    expect(ended(five(HEALTHY), '{reward: solver}', 100)).toMatchObject({ status: 'finished' });
  });
});
