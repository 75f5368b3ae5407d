/** Options that the commands which work in a run folder share. */
import { join } from 'node:path';
import { Option } from 'commander';
import type { Command } from 'commander';
import { loadConfig } from '../pipeline/config-file.js';
import { channelProgress, listenToParent } from '../pipeline/run-channel.js';
import type { RunOptions } from '../pipeline/workspace.js';
import type { SandboxKind } from '../pipeline/open-sandbox.js';
import { STOPPED } from './errors.js';
import { folderName, nonNegativeInteger, sandboxOption } from './options.js';
import { createProgress } from './progress.js';

export interface RunFlags {
  readonly seed?: number;
  readonly out?: string;
  readonly fresh?: boolean;
  readonly json?: boolean;
  readonly sandbox?: SandboxKind;
  readonly set: readonly string[];
}

export const DEFAULT_CONFIGURATION = 'pipelines/azr-micro.yaml';

/** Add the configuration argument and the shared options to a command. */
export function withRunOptions(command: Command): Command {
  return command
    .argument('[configuration]', 'YAML file, from the working folder or the package', DEFAULT_CONFIGURATION)
    .option('--seed <n>', 'seed of every random stream, instead of the configuration’s', nonNegativeInteger)
    .option('--out <folder>', 'run folder (default: runs/<name>)', folderName)
    .addOption(sandboxOption())
    .option('--fresh', 'start over: the whole run, or this phase and those after it')
    .addOption(setOption())
    .option('--json', 'print one JSON document on standard output');
}

/** `--set`, the same wherever a configuration is read. */
export function setOption(): Option {
  return new Option('--set <key=value>', 'override a setting, e.g. --set train.steps=20; may be repeated')
    .default([] as string[], 'none')
    .argParser((value: string, all: string[]) => [...all, value]);
}

/** The settings that options override. */
export function overridesOf({ set, seed, sandbox }: Pick<RunFlags, 'set' | 'seed' | 'sandbox'>): string[] {
  return [
    ...set,
    ...(seed === undefined ? [] : [`seed=${seed}`]),
    ...(sandbox === undefined ? [] : [`sandbox.kind=${sandbox}`]),
  ];
}

/** What the pipeline needs, from a command's arguments. */
export function runOptions(configuration: string, flags: RunFlags): RunOptions {
  const overrides = overridesOf(flags);
  const config = loadConfig(configuration, overrides);
  return {
    config,
    source: [configuration, ...overrides.map((override) => `--set ${override}`)].join(' '),
    folder: flags.out ?? join('runs', config.name),
    fresh: flags.fresh ?? false,
    progress: channelProgress() ?? createProgress,
    signal: stopSignal(),
  };
}

/**
 * Aborted by the first Ctrl-C or SIGTERM, or by the word of the comparison that this run is a part of; a second signal ends the process at
 * once, and so does the comparison's own end: nobody is left to go on for, and what is committed stays.
 */
export function stopSignal(): AbortSignal {
  const controller = new AbortController();
  const stop = () => {
    if (controller.signal.aborted) process.exit(STOPPED);
    const newLine = process.stderr.isTTY ? '\n' : '';
    process.stderr.write(`${newLine}stopping after this batch; press again to stop at once\n`);
    controller.abort();
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  listenToParent(
    () => controller.abort(),
    () => process.exit(STOPPED),
  );
  return controller.signal;
}
