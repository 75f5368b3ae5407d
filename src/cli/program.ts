/** The program: its commands, and how a command that fails says so. */
import { Command, CommanderError } from 'commander';
import { versions } from '../pipeline/versions.js';
import { register as registerCheck } from './check.js';
import { register as registerCompare } from './compare.js';
import { register as registerConfig } from './config.js';
import { register as registerDoctor } from './doctor.js';
import { register as registerEvaluate } from './evaluate.js';
import { register as registerExport } from './export.js';
import { register as registerGrade } from './grade.js';
import { register as registerLabel } from './label.js';
import { register as registerModels } from './models.js';
import { register as registerPlan } from './plan.js';
import { register as registerPrompts } from './prompts.js';
import { register as registerReport } from './report.js';
import { register as registerRun } from './run.js';
import { register as registerSample } from './sample.js';
import { register as registerSandbox } from './sandbox.js';
import { register as registerServe } from './serve.js';
import { register as registerTrainGenerator } from './train-generator.js';
import { register as registerTrainProbe } from './train-probe.js';
import { exitCodeOf, messageOf } from './errors.js';

/** Before them in `process.argv`: Node.js and the script. */
const ARGUMENTS_START = 2;

/** Each adds one command. */
const COMMANDS: readonly ((program: Command) => void)[] = [
  registerRun,
  registerCompare,
  registerLabel,
  registerTrainProbe,
  registerTrainGenerator,
  registerEvaluate,
  registerReport,
  registerExport,
  registerSample,
  registerPrompts,
  registerCheck,
  registerGrade,
  registerConfig,
  registerPlan,
  registerServe,
  registerModels,
  registerSandbox,
  registerDoctor,
];

function createProgram(): Command {
  const program = new Command('propel')
    .description("Trains language models that write tasks at the edge of a solver's ability.")
    .version(versions().propel)
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(usageError(text)) });
  for (const register of COMMANDS) register(program);
  return program;
}

/** Runs one command and leaves its exit code in `process.exitCode`. */
export async function runCommandLine(argv: readonly string[]): Promise<void> {
  process.stdout.on('error', endOfOutput);
  process.stderr.on('error', endOfErrors);
  try {
    const program = createProgram();
    if (argv.length > ARGUMENTS_START) await program.parseAsync(argv);
    else program.outputHelp();
  } catch (error) {
    // Commander has written its own message.
    if (!(error instanceof CommanderError)) process.stderr.write(`propel: ${messageOf(error)}\n`);
    process.exitCode = exitCodeOf(error);
  }
}

/** Commander's message, `error: …` and sometimes a second line with a suggestion, as one line. */
function usageError(text: string): string {
  return `propel: ${text
    .trim()
    .replace(/^error: /, '')
    .replaceAll(/\s*\n\s*/g, ' ')}; see --help\n`;
}

/** Whoever read the output has closed it, as `head` does, and nobody is left to write for; or its disk takes no more. */
function endOfOutput(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(0);
  const why = error.code === 'ENOSPC' ? 'no space left on its disk; free some' : error.message;
  process.stderr.write(`propel: cannot write standard output: ${why}\n`);
  process.exit(1);
}

/** Nothing can be told any more. */
function endOfErrors(error: NodeJS.ErrnoException): void {
  process.exit(error.code === 'EPIPE' ? 0 : 1);
}
