/** `propel export`: a trained generator as a PEFT adapter or a plain checkpoint. */
import type { Command } from 'commander';
import { exportGenerator } from '../pipeline/export.js';
import type { Exported } from '../pipeline/export.js';
import { count } from '../report/format.js';
import { folderName, positiveInteger } from './options.js';
import { alignColumns, printJson, printLines } from './output.js';

interface Flags {
  readonly arm: string;
  readonly step?: number;
  readonly out: string;
  readonly merge?: boolean;
  readonly json?: boolean;
}

const HELP = `
Without --merge: adapter_config.json and adapter_model.safetensors as PEFT, vLLM and others load them. With --merge: the base's files
with W + (α / r) B A in the place of each adapted W, in the types and shards of the base; config.json, generation_config.json and the
tokenizer's files are copied as they are. The folder must be new or empty.

Examples:
  $ propel export runs/azr-micro --arm propel --out exports/propel
  $ propel export runs/azr-micro --arm propel --step 20 --out exports/propel-20 --merge --json`;

export function register(program: Command): void {
  program
    .command('export')
    .description('write a trained generator as a PEFT adapter, or merged into a plain checkpoint')
    .argument('[folder]', 'run folder', 'runs/azr-micro')
    .requiredOption('--arm <name>', 'the arm whose generator to write')
    .option(
      '--step <n>',
      'a step that has a checkpoint (default: the one that is measured: the last, of a collapsed arm the last trusted)',
      positiveInteger,
    )
    .requiredOption('--out <folder>', 'folder to write', folderName)
    .option('--merge', 'merge the adapter into the weights of its base')
    .option('--json', 'print one JSON document on standard output')
    .addHelpText('after', HELP)
    .action((run: string, { arm, step, out, merge = false, json }: Flags) => {
      const exported = exportGenerator({ run, arm, step, out, merge });
      if (json) printJson(exported);
      else printLines(describe(exported));
    });
}

function describe({ arm, step, trained, kind, base, folder, modelHash, files }: Exported): string[] {
  return [
    `arm ${arm} after step ${step}, ${kind === 'adapter' ? 'an adapter of' : 'merged into'} ${base}: ${folder}`,
    ...(trained ? [] : ['its training is not done: this is not yet what an evaluation would measure']),
    ...alignColumns(files.map(({ file, bytes, sha256 }) => [`  ${file}`, `${count(bytes)} bytes`, `sha256:${sha256}`])),
    ...(modelHash === null ? [] : [`as a model of a run or a probe's card: ${modelHash}`]),
  ];
}
