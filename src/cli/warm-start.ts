/** `propel warm-start`: supervised fine-tuning, for models that cannot write valid tasks yet, or not answer them. */
import { Option } from 'commander';
import type { Command } from 'commander';
import { UserError } from '../errors.js';
import { loadConfig } from '../pipeline/config-file.js';
import { WARM_START_ROLES } from '../pipeline/warm-start/micro-world-documents.js';
import type { WarmStartRole } from '../pipeline/warm-start/micro-world-documents.js';
import { WARM_START_DEFAULTS } from '../pipeline/warm-start/settings.js';
import type { DocumentSource, WarmStartSettings } from '../pipeline/warm-start/settings.js';
import { warmStart } from '../pipeline/warm-start/warm-start.js';
import type { WarmStarted } from '../pipeline/warm-start/written.js';
import { count, duration } from '../report/format.js';
import { folderName, nonNegativeInteger, positiveInteger, positiveNumber } from './options.js';
import { alignColumns, printJson, printLines } from './output.js';
import { createProgress } from './progress.js';
import { DEFAULT_CONFIGURATION, setOption, stopSignal } from './run-options.js';

interface Flags extends WarmStartSettings {
  readonly role: WarmStartRole;
  readonly documents?: string;
  readonly microWorld?: number;
  readonly from?: string;
  readonly out: string;
  readonly adapter?: boolean;
  readonly seed?: number;
  readonly set: readonly string[];
  readonly json?: boolean;
}

const HELP = `
Documents are JSON lines {"prompt": "…", "completion": "…"}. A prompt is put to the model as the configuration's notation and chat setting
have it (propel plan shows it), a completion gets the token that ends it, and the loss is on that and on the completion alone. With
--micro-world they are sampled: the generator's are tasks of the configuration's types in its notation, the solver's are questions with
their answers. A twentieth of them, 256 at most, is held out.

A training that was stopped or killed goes on from where it was by the same command, to the same weights; its state is in <out>.training
until the model is there. Batches, learning rates and seed follow from options and configuration; engine, memory budget and micro-batches
(train.microBatch, train.microBatchTokens) are the configuration's.

Examples:
  $ propel warm-start my.yaml --role generator --micro-world 1600 --from ./smollm2 --out models/generator
  $ propel warm-start my.yaml --role solver --documents pairs.jsonl --passes 2 --out models/solver
  $ propel warm-start my.yaml --role generator --documents pairs.jsonl --adapter --out adapters/generator --json`;

export function register(program: Command): void {
  const { passes, batch, learningRate, warmUp, rank, alpha } = WARM_START_DEFAULTS;
  program
    .command('warm-start')
    .description('fine-tune a model on prompts and completions before reinforcement learning')
    .argument('[configuration]', 'YAML file, from the working folder or the package', DEFAULT_CONFIGURATION)
    .addOption(new Option('--role <role>', 'what the model is to do').choices(WARM_START_ROLES).makeOptionMandatory())
    .option('--documents <file>', 'JSON lines of prompts and completions')
    .option('--micro-world <n>', 'so many documents of the micro-world instead', positiveInteger)
    .option('--from <model>', 'model to begin with (default: models.policy or models.solver)')
    .requiredOption('--out <folder>', 'folder to write, which must be new or empty', folderName)
    .option('--adapter', 'write a PEFT adapter instead of a checkpoint')
    .option('--passes <n>', 'times that every document is learnt from', positiveInteger, passes)
    .option('--batch <n>', 'documents an update', positiveInteger, batch)
    .option('--learning-rate <x>', 'the peak', positiveNumber, learningRate)
    .option('--warm-up <n>', 'updates until the peak', positiveInteger, warmUp)
    .option('--rank <n>', 'rank of the adapter', positiveInteger, rank)
    .option('--alpha <x>', 'its scale is alpha / rank', positiveNumber, alpha)
    .option('--seed <n>', 'seed of every random stream, instead of the configuration’s', nonNegativeInteger)
    .addOption(setOption())
    .option('--json', 'print one JSON document on standard output')
    .addHelpText('after', HELP)
    .action(async (configuration: string, flags: Flags) => {
      const { role, from, out, adapter = false, seed, set, json } = flags;
      const source = sourceOf(flags);
      const config = loadConfig(configuration, [...set, ...(seed === undefined ? [] : [`seed=${seed}`])]);
      const settings: WarmStartSettings = {
        passes: flags.passes,
        batch: flags.batch,
        learningRate: flags.learningRate,
        warmUp: flags.warmUp,
        rank: flags.rank,
        alpha: flags.alpha,
      };
      const started = await warmStart({
        config,
        role,
        source,
        from,
        out,
        adapter,
        settings,
        progress: createProgress,
        signal: stopSignal(),
      });
      if (json) printJson(started);
      else printLines(describe(started));
    });
}

function sourceOf({ documents, microWorld }: Flags): DocumentSource {
  if ((documents === undefined) === (microWorld === undefined))
    throw new UserError('give documents either as --documents FILE.jsonl or as --micro-world N');
  return documents === undefined ? { microWorld: microWorld! } : { file: documents };
}

function describe({ role, kind, folder, base, documents, heldOut, updates, seconds, files }: WarmStarted): string[] {
  const loss = ({ nats, interval: [low, high] }: WarmStarted['heldOut']['before']): string =>
    `${nats.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`;
  return [
    `${role}, ${kind === 'adapter' ? 'an adapter of' : 'trained from'} ${base}: ${folder}`,
    `${count(documents.trained)} documents in ${count(updates)} updates, ${duration(seconds)}`,
    `loss on ${count(documents.heldOut)} held-out documents, nats a token: ${loss(heldOut.before)} before, ${loss(heldOut.after)} after`,
    ...alignColumns(files.map(({ file, bytes, sha256 }) => [`  ${file}`, `${count(bytes)} bytes`, `sha256:${sha256}`])),
  ];
}
