/** `propel train-probe`: fit the probes to the labels. */
import type { Command } from 'commander';
import { inBegunRun } from '../pipeline/run.js';
import { trainProbe } from '../pipeline/train-probe.js';
import { decimal } from '../report/format.js';
import { alignColumns, printJson, printLines } from './output.js';
import { runOptions, withRunOptions } from './run-options.js';
import type { RunFlags } from './run-options.js';

export function register(program: Command): void {
  withRunOptions(program.command('train-probe'))
    .description('Fit probes on the reference model’s hidden states to the labels')
    .addHelpText(
      'after',
      '\nExamples:\n  propel train-probe\n  propel train-probe my.yaml --out runs/mine --fresh --set probe.head=ordinal',
    )
    .action(async (configuration: string, flags: RunFlags) => {
      const summary = await inBegunRun(runOptions(configuration, flags), 'train-probe', trainProbe);
      if (flags.json) return printJson(summary);
      const rows = summary.probes.flatMap(({ name, heldOut, baselines }) => [
        { name, heldOut },
        { name: '  length alone', heldOut: baselines.length.heldOut },
        { name: '  token n-grams alone', heldOut: baselines.ngram.heldOut },
      ]);
      printLines(
        alignColumns([
          ['on held-out labels', 'AUROC', '95% interval', 'average precision', 'calibration error'],
          ...rows.map(({ name, heldOut: { auroc, averagePrecision, calibrationError } }) => [
            name,
            decimal(auroc.value, 3),
            auroc.interval.map((bound) => decimal(bound, 3)).join(' to '),
            decimal(averagePrecision.value, 3),
            decimal(calibrationError.value, 3),
          ]),
        ]),
      );
    });
}
