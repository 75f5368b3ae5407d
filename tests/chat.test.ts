/** Whether a model is asked in a turn of its chat: the notation's word, and the settings that override it. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createCodeDomain, readTopicRules } from '../src/domain/azr/index.js';
import { Tokenizer } from '../src/lm/tokenizer.js';
import { loadConfig } from '../src/pipeline/config-file.js';
import { findFile } from '../src/pipeline/paths.js';
import { promptsAsGiven } from '../src/pipeline/plan-prompts.js';
import { trainingPrompts } from '../src/pipeline/prompts.js';
import { PACKAGE, temporaryFolder } from './propel-process.js';

const TEMPLATE =
  "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}{% if add_generation_prompt %}<a>{% endif %}";

/** The micro-world's generator, as if it had been instructed. */
function instructed(): string {
  const folder = join(temporaryFolder(), 'instructed');
  cpSync(join(PACKAGE, 'data/micro-world/generator'), folder, { recursive: true });
  const file = join(folder, 'tokenizer_config.json');
  const settings = JSON.parse(readFileSync(file, 'utf8')) as object;
  writeFileSync(file, JSON.stringify({ ...settings, chat_template: TEMPLATE }));
  return folder;
}
const folder = instructed();

const config = (...settings: readonly string[]) =>
  loadConfig('azr-micro', [`models.policy=${folder}`, 'domain.examples=0', 'policy.maxNewTokens=20', ...settings]);

it.each([
  ['doctest', 'auto', 'text', '<bos># output\n'],
  ['doctest', 'always', 'turn', '<user># output\n<a>'],
  ['doctest', 'never', 'text', '<bos># output\n'],
  ['fenced', 'auto', 'turn', '<user>Write one task'],
  ['fenced', 'never', 'text', '<bos>Write one task'],
] as const)('in %s notation with chat %s: %s', async (notation, chat, form, begins) => {
  const settings = config(`domain.notation=${notation}`, `policy.chat=${chat}`);
  expect((await trainingPrompts(settings, 1)).form).toBe(form);
  // As the model gets it, special tokens by their names.
  const domain = createCodeDomain(settings.domain, readTopicRules(findFile(settings.domain.topics, 'topics')));
  const [prompt] = promptsAsGiven(settings, domain, await Tokenizer.open(folder));
  expect(prompt!.text.slice(0, begins.length)).toBe(begins);
});

it('stops that are texts are told to other trainers beside the tokens', async () => {
  const { ends, stops } = await trainingPrompts(config('policy.stops=["#", "<eos>"]'), 1);
  expect([ends, stops]).toEqual([[2, 3], ['#']]);
});
