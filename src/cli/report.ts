/** `propel report`: results.json, report.html and the table of a run folder, or of a comparison's. */
import { join } from 'node:path';
import type { Command } from 'commander';
import { isComparisonFolder, reportComparisonAgain } from '../pipeline/compare-report.js';
import { report } from '../pipeline/report.js';
import { claimLines, comparisonTable } from '../report/comparison-table.js';
import { armsTable } from '../report/table.js';
import { printJson, printWarnings } from './output.js';

export function register(program: Command): void {
  program
    .command('report')
    .description('write the report of a run folder or of a comparison’s folder again, and print its table of arms')
    .argument('[folder]', 'run folder, or the folder of a comparison', 'runs/azr-micro')
    .option('--json', 'print results.json, or comparison.json, on standard output instead of the table')
    .addHelpText('after', '\nExamples:\n  propel report runs/azr-micro\n  propel report runs/azr-comparison --json')
    .action((folder: string, flags: { json?: boolean }) => {
      const html = join(folder, 'report.html');
      if (isComparisonFolder(folder)) {
        const comparison = reportComparisonAgain(folder);
        if (flags.json) return printJson(comparison);
        process.stdout.write(`${comparisonTable(comparison)}\n${claimLines(comparison)}\n${html}\n`);
        return;
      }
      const results = report(folder);
      printWarnings(results.warnings);
      if (flags.json) return printJson(results);
      process.stdout.write(`${armsTable(results.arms, process.stdout.columns)}\n\n${html}\n`);
    });
}
