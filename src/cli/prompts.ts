/** `propel prompts`: what the generator is asked, as another trainer's data set. */
import { Option } from 'commander';
import type { Command } from 'commander';
import { loadConfig } from '../pipeline/config-file.js';
import { PROMPT_FORMATS, promptLines, trainingPrompts } from '../pipeline/prompts.js';
import type { PromptFormat, Prompts } from '../pipeline/prompts.js';
import { positiveInteger } from './options.js';
import { printJson, printLines } from './output.js';
import { DEFAULT_CONFIGURATION, setOption } from './run-options.js';

interface Flags {
  readonly count: number;
  readonly format: PromptFormat;
  readonly json?: boolean;
  readonly set: readonly string[];
}

const HELP = `
Formats:
  jsonl      {"prompt", "propel_type"} a line, for TRL; the prompt is a conversation where the generator has a chat template
  openrlhf   {"input", "propel_type"} a line: --data.input_key input --data.label_key propel_type
  verl       {"data_source", "prompt", "reward_model", "extra_info"} a line
  verifiers  {"prompts", "propel_types", "num_tasks"}, the settings of the taskset in propel_verifiers.py

The trainer must end completions where this configuration does and sample plainly (temperature 1, no top-k, no top-p); standard error says which tokens end one.

Examples:
  $ propel prompts my.yaml -n 1000 --format jsonl > prompts.jsonl
  $ propel prompts --json`;

export function register(program: Command): void {
  program
    .command('prompts')
    .description('write the prompts that the generator is trained on, for another trainer')
    .argument('[configuration]', 'YAML file, from the working folder or the package', DEFAULT_CONFIGURATION)
    .option('-n, --count <n>', 'prompts', positiveInteger, 64)
    .addOption(new Option('--format <name>', 'whose data set').choices(PROMPT_FORMATS).default('jsonl'))
    .addOption(setOption())
    .option('--json', 'print one JSON document: prompts, form, ends, lengths')
    .addHelpText('after', HELP)
    .action(async (configuration: string, { count, format, json, set }: Flags) => {
      const prompts = await trainingPrompts(loadConfig(configuration, set), count);
      if (json) return printJson(prompts);
      const lines = promptLines(prompts, format);
      process.stderr.write(`${describe(prompts, format)}\n`);
      printLines(lines);
    });
}

function describe({ form, ends, maxNewTokens }: Prompts, format: PromptFormat): string {
  const template = format === 'openrlhf' && form === 'turn' ? '; --data.apply_chat_template' : '';
  const asked = form === 'turn' ? 'a turn of a chat' : 'a text without a chat template';
  return `a prompt is ${asked}${template}; a completion ends at token ${ends.join(' or ')} (eos_token_id in generation_config.json) and has at most ${maxNewTokens}`;
}
