/** `propel prompts`: the data sets of other trainers. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../src/pipeline/config-file.js';
import { promptLines, trainingPrompts } from '../src/pipeline/prompts.js';
import { errorLine, PACKAGE, propelIn, sets, temporaryFolder } from './propel-process.js';

const lines = (text: string): unknown[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);

describe('the prompts of a generator without a chat template', () => {
  it('are what the run asks, the types in turn', () => {
    const { code, stdout, stderr } = propelIn(temporaryFolder(), ['prompts', 'pipelines/azr-mixed.yaml', '-n', '4']);
    expect(code).toBe(0);
    expect(lines(stdout)).toEqual([
      { prompt: '# output\n', propel_type: 'code_o' },
      { prompt: '# input\n', propel_type: 'code_i' },
      { prompt: '# function\n', propel_type: 'code_f' },
      { prompt: '# output\n', propel_type: 'code_o' },
    ]);
    expect(stderr).toMatch(/^a prompt is a text without a chat template; a completion ends at token 2 or 3 /);
  });

  it('are for OpenRLHF and verifiers as well, and refused for verl, which knows turns only', () => {
    const asked = (format: string) => propelIn(temporaryFolder(), ['prompts', '-n', '2', '--format', format]);
    expect(lines(asked('openrlhf').stdout)).toEqual([1, 2].map(() => ({ input: '# output\n', propel_type: 'code_o' })));
    expect(lines(asked('verifiers').stdout)).toEqual([
      { prompts: ['# output\n', '# output\n'], propel_types: ['code_o', 'code_o'], num_tasks: 2 },
    ]);
    expect(asked('verl').code).toBe(2);
    expect(errorLine(asked('verl'))).toMatch(/^propel: --format verl: verl asks by turns of a chat alone/);
    expect(asked('jsonl').code).toBe(0);
    expect(asked('trl').code).toBe(2);
  });
});

it('vary with the seed where the prompt has examples, and are turns of a chat for a model that has a template', async () => {
  const prompts = async (seed: number) =>
    trainingPrompts(loadConfig('pipelines/azr-micro.yaml', [`seed=${seed}`, 'domain.notation=fenced']), 3);
  const first = await prompts(1);
  expect(await prompts(1)).toEqual(first);
  expect((await prompts(2)).prompts).not.toEqual(first.prompts);
  expect(new Set(first.prompts.map(({ prompt }) => prompt)).size).toBe(3);
  const turns = promptLines({ ...first, form: 'turn' }, 'verl').map((line) => JSON.parse(line) as unknown);
  expect(turns[2]).toEqual({
    data_source: 'propel',
    prompt: [{ role: 'user', content: first.prompts[2]!.prompt }],
    reward_model: { style: 'rule', ground_truth: '' },
    extra_info: { index: 2, propel_type: 'code_o' },
  });
});

it('end where the shipped models’ generation_config.json says', () => {
  const { stdout } = propelIn(temporaryFolder(), ['prompts', '--json', ...sets({ 'policy.stops': [] })]);
  const config = JSON.parse(
    readFileSync(join(PACKAGE, 'data/micro-world/generator/generation_config.json'), 'utf8'),
  ) as { eos_token_id: number[] };
  expect(JSON.parse(stdout)).toMatchObject({ form: 'text', ends: config.eos_token_id, temperature: 1 });
});
