/** Known sizes against the parameters that the models' cards state, and against a published config.json. */
import { expect, it } from 'vitest';
import { QWEN_3B, QWEN_7B } from '../../tests/qwen-configs.js';
import { parameterCount, parseConfig } from '../lm/config.js';
import { knownModel } from './known-models.js';

it.each([
  ['Qwen/Qwen2.5-3B-Instruct', QWEN_3B],
  ['Qwen/Qwen2.5-7B-Instruct', QWEN_7B],
])('%s is as its config.json says', (name, published) => {
  expect(knownModel(name)!.config).toEqual(parseConfig(JSON.stringify(published), 'config.json'));
});

it.each([
  ['Qwen/Qwen2.5-0.5B', 0.494],
  ['Qwen/Qwen2.5-Coder-1.5B-Instruct', 1.544],
  ['Qwen/Qwen2.5-3B-Instruct', 3.086],
  ['Qwen/Qwen2.5-7B-Instruct', 7.616],
  ['Qwen/Qwen2.5-14B', 14.77],
  ['Qwen/Qwen2.5-32B-Instruct', 32.764],
  ['Qwen/Qwen2.5-72B', 72.706],
  ['Qwen/Qwen3-0.6B', 0.596],
  ['Qwen/Qwen3-1.7B-Base', 1.721],
  ['Qwen/Qwen3-4B-Instruct-2507', 4.022],
  ['Qwen/Qwen3-8B', 8.191],
  ['Qwen/Qwen3-14B', 14.768],
  ['Qwen/Qwen3-32B', 32.762],
  ['meta-llama/Llama-3.2-1B-Instruct', 1.236],
  ['meta-llama/Llama-3.2-3B', 3.213],
  ['meta-llama/Llama-3.1-8B-Instruct', 8.03],
  ['meta-llama/Llama-3.3-70B-Instruct', 70.554],
  ['mistralai/Mistral-7B-Instruct-v0.3', 7.248],
  ['HuggingFaceTB/SmolLM2-135M-Instruct', 0.1345],
  ['HuggingFaceTB/SmolLM2-360M', 0.3618],
  ['HuggingFaceTB/SmolLM2-1.7B-Instruct', 1.711],
])('%s has %f thousand million parameters', (name, billions) => {
  expect(parameterCount(knownModel(name)!.config) / 1e9).toBeCloseTo(
    billions,
    billions < 1 ? 4 : 3 - Math.ceil(Math.log10(billions)),
  );
});

it.each(['Qwen/Qwen2.5-4B', 'Qwen/Qwen3.5-4B', 'me/Qwen2.5-3B', 'data/micro-world/solver', 'Qwen/Qwen3-30B-A3B', 'x'])(
  '%s is not known',
  (name) => {
    expect(knownModel(name)).toBeNull();
  },
);

it('a revision has the sizes of its model', () => {
  expect(knownModel('Qwen/Qwen3-8B@main')!.title).toBe('Qwen3 8B');
});
