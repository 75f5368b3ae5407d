/** `propel grade`: are recorded answers right? */
import { Option, type Command } from 'commander';
import { TASK_TYPES, type GradeReport, type GradeType } from '../domain/azr/index.js';
import { gradeAnswers } from '../pipeline/grade.js';
import type { SandboxKind } from '../pipeline/open-sandbox.js';
import { percent } from '../report/format.js';
import { nonNegativeInteger, positiveInteger, sandboxOption } from './options.js';
import { alignColumns, printJson, printLines } from './output.js';
import { createProgress } from './progress.js';

interface Options {
  readonly type: GradeType;
  readonly tasks: string;
  readonly answers: string;
  readonly shown?: number;
  readonly sandbox: SandboxKind;
  readonly workers?: number;
  readonly timeout?: number;
  readonly json?: true;
}

export function register(program: Command): void {
  program
    .command('grade')
    .description('grade the answers of a JSON Lines file to the tasks of another')
    .addOption(
      new Option(
        '--type <type>',
        'what an answer is: code_o the output, code_i an input that leads to it, code_f the function',
      )
        .choices(TASK_TYPES)
        .makeOptionMandatory(),
    )
    .requiredOption(
      '--tasks <file>',
      "rows in Absolute Zero's fields (snippet, input, output; or inputs, outputs) or CRUXEval's (code, input, output), with an id or counted from 0",
    )
    .requiredOption('--answers <file>', 'rows {id, answers}: the id of a task, and a list of answer texts')
    .option('--shown <n>', 'of code_f, inputs that were shown; the rest judge (default: half)', nonNegativeInteger)
    .addOption(sandboxOption().default('wasm'))
    .option('--workers <n>', 'programs at once (default: one a core)', positiveInteger)
    .option('--timeout <ms>', 'time limit of one program in milliseconds (default: 2000)', positiveInteger)
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
An answer stands alone, or in the last block of its kind (\`\`\`output, \`\`\`input, \`\`\`python) of a longer text; of Python the last block
that defines f. End tokens of a raw decode (<|im_end|>, </s>) are taken off. An input may be a whole call, f(1, 2).
Outputs are compared as Python literals, on the host: the expected output never enters the sandbox.

Verdicts:
  pass    right
  fail    wrong, no literal, or a program that fails, runs too long or needs too much
  error   not graded, and counted for nothing: the sandbox failed (exit code 1), or the task's output is no literal

Examples:
  $ propel grade --type code_o --tasks tasks.jsonl --answers answers.jsonl
  $ propel grade --type code_f --tasks functions.jsonl --answers answers.jsonl --shown 5 --sandbox docker
  $ propel grade --type code_i --tasks tasks.jsonl --answers answers.jsonl --json | jq .passAt1`,
    )
    .action(async ({ timeout, json, shown, workers, ...options }: Options) => {
      const report = await gradeAnswers({ ...options, shown, workers, timeoutMs: timeout, progress: createProgress });
      if (json) printJson(report);
      else printLines(describe(report));
      if (report.results.some(({ sandboxFailed }) => sandboxFailed)) process.exitCode = 1;
    });
}

function describe(report: GradeReport): string[] {
  const { type, tasks, answers, verdicts, passAt1, passAt1Interval, results } = report;
  const [low, high] = passAt1Interval ?? [0, 1];
  const unsure = results.filter(({ reason }) => reason !== undefined);
  return [
    passAt1 === null
      ? `no answer to ${tasks} tasks of type ${type} could be graded`
      : `pass@1 ${percent(passAt1)} [${percent(low)}, ${percent(high)}] over ${tasks} tasks of type ${type}`,
    `${answers} answers: ${verdicts.pass} pass, ${verdicts.fail} fail, ${verdicts.error} error`,
    ...(unsure.length === 0 ? [] : ['', 'Tasks with answers that could not be graded:']),
    ...alignColumns(unsure.map(({ id, reason = '' }) => [String(id), reason.replaceAll('\n', ' ')])),
  ];
}
