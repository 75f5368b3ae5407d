/** `propel train-generator`: train the generator of every arm that has a reward; no solver runs. */
import type { Command } from 'commander';
import { trainGenerator } from '../pipeline/train-generator.js';
import { inBegunRun } from '../pipeline/run.js';
import { printJson, printLines } from './output.js';
import { runOptions, withRunOptions } from './run-options.js';
import type { RunFlags } from './run-options.js';

export function register(program: Command): void {
  withRunOptions(program.command('train-generator'))
    .description('Train the generator of every arm that has a reward; no solver runs')
    .addHelpText(
      'after',
      `\nExamples:\n  propel train-generator\n  propel train-generator my.yaml --out runs/mine --fresh --set train.steps=20`,
    )
    .action(async (configuration: string, flags: RunFlags) => {
      const options = runOptions(configuration, flags);
      const arms = await inBegunRun(options, 'train-generator', trainGenerator);
      if (flags.json) return printJson({ arms });
      printLines(
        arms.map(
          (arm) =>
            `${arm.arm}: ${arm.steps} steps, valid ${arm.validity.toFixed(2)}, KL ${arm.klPerSequence.toFixed(2)} nats a sequence, ${arm.checkpoint}`,
        ),
      );
    });
}
