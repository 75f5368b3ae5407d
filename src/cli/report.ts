/** `propel report`: results.json, report.html and the table of a run folder. */
import { join } from 'node:path';
import type { Command } from 'commander';
import { report } from '../pipeline/report.js';
import { armsTable } from '../report/table.js';
import { printJson } from './output.js';

export function register(program: Command): void {
  program
    .command('report')
    .description('write results.json and report.html of a run folder and print its table of arms')
    .argument('[folder]', 'run folder', 'runs/azr-micro')
    .option('--json', 'print results.json on standard output instead of the table')
    .addHelpText('after', '\nExamples:\n  propel report runs/azr-micro\n  propel report runs/seed-1 --json')
    .action((folder: string, flags: { json?: boolean }) => {
      const results = report(folder);
      if (flags.json) return printJson(results);
      process.stdout.write(`${armsTable(results.arms, process.stdout.columns)}\n\n${join(folder, 'report.html')}\n`);
    });
}
