/** `propel train-generator`: train the generator of every arm that has a reward. */
import type { Command } from 'commander';
import { ungradedNote } from '../pipeline/progress.js';
import { trainGenerator } from '../pipeline/train-generator.js';
import { inBegunRun } from '../pipeline/run.js';
import { count } from '../report/format.js';
import { collapsed } from '../report/warnings.js';
import { printJson, printLines, printWarnings } from './output.js';
import { runOptions, withRunOptions } from './run-options.js';
import type { RunFlags } from './run-options.js';

export function register(program: Command): void {
  withRunOptions(program.command('train-generator'))
    .description('Train the generator of every arm that has a reward; a solver runs only where the arm says so')
    .addHelpText(
      'after',
      `\nExamples:\n  propel train-generator\n  propel train-generator my.yaml --out runs/mine --fresh --set train.steps=20`,
    )
    .action(async (configuration: string, flags: RunFlags) => {
      const options = runOptions(configuration, flags);
      const arms = await inBegunRun(options, 'train-generator', trainGenerator);
      printWarnings(
        arms.flatMap(({ arm, training }) =>
          training.status === 'collapsed' ? [`arm ${arm}: ${collapsed(training)}`] : [],
        ),
      );
      if (flags.json) return printJson({ arms });
      printLines(
        arms.map(
          ({ arm, steps, validity, klPerSequence, solverTrials, ungraded, checkpoint }) =>
            `${arm}: ${steps} steps, valid ${validity.toFixed(2)}, KL ${klPerSequence.toFixed(2)} nats a sequence, ${count(solverTrials)} solver trials${ungradedNote(ungraded)}, ${checkpoint ?? 'no checkpoint that is trusted'}`,
        ),
      );
    });
}
