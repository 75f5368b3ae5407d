/** `propel evaluate`: re-score fresh generations of every arm by the solver, and write the report. */
import type { Command } from 'commander';
import { evaluate } from '../pipeline/evaluate.js';
import { inBegunRun } from '../pipeline/run.js';
import { report } from '../pipeline/report.js';
import { armsTable } from '../report/table.js';
import { printJson, printLines, printWarnings } from './output.js';
import { runOptions, withRunOptions } from './run-options.js';
import type { RunFlags } from './run-options.js';

export function register(program: Command): void {
  withRunOptions(program.command('evaluate'))
    .description('Re-score fresh generations of every arm by the solver, and write the report')
    .addHelpText(
      'after',
      `\nExamples:\n  propel evaluate\n  propel evaluate my.yaml --out runs/mine --fresh --set evaluate.generations=2000`,
    )
    .action(async (configuration: string, flags: RunFlags) => {
      const options = runOptions(configuration, flags);
      await inBegunRun(options, 'evaluate', evaluate);
      const results = report(options.folder);
      printWarnings(results.warnings);
      if (flags.json) return printJson(results);
      printLines([armsTable(results.arms, process.stdout.columns)]);
    });
}
