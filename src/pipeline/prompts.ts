/** The prompts that a generator is trained on, as the data sets of other trainers want them. */
import { createCodeDomain, readTopicRules } from '../domain/azr/index.js';
import { UserError } from '../errors.js';
import { Tokenizer } from '../lm/tokenizer.js';
import { deriveSeed } from '../metrics/random.js';
import type { Config } from './config.js';
import { modelFolders } from './model-folders.js';
import { findFile } from './paths.js';

export const PROMPT_FORMATS = ['jsonl', 'openrlhf', 'verl', 'verifiers'] as const;
export type PromptFormat = (typeof PROMPT_FORMATS)[number];

/** What the generator is asked, and how its answer ends. */
export interface Prompts {
  /** turn: a user's turn, which the trainer wraps in the model's chat template; text: the prompt as it is. */
  readonly form: 'turn' | 'text';
  readonly prompts: readonly { readonly type: string; readonly prompt: string }[];
  /** Tokens that end a completion: the trainer must stop at them, as `eos_token_id` in the model's generation_config.json does. */
  readonly ends: readonly number[];
  readonly maxNewTokens: number;
  readonly temperature: number;
}

/** `count` prompts, the domain's types in turn; those with examples vary with the configuration's seed. @throws UserError without the generator */
export async function trainingPrompts(config: Config, count: number): Promise<Prompts> {
  const { seed, policy } = config;
  const tokenizer = await Tokenizer.open(modelFolders(config).policy);
  const domain = createCodeDomain(config.domain, readTopicRules(findFile(config.domain.topics, 'domain.topics')));
  const prompts = Array.from({ length: count }, (_, i) => {
    const type = domain.kinds[i % domain.kinds.length]!;
    return { type, prompt: domain.prompt(type, deriveSeed(seed, 'prompt for a trainer', i)) };
  });
  const stops = policy.stops.map((text) => tokenizer.singleToken(text));
  return {
    form: policy.chat !== 'never' && tokenizer.hasChat ? 'turn' : 'text',
    prompts,
    ends: [...new Set([...tokenizer.ends, ...stops])],
    maxNewTokens: policy.maxNewTokens,
    // Reinforcement learning samples plainly.
    temperature: 1,
  };
}

/** The lines of a trainer's data set. @throws UserError where the trainer has no way to ask so */
export function promptLines({ form, prompts }: Prompts, format: PromptFormat): string[] {
  const turn = (content: string) => [{ role: 'user', content }];
  switch (format) {
    case 'jsonl':
      return prompts.map(({ type, prompt }) =>
        JSON.stringify({ prompt: form === 'turn' ? turn(prompt) : prompt, propel_type: type }),
      );
    case 'openrlhf':
      return prompts.map(({ type, prompt }) => JSON.stringify({ input: prompt, propel_type: type }));
    case 'verl':
      if (form === 'text') {
        throw new UserError(
          '--format verl: verl asks by turns of a chat alone, and this generator is asked without one; take another trainer, or a generator with a chat template',
        );
      }
      return prompts.map(({ type, prompt }, index) =>
        JSON.stringify({
          data_source: 'propel',
          prompt: turn(prompt),
          reward_model: { style: 'rule', ground_truth: '' },
          extra_info: { index, propel_type: type },
        }),
      );
    case 'verifiers':
      return [
        JSON.stringify({
          prompts: prompts.map(({ prompt }) => prompt),
          propel_types: prompts.map(({ type }) => type),
          num_tasks: prompts.length,
        }),
      ];
  }
}
