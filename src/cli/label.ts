/** `propel label`: write tasks with the untrained generator and let the solver attempt each valid one. */
import type { Command } from 'commander';
import { label } from '../pipeline/label.js';
import { inWorkspace } from '../pipeline/run.js';
import { describeAccount } from '../pipeline/solver-account.js';
import { percent } from '../report/format.js';
import { printJson, printLines } from './output.js';
import { runOptions, withRunOptions } from './run-options.js';
import type { RunFlags } from './run-options.js';

export function register(program: Command): void {
  withRunOptions(program.command('label'))
    .description('Write tasks with the untrained generator and let the solver attempt each valid one')
    .addHelpText('after', `\nExamples:\n  propel label\n  propel label my.yaml --set label.tasks=500 --out runs/mine`)
    .action(async (configuration: string, flags: RunFlags) => {
      const options = runOptions(configuration, flags);
      const summary = await inWorkspace(options, label);
      if (flags.json) return printJson(summary);
      printLines([
        `${summary.labelled} labels from ${summary.generations} generations, ${summary.valid} valid`,
        `${summary.inBand} in band: ${percent(summary.bandRate)} (${summary.bandInterval.map(percent).join(' to ')})`,
        `${summary.solverTrials} solver trials`,
        ...(summary.solverAccount ? [describeAccount(summary.solverAccount)] : []),
      ]);
    });
}
