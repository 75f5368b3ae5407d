/** What a run does, counted by hand; and the embedded default's count against what runs of it did. */
import { describe, expect, it } from 'vitest';
import { loadConfig } from './config-file.js';
import { planWork, tokensOf } from './plan-work.js';
import type { Expectations, Work } from './plan-work.js';

const EXPECTED: Expectations = {
  validity: { label: 0.5, train: 0.75, evaluate: 0.9 },
  taskTokens: 20,
  answerTokens: 5,
  promptTokens: 3,
  questionTokens: 2,
};

/** 4 arms over 10 steps of 8, labels 30 in batches of 16, K = 4. */
function plan(arms: Readonly<Record<string, unknown>>, sets: readonly string[] = [], expected = EXPECTED): Work[] {
  const settings = ['label.tasks=30', 'label.batch=16', 'label.maxGenerations=100', 'train.steps=10', 'train.batch=8'];
  const band = ['band={min: 1, max: 2, of: 4}', 'evaluate={generations: 50, batch: 20, rescoreEvery: 5}'];
  return planWork(
    loadConfig('pipelines/azr-micro.yaml', [...settings, ...band, ...sets, `arms=${JSON.stringify(arms)}`]),
    expected,
  );
}
const find = (works: readonly Work[], phase: string, arm = ''): Work | undefined =>
  works.find((work) => work.phase === phase && work.arm === arm);

describe('labels', () => {
  it('come in whole batches until there are enough', () => {
    // Half of the generations are valid: 30 labels are 60 generations, so 4 batches of 16, of which 32 valid.
    expect(find(plan({ propel: { reward: 'probe' } }), 'label')).toMatchObject({
      generations: 64,
      generationsAtMost: 112,
      trials: 32 * 4,
      // 29 labels and a last batch of 16 valid tasks.
      trialsAtMost: 45 * 4,
      checks: 64,
      batches: 4,
    });
  });

  it('and probes are needed by those arms alone that learn from them', () => {
    const phases = (reward: string) => plan({ a: { reward } }).map(({ phase }) => phase);
    expect(phases('none')).toEqual(['evaluate']);
    expect(phases('valid')).toEqual(['train-generator', 'evaluate', 're-score']);
    expect(phases('length')).toEqual(['label', 'train-generator', 'evaluate', 're-score']);
    expect(phases('probe')).toEqual(['label', 'train-probe', 'train-generator', 'evaluate', 're-score']);
  });
});

describe('training', () => {
  it('of a probe arm reads its valid tasks once a probe and asks no solver', () => {
    expect(find(plan({ wco: { reward: 'probe', probes: 2 } }), 'train-generator', 'wco')).toMatchObject({
      generations: 80,
      trials: 0,
      trialsAtMost: 0,
      readings: 2 * 60,
      updated: 80,
      batches: 10,
    });
  });

  it('of an adversarial arm mines between steps, not after the last', () => {
    const arms = { hard: { reward: 'probe', adversarial: { every: 5, mine: 7 } } };
    expect(find(plan(arms), 'train-generator', 'hard')).toMatchObject({ trials: 7 * 4, trialsAtMost: 7 * 4 });
  });

  it('of a solver arm attempts every valid task, and ends with the step that spends its trials', () => {
    expect(find(plan({ sil: { reward: 'solver' } }), 'train-generator', 'sil')).toMatchObject({
      generations: 80,
      trials: 60 * 4,
      trialsAtMost: 80 * 4,
    });
    // 24 trials a step: 100 are spent in the fifth.
    expect(find(plan({ sil: { reward: 'solver', trials: 100 } }), 'train-generator', 'sil')).toMatchObject({
      generations: 40,
      trials: 30 * 4,
      trialsAtMost: 99 + 8 * 4,
    });
  });
});

describe('evaluation', () => {
  it('attempts valid tasks, and those of the first and every fifth step again unless the solver was in the loop', () => {
    const works = plan({ propel: { reward: 'probe' }, sil: { reward: 'solver' } });
    expect(find(works, 'evaluate', 'propel')).toMatchObject({ generations: 50, trials: 45 * 4, trialsAtMost: 200 });
    // Steps 1, 5 and 10 with 8 tasks each, of which 18 valid.
    expect(find(works, 're-score', 'propel')).toMatchObject({ trials: 18 * 4, trialsAtMost: 24 * 4 });
    expect(find(works, 're-score', 'sil')).toBeUndefined();
  });
});

it('tokens: a prompt is read once a rollout, a question once for all its attempts', () => {
  const config = loadConfig('pipelines/azr-micro.yaml', ['band={min: 1, max: 2, of: 4}']);
  const work: Work = {
    phase: 'label',
    arm: '',
    generations: 64,
    generationsAtMost: 64,
    trials: 128,
    trialsAtMost: 128,
    checks: 64,
    readings: 10,
    updated: 6,
    batches: 4,
  };
  expect(tokensOf(config, work, EXPECTED)).toEqual({
    written: 64 * 20,
    prompts: 4 * config.domain.types.length * 3,
    answers: 128 * 5,
    questions: 32 * 22,
    reference: 10 * 20,
    trained: 6 * 23,
  });
  // Of a prompt of 50 tokens an update computes 49 once for the 16 sequences of a micro-batch.
  const sharing = loadConfig('pipelines/azr-micro.yaml', [
    'domain.types=[code_o]',
    'train={batch: 24, microBatch: 16}',
  ]);
  const long = tokensOf(sharing, { ...work, updated: 48 }, { ...EXPECTED, promptTokens: 50 });
  expect(long.trained).toBe(48 * 21 + 3 * 49);
  // For the 6 of a micro-batch of the arm's own.
  const own = { ...sharing, arms: { mine: { reward: 'valid', train: { microBatch: 6 } } } } as const;
  const arms = tokensOf(own, { ...work, arm: 'mine', updated: 48 }, { ...EXPECTED, promptTokens: 50 });
  expect(arms.trained).toBe(48 * 21 + 8 * 49);
});

describe('the embedded default, seed 0, as it was run', () => {
  // Of 2,048, 7,680 and 2,400 generations 1,516, 6,198 and 2,056 were valid.
  const validity = { label: 1516 / 2048, train: 6198 / 7680, evaluate: 2056 / 2400 };
  const types = ['domain.types=[code_o]', 'train={steps: 40, batch: 96}', 'label={tasks: 1500, batch: 128}'];
  const arms = { base: { reward: 'none' }, propel: { reward: 'probe' }, 'propel-wco': { reward: 'probe', probes: 2 } };
  const evaluate = 'evaluate={generations: 800, batch: 100, rescoreEvery: 10}';
  const planned = planWork(
    loadConfig('pipelines/azr-micro.yaml', [...types, evaluate, `arms=${JSON.stringify(arms)}`]),
    { ...EXPECTED, validity },
  );
  const sum = (of: (work: Work) => number): number => planned.reduce((total, work) => total + of(work), 0);

  it('has as many generations and as many trials for labels', () => {
    expect(find(planned, 'label')).toMatchObject({ generations: 2048, trials: 12_128 });
    expect(sum(({ generations }) => generations)).toBe(2048 + 2 * 3840 + 3 * 800);
  });

  it('has its trials within 1%', () => {
    const measured = 12_128 + 4760 + 5856 + 5832 + 3056 + 3048;
    expect(Math.abs(sum(({ trials }) => trials) / measured - 1)).toBeLessThan(0.01);
    expect(sum(({ trialsAtMost }) => trialsAtMost)).toBeGreaterThan(measured);
  });
});
