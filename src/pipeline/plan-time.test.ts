/** Seconds by a machine's rates, worked out by hand. */
import { describe, expect, it } from 'vitest';
import { TINY_LLAMA } from '../../tests/tiny-checkpoint.js';
import { operatorCount } from '../lm/footprint.js';
import type { MachineRates } from '../onnx/machine-rates.js';
import { loadConfig } from './config-file.js';
import { secondsOnMachine } from './plan-time.js';
import type { Work } from './plan-work.js';

/** 4,224 parameters multiply a token. A row costs 1 ns of them, one alone 4; 128 at once 64. */
const MACHINE: MachineRates = {
  provider: 'cpu',
  threads: 1,
  secondsPerParameter: new Map([
    [1, 4e-9],
    [128, 64e-9],
    [512, 512e-9],
  ]),
  secondsPerOperator: 1e-5,
  processorShare: 1,
};
const EXPECTED = {
  validity: { label: 1, train: 1, evaluate: 1 },
  taskTokens: 8,
  answerTokens: 4,
  promptTokens: 3,
  questionTokens: 2,
};
const config = loadConfig('pipelines/azr-micro.yaml', [
  'domain.types=[code_o]',
  'policy={maxNewTokens: 100, stops: []}',
  'solver={maxNewTokens: 6, stops: []}',
  'band={min: 1, max: 2, of: 4}',
]);
const MODELS = { policy: TINY_LLAMA, reference: TINY_LLAMA, solver: TINY_LLAMA };
const NONE: Work = {
  phase: 'label',
  arm: '',
  generations: 0,
  generationsAtMost: 0,
  trials: 0,
  trialsAtMost: 0,
  checks: 0,
  readings: 0,
  updated: 0,
  batches: 0,
};
const seconds = (work: Partial<Work>, models: Parameters<typeof secondsOnMachine>[3] = MODELS): number =>
  secondsOnMachine(config, { ...NONE, ...work }, EXPECTED, models, MACHINE, { check: 0.01, grade: 0.001 });

/** Of one step: all parameters, prompts read once, what is half written three times, and every operator's start. */
const step = (perParameter: number, cachedTokens: number): number =>
  4224 * perParameter + cachedTokens * 128 * 1e-9 + operatorCount(TINY_LLAMA) * 1e-5;

describe('the time', () => {
  it('of reading is that of many rows', () => {
    expect(seconds({ readings: 100 })).toBeCloseTo(100 * 8 * 4224 * 1e-9, 12);
  });

  it('of an update is a forward pass for the KL, then one forward and one backward', () => {
    expect(seconds({ updated: 10 })).toBeCloseTo(3 * 10 * 11 * 4224 * 1e-9, 12);
  });

  it('of generations is two and a half times the mean length in steps of all samples, and their checks', () => {
    // Two rollouts of 128, 20 steps each, with a prompt of 3 and 128 · 10 tokens held in the mean.
    const rollouts = 2 * 20 * step(64e-9, 3 + 3 * 128 * 10);
    const prompts = 2 * 3 * 4224 * 1e-9;
    expect(seconds({ generations: 256, batches: 2, checks: 256 })).toBeCloseTo(rollouts + prompts + 2.56, 9);
  });

  it('of attempts is bounded by the longest answer; an endpoint’s are not counted, only their grading', () => {
    // 128 attempts at 32 questions of 10 tokens, 6 steps.
    const rollout = 6 * step(64e-9, 32 * 10 + 3 * 128 * 3);
    const questions = 32 * 10 * 4224 * 1e-9;
    expect(seconds({ trials: 128 })).toBeCloseTo(rollout + questions + 0.128, 9);
    expect(seconds({ trials: 128 }, { ...MODELS, solver: null })).toBeCloseTo(0.128, 9);
  });
});
