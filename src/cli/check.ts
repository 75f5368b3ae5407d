/** `propel check`: do recorded tasks still give their recorded outputs? */
import type { Command } from 'commander';
import type { CheckFileReport } from '../domain/azr/index.js';
import { checkTasks } from '../pipeline/check.js';
import { percent } from '../report/format.js';
import type { SandboxKind } from '../pipeline/open-sandbox.js';
import { positiveInteger, sandboxOption } from './options.js';
import { alignColumns, printJson, printLines } from './output.js';
import { createProgress } from './progress.js';

interface Options {
  readonly sandbox: SandboxKind;
  readonly json?: true;
  readonly workers?: number;
  readonly timeout?: number;
}

export function register(program: Command): void {
  program
    .command('check')
    .description('run the recorded tasks of a JSON Lines file in the sandbox and compare what comes out')
    .argument(
      '<file>',
      "rows in Absolute Zero's fields (snippet, input, output; or inputs, outputs) or CRUXEval's (code, input, output)",
    )
    .option('--json', 'print one JSON document')
    .addOption(sandboxOption().default('wasm'))
    .option('--workers <n>', 'programs at once (default: one a core)', positiveInteger)
    .option('--timeout <ms>', 'time limit of one program in milliseconds (default: 2000)', positiveInteger)
    .addHelpText(
      'after',
      `
Outcomes:
  ok                        repr(f(input)) is the recorded output, to the character: reproduced; of a row with
                            several inputs, every one
  literal_equal             an equal value, written another way
  value_equal               an equal value, recorded as source that is no literal: dict(k=1), float('inf'), [1] * 3
  recorded_output_differs   the program ran to another value
  others                    what the sandbox says: syntax_error, runtime_error, timeout, memory,
                            output_limit, nondeterministic, forbidden

Examples:
  $ propel check tasks.jsonl
  $ propel check tasks.jsonl --workers 1 --timeout 500
  $ propel check tasks.jsonl --sandbox docker
  $ propel check tasks.jsonl --json | jq '.results[] | select(.reproduced | not)'`,
    )
    .action(async (file: string, { json, sandbox, workers, timeout }: Options) => {
      const report = await checkTasks(file, { sandbox, workers, timeoutMs: timeout, progress: createProgress });
      if (json) printJson(report);
      else printLines(describe(report));
    });
}

function describe(report: CheckFileReport): string[] {
  const { rows, reproduced, calls, programsPerSecond, medianMilliseconds, startupMilliseconds } = report;
  const outcomes = Object.entries(report.outcomes).toSorted(([, a], [, b]) => b - a);
  const others = report.results.filter((row) => !row.reproduced);
  return [
    `${reproduced} of ${rows} rows reproduced (${percent(reproduced / rows)})`,
    ...(calls.total === rows ? [] : [describeCalls(calls)]),
    '',
    ...alignColumns([['outcome', 'rows'], ...outcomes.map(([name, number]) => [name, String(number)])]),
    ...(others.length === 0 ? [] : ['', 'Rows that were not reproduced, counted from 0:']),
    ...alignColumns(others.map(({ index, outcome, detail }) => [String(index), outcome, detail.replaceAll('\n', ' ')])),
    '',
    `${programsPerSecond.toFixed(0)} programs/s, median ${medianMilliseconds.toFixed(1)} ms a run, start-up ${startupMilliseconds.toFixed(0)} ms`,
  ];
}

/** Rows of several calls: one call that differs must not hide the others. */
function describeCalls({ total, counted, equal }: CheckFileReport['calls']): string {
  const share = counted === 0 ? '' : ` (${percent(equal / counted, 2)})`;
  return `${equal} of ${counted} calls gave an equal value${share}; of ${total} calls these have allowed imports and an output recorded whole`;
}
