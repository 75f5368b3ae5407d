/** `propel sample`: fresh tasks from a run's generator, checked by the sandbox. */
import type { Command } from 'commander';
import { UserError } from '../errors.js';
import { sampleTasks, type SampledTask, warnOfNone } from '../pipeline/sample.js';
import { Workspace } from '../pipeline/workspace.js';
import { createProgress } from './progress.js';
import { nonNegativeInteger, positiveInteger } from './options.js';
import { printJson, printLines } from './output.js';

/** There is nothing to keep: Ctrl-C ends the command at once. */
const NEVER = new AbortController().signal;

/** The fields of a completion that is no task. */
const NO_TASK = { snippet: null, input: null, output: null };

interface SampleFlags {
  readonly arm: string;
  readonly count: number;
  readonly stream: number;
  readonly jsonl?: boolean;
  readonly json?: boolean;
}

export function register(program: Command): void {
  program
    .command('sample')
    .description('write fresh tasks with a run’s generator and check them')
    .argument('[folder]', 'run folder', 'runs/azr-micro')
    .option('--arm <name>', 'arm whose generator writes', 'base')
    .option('-n, --count <n>', 'generations', positiveInteger, 10)
    .option(
      '--stream <n>',
      'another number gives other samples of the same seed, as does another count',
      nonNegativeInteger,
      0,
    )
    .option('--jsonl', 'print the valid tasks as JSONL in Absolute Zero’s fields')
    .option('--json', 'print one JSON document on standard output')
    .addHelpText(
      'after',
      '\nExamples:\n  propel sample --arm propel -n 20\n  propel sample runs/seed-1 --arm propel -n 500 --jsonl > tasks.jsonl',
    )
    .action(async (folder: string, flags: SampleFlags) => {
      const { count, stream } = flags;
      const workspace = Workspace.read(folder, createProgress, NEVER);
      try {
        if (!Object.hasOwn(workspace.config.arms, flags.arm)) {
          throw new UserError(
            `--arm ${flags.arm}: the run's arms are ${Object.keys(workspace.config.arms).join(', ')}`,
          );
        }
        const tasks = await sampleTasks(workspace, flags.arm, count, stream);
        const [warning, ...details] = warnOfNone(tasks);
        if (warning !== undefined) process.stderr.write(`warning: ${[warning, ...details].join('\n')}\n`);
        if (flags.json)
          return printJson({
            arm: flags.arm,
            count,
            valid: tasks.filter(({ valid }) => valid).length,
            prompts: promptsOf(tasks),
            tasks: tasks.map(fieldsOf),
          });
        if (!flags.jsonl)
          printLines(Object.entries(promptsOf(tasks)).flatMap(([type, prompt]) => [`# prompt of ${type}`, prompt]));
        for (const sampled of tasks) {
          if (!flags.jsonl) printLines(describe(sampled));
          else if (sampled.valid) process.stdout.write(`${JSON.stringify({ ...sampled.task, imports: [] })}\n`);
        }
      } finally {
        await workspace.close();
      }
    });
}

/** As `--json` gives a task; its prompt stands there once a type. */
function fieldsOf({ type, valid, outcome, detail, topic, completion, task }: SampledTask): object {
  return { type, valid, outcome, detail, topic, completion, ...(task ?? NO_TASK) };
}

/** By type: a type's tasks share one. */
function promptsOf(tasks: readonly SampledTask[]): Record<string, string> {
  return Object.fromEntries(tasks.map(({ type, prompt }) => [type, prompt]));
}

function describe({ type, valid, outcome, topic, completion, task }: SampledTask): string[] {
  return [`# ${type}: ${valid ? topic : outcome}`, completion.trimEnd(), ...outputLines(task), ''];
}

function outputLines(task: SampledTask['task']): string[] {
  if (task === null) return [];
  if ('inputs' in task) return task.inputs.map((input, i) => `>>> f(${input})\n${task.outputs?.[i] ?? ''}`.trimEnd());
  return task.output === null ? [] : [task.output];
}
