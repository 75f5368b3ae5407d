/** `propel models`: models of the Hugging Face hub, pulled into its cache, listed and checked; GGUF files, imported. */
import { Option } from 'commander';
import type { Command } from 'commander';
import { IMPORT_TYPES } from '../lm/gguf/import.js';
import type { ImportedGguf, ImportType } from '../lm/gguf/import.js';
import { importModel } from '../pipeline/import-model.js';
import { checkModel, listModels, pullModels } from '../pipeline/models.js';
import type { CheckedModel, ListedModel } from '../pipeline/models.js';
import { count } from '../report/format.js';
import { alignColumns, printJson, printLines } from './output.js';
import { createProgress } from './progress.js';
import { STOPPED } from './errors.js';

const JSON_OPTION = ['--json', 'print one JSON document on standard output'] as const;
const SHORT_COMMIT = 8;

interface Flags {
  readonly json?: boolean;
}

interface ImportFlags extends Flags {
  readonly out?: string;
  readonly dtype: ImportType;
}

export function register(program: Command): void {
  const models = program
    .command('models')
    .description('pull, list and check models of the Hugging Face hub, and import GGUF files')
    .addHelpText(
      'after',
      `
A model is org/name, or org/name@revision with a branch, a tag or a commit. It comes into the cache that all of Hugging
Face's tools share, and only the files that are needed. A pull that broke goes on where it stopped.

Environment: HF_HOME or HF_HUB_CACHE (the cache), HF_TOKEN (gated and private models), HF_HUB_OFFLINE, HF_ENDPOINT;
HTTP_PROXY, HTTPS_PROXY, NO_PROXY.

Examples:
  $ propel models pull Qwen/Qwen2.5-3B-Instruct
  $ propel models pull Qwen/Qwen2.5-7B@main meta-llama/Llama-3.2-1B-Instruct
  $ propel models list --json | jq '.[] | select(.problem == null) | .id'
  $ propel models check Qwen/Qwen2.5-3B-Instruct
  $ propel models check data/micro-world/generator
  $ propel models import SmolLM2-135M-Instruct-Q4_1.gguf --out ./smollm2`,
    );
  models
    .command('pull')
    .description('fetch models into the cache: resumed, checked by hash, once for all runs')
    .argument('<models...>', 'org/name or org/name@revision')
    .option(...JSON_OPTION)
    .addHelpText('after', '\nExamples:\n  $ propel models pull Qwen/Qwen2.5-3B-Instruct --json')
    .action(async (names: string[], { json }: Flags) => {
      const stop = (): void => {
        process.stderr.write('\nstopped; the same command goes on where it stopped\n');
        process.exit(STOPPED);
      };
      process.once('SIGINT', stop).once('SIGTERM', stop);
      const pulled = await pullModels(names, createProgress);
      if (json) printJson(pulled);
      else printLines(pulled.map(({ id, folder }) => `${id} is in ${folder}`));
    });
  models
    .command('list')
    .description('show the models in the cache, and whether they can be run')
    .option(...JSON_OPTION)
    .addHelpText('after', '\nExamples:\n  $ propel models list')
    .action(({ json }: Flags) => {
      const listed = listModels();
      if (json) printJson(listed);
      else printLines(describeList(listed));
    });
  models
    .command('check')
    .description('open a model as a run would, hash its files, and show what it is')
    .argument('<model>', 'org/name, org/name@revision, or a checkpoint folder')
    .option(...JSON_OPTION)
    .addHelpText(
      'after',
      '\nExamples:\n  $ propel models check Qwen/Qwen2.5-3B-Instruct\n  $ propel models check ./tuned',
    )
    .action(async (name: string, { json }: Flags) => {
      const checked = await checkModel(name, createProgress);
      if (json) printJson(checked);
      else printLines(describeModel(checked));
    });
  models
    .command('import')
    .description('make a GGUF file into a checkpoint folder that every command opens')
    .argument('<file>', 'a GGUF file')
    .option('--out <folder>', 'where the checkpoint goes (default: the name of the file, in the working folder)')
    .addOption(
      new Option('--dtype <type>', 'the type to write weights in: f32 keeps each as it is, bf16 takes half the disk')
        .choices(IMPORT_TYPES)
        .default('f32'),
    )
    .option(...JSON_OPTION)
    .addHelpText(
      'after',
      `
Reads F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K of Llama, Mistral, Qwen 2 and 3, Phi 3 and Gemma 3,
with the tokenizer and the chat template. What is not known is refused by name, before anything is written.

Examples:
  $ propel models import SmolLM2-135M-Instruct-Q4_1.gguf
  $ propel models import gemma-3-270m-Q4_K_M.gguf --out ./gemma --dtype bf16
  $ propel models import tuned.gguf --json | jq -r .folder`,
    )
    .action(async (file: string, { out, dtype, json }: ImportFlags) => {
      const imported = await importModel(file, { out, dtype }, createProgress);
      if (json) printJson(imported);
      else printLines(describeImport(imported));
    });
}

function sizeOf(bytes: number): string {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(2)} GB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function describeList(models: readonly ListedModel[]): string[] {
  if (models.length === 0) return ["no models in the cache; 'propel models pull org/name' fetches one"];
  return alignColumns([
    ['model', 'revision', 'commit', 'size', 'state'],
    ...models.map(({ id, revisions, commit, bytes, problem }) => [
      id,
      revisions.join(', '),
      commit.slice(0, SHORT_COMMIT),
      sizeOf(bytes),
      problem ?? 'ready',
    ]),
  ]);
}

function describeModel(model: CheckedModel): string[] {
  const { name, folder, family, parameters, types, layers, width, vocabulary, maxPositions } = model;
  return alignColumns([
    ['model', name],
    ['folder', folder],
    ['family', family],
    ['parameters', `${count(parameters)} as ${types.join(', ')}`],
    [
      'shape',
      `${layers} layers of width ${count(width)}, ${count(vocabulary)} tokens, ${count(maxPositions)} positions`,
    ],
    ['chat', model.hasChat ? 'has a chat template' : 'has no chat template'],
    ['ends', `tokens ${model.ends.join(', ')}`],
    [
      'hashes',
      model.hashesChecked === 0 ? 'none to compare with' : `${model.hashesChecked} files as the hub lists them`,
    ],
  ]);
}

function describeImport({
  file,
  folder,
  family,
  parameters,
  quantised,
  dtype,
  bytes,
  hasChat,
}: ImportedGguf): string[] {
  const types = Object.entries(quantised).map(([type, tensors]) => `${count(tensors)} ${type}`);
  return alignColumns([
    ['file', file],
    ['folder', folder],
    ['family', family],
    ['parameters', `${count(parameters)}, ${sizeOf(bytes)} as ${dtype}`],
    ['tensors', types.join(', ')],
    ['chat', hasChat ? 'has a chat template' : 'has no chat template'],
  ]);
}
