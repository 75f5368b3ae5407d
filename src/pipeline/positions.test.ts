import { describe, expect, it } from 'vitest';
import { loadConfig } from './config-file.js';
import { answerRefusal, writingRefusal } from './positions.js';

const model = { name: 'org/model', maxPositions: 100 };

describe('what is written', () => {
  it('fits with its prompt, and no further', () => {
    expect(writingRefusal('policy', 90, 10, model)).toBe(null);
    expect(writingRefusal('policy', 91, 10, model)).toBe(
      'policy.maxNewTokens: 91 tokens and a prompt of 10 are more than the 100 positions of org/model; lower it',
    );
    expect(writingRefusal('solver', 99, 1, model)).toBe(null);
    expect(writingRefusal('solver', 100, 1, model)).toBe(
      'solver.maxNewTokens: 100 tokens and a prompt are more than the 100 positions of org/model; lower it',
    );
  });
});

describe('an answer', () => {
  const config = (...settings: string[]) =>
    loadConfig('pipelines/azr-micro.yaml', ['policy.maxNewTokens=40', 'solver.maxNewTokens=50', ...settings]);

  it('fits behind a code_o task and what is around it', () => {
    expect(answerRefusal(config(), 10, model)).toBe(null);
    expect(answerRefusal(config(), 11, model)).toBe(
      'solver.maxNewTokens: a task of policy.maxNewTokens 40 and 50 more are 90 tokens, org/model has 100 positions; lower either',
    );
  });

  it('is not asked of tasks whose length only their outputs tell', () => {
    expect(answerRefusal(config('domain.types=[code_i]'), 11, model)).toBe(null);
  });
});
