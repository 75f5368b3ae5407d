/** `propel run`: every phase of a configuration, then the report. */
import { join } from 'node:path';
import type { Command } from 'commander';
import { run } from '../pipeline/run.js';
import { describeAccount } from '../pipeline/solver-account.js';
import { armsTable } from '../report/table.js';
import { printJson, printWarnings } from './output.js';
import { runOptions, withRunOptions } from './run-options.js';
import type { RunFlags } from './run-options.js';

export function register(program: Command): void {
  withRunOptions(program.command('run'))
    .description('label, train probes, train the generator, evaluate and report')
    .addHelpText(
      'after',
      `
Stopped at any moment and started again, it goes on where it was. An arm whose training collapses (train.klStop, train.noSignalStop) is a
result and no failure: the exit code is 0, and table, report, results.json and a warning on standard error say so.

Examples:
  propel run                                     the embedded default, into runs/azr-micro
  propel run --seed 1 --out runs/seed-1          another seed, another folder
  propel run my.yaml --set train.steps=20        one setting changed
  propel run --json > results.json               results.json on standard output`,
    )
    .action(async (configuration: string, flags: RunFlags) => {
      const options = runOptions(configuration, flags);
      const results = await run(options);
      printWarnings(results.warnings);
      if (flags.json) return printJson(results);
      process.stdout.write(`\n${armsTable(results.arms, process.stdout.columns)}\n\n`);
      if (results.solverAccount) process.stdout.write(`${describeAccount(results.solverAccount)}\n\n`);
      process.stdout.write(`${join(options.folder, 'report.html')}\n${join(options.folder, 'results.json')}\n`);
    });
}
