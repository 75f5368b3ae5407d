/** `propel label`: write tasks with the untrained generator and let the solver attempt each valid one, or import outcomes. */
import type { Command } from 'commander';
import { labelFrom } from '../pipeline/label-from.js';
import { label } from '../pipeline/label.js';
import type { LabelSummary } from '../pipeline/label.js';
import { inWorkspace } from '../pipeline/run.js';
import { describeAccount } from '../pipeline/solver-account.js';
import { percent } from '../report/format.js';
import { printJson, printLines } from './output.js';
import { runOptions, withRunOptions } from './run-options.js';
import type { RunFlags } from './run-options.js';

const HELP = `
With --from neither generator nor solver runs: a run takes its labels from a file of tasks whose attempts are graded already, one JSON
object a line, and propel train-probe goes on from there. A row has

  a task     snippet, input, output, imports (Absolute Zero); code, input, output (CRUXEval); or the lists inputs and outputs (code_f);
             type is code_o where it is not given, code_f for lists, else code_i
  outcomes   passes and k, or verdicts, a list of "pass", "fail" and "error"

k must be band.of, and no row may have more verdicts. Every task is checked in the sandbox as a generated one is; an invalid one, one
whose program gives another output than the recorded one, and one of another number of inputs than domain.induction.inputs are kept
as invalid and have no label. Nor has a task with fewer than band.of
verdicts other than "error". All rows of the file are taken, whatever label.tasks says.

Examples:
  propel label
  propel label my.yaml --set label.tasks=500 --out runs/mine
  propel label --from attempts.jsonl my.yaml --out runs/mine
  propel label --from attempts.jsonl --set band.of=4 --set band.max=2 --json

A row of attempts.jsonl:
  {"snippet": "def f(x):\\n    return x[::-1]", "input": "[1, 2, 3]", "output": "[3, 2, 1]", "passes": 3, "k": 8}`;

export function register(program: Command): void {
  withRunOptions(program.command('label'))
    .description('Write tasks with the untrained generator and let the solver attempt each valid one')
    .option('--from <file>', 'take tasks and the outcomes of attempts at them from a JSON Lines file instead')
    .addHelpText('after', HELP)
    .action(async (configuration: string, flags: RunFlags & { readonly from?: string }) => {
      const options = runOptions(configuration, flags);
      if (flags.from === undefined) {
        const summary = await inWorkspace(options, label);
        if (flags.json) return printJson(summary);
        return printLines([
          `${summary.labelled} labels from ${summary.generations} generations, ${summary.valid} valid`,
          ...(summary.ungraded > 0 ? [`  ${summary.ungraded} not graded: attempts lost to failures`] : []),
          ...outcomeLines(summary),
        ]);
      }
      const summary = await labelFrom(options, flags.from);
      if (flags.json) return printJson(summary);
      const outcomes = Object.entries(summary.invalid).toSorted(([, a], [, b]) => b - a);
      printLines([
        `${summary.labelled} labels from ${summary.generations} tasks, ${summary.valid} valid`,
        ...outcomes.map(([outcome, tasks]) => `  ${tasks} invalid: ${outcome.replaceAll('_', ' ')}`),
        ...(summary.unlabelled > 0 ? [`  ${summary.unlabelled} without a label: too few graded attempts`] : []),
        ...outcomeLines(summary),
      ]);
    });
}

function outcomeLines({ inBand, bandRate, bandInterval, solverTrials, solverAccount }: LabelSummary): string[] {
  return [
    `${inBand} in band: ${percent(bandRate)} (${bandInterval.map((bound) => percent(bound)).join(' to ')})`,
    `${solverTrials} solver trials`,
    ...(solverAccount ? [describeAccount(solverAccount)] : []),
  ];
}
