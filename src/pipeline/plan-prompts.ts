/** What a generator is given for a task of each type, to be seen before anything runs. */
import type { CodeTask } from '../domain/azr/index.js';
import type { Domain } from '../domain/domain.js';
import type { Tokenizer } from '../lm/tokenizer.js';
import { chatOf } from './chat.js';
import type { Config } from './config.js';

export interface PlanPrompt {
  readonly type: string;
  readonly tokens: number;
  readonly text: string;
}

/** Special tokens by their names; no prompts where there is no tokenizer to ask. */
export function promptsAsGiven(
  { policy, seed }: Config,
  domain: Domain<CodeTask>,
  tokenizer: Tokenizer | null,
): readonly PlanPrompt[] {
  if (tokenizer === null) return [];
  return domain.kinds.map((type) => {
    const ids = tokenizer.question(domain.prompt(type, seed), chatOf(policy, domain));
    return { type, tokens: ids.length, text: tokenizer.show(ids) };
  });
}
