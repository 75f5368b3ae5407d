/** What cannot be counted of a run before it has been made: how many generations are valid, how long texts are. */
import type { CodeTask } from '../domain/azr/index.js';
import type { Domain } from '../domain/domain.js';
import type { ChatSetting, Tokenizer } from '../lm/tokenizer.js';
import { largest } from '../metrics/extremes.js';
import { chatOf } from './chat.js';
import type { Config } from './config.js';
import { sampleTask } from './plan-rates.js';
import type { RunBasis } from './plan-rates.js';
import type { Expectations } from './plan-work.js';

/** What is taken where no run says better: shares of the generations that are valid, and of the longest texts that are written. */
const ASSUMED = { validity: 0.6, length: 1 / 3 };
/** Characters of prose and Python in a token, where no tokenizer is here to ask. */
const CHARACTERS_PER_TOKEN = 3.5;

/** @param basis a run whose validity and lengths are taken; null: none */
export function expectations(
  config: Config,
  domain: Domain<CodeTask>,
  basis: RunBasis | null,
  tokenizerOf: (setting: string) => Tokenizer | null,
): Expectations & { readonly basis: string } {
  const { policy, solver, domain: settings } = config;
  const [writer, reader] = [tokenizerOf('models.policy'), tokenizerOf('models.solver')];
  const count = (tokenizer: Tokenizer | null, text: string, chat: ChatSetting) =>
    tokenizer ? tokenizer.question(text, chat).length : Math.ceil(text.length / CHARACTERS_PER_TOKEN) + 1;
  const { inputs, shown } = settings.induction;
  const around = settings.types.map((type) => {
    const task = sampleTask(type, inputs, shown);
    return (
      count(reader, domain.question(task), chatOf(solver, domain)) - count(reader, domain.render(task), 'never') + 1
    );
  });
  return {
    validity: { label: ASSUMED.validity, train: ASSUMED.validity, evaluate: ASSUMED.validity },
    taskTokens: Math.ceil(policy.maxNewTokens * ASSUMED.length),
    answerTokens: Math.ceil(solver.maxNewTokens * ASSUMED.length),
    ...basis?.expected,
    promptTokens: largest(
      settings.types.map((type) => count(writer, domain.prompt(type, config.seed), chatOf(policy, domain))),
    ),
    questionTokens: Math.max(0, largest(around)),
    basis: basis
      ? 'validity and lengths as in that run'
      : `assumed: ${ASSUMED.validity * 100}% of the generations valid, texts a third of their longest`,
  };
}
