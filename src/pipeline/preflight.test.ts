import { describe, expect, test } from 'vitest';
import { loadConfig } from './config-file.js';
import { checkModels } from './preflight.js';

/** The micro-world's models have 256 positions. */
const check = (...settings: string[]): Promise<void> => checkModels(loadConfig('pipelines/azr-micro.yaml', settings));

describe('room for the solver’s answer', () => {
  test('beside a code_o task as long as it may be written', async () => {
    await expect(check('policy.maxNewTokens=100', 'solver.maxNewTokens=156')).rejects.toThrow(
      'solver.maxNewTokens: a task of policy.maxNewTokens 100 and 156 more are 256 tokens, solver has 256 positions; lower either',
    );
    expect(await check('policy.maxNewTokens=100', 'solver.maxNewTokens=155')).toBeUndefined();
  });

  test('beside one as long as a question may be, where that is less', async () => {
    const bounded = (characters: number) =>
      check('policy.maxNewTokens=100', 'solver.maxNewTokens=200', `domain.validity.maxQuestionLength=${characters}`);
    await expect(bounded(56)).rejects.toThrow(
      'solver.maxNewTokens: a task of domain.validity.maxQuestionLength 56 and 200 more are 256 tokens, solver has 256 positions; lower either',
    );
    expect(await bounded(55)).toBeUndefined();
  });

  test('is not asked of types whose length the generator does not say', async () => {
    const types = (list: string) => check('policy.maxNewTokens=200', 'solver.maxNewTokens=200', `domain.types=${list}`);
    expect(await types('[code_i, code_f]')).toBeUndefined();
    await expect(types('[code_f, code_o]')).rejects.toThrow('a task of policy.maxNewTokens 200');
  });
});

test('what the generator may write fits beside its own prompt', async () => {
  const written = (tokens: number) => check(`policy.maxNewTokens=${tokens}`, 'solver.maxNewTokens=5');
  await expect(written(247)).rejects.toThrow(
    'policy.maxNewTokens: 247 tokens and a prompt of 10 are more than the 256 positions of generator; lower it',
  );
  expect(await written(246)).toBeUndefined();
});
