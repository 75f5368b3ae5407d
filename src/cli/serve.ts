/** `propel serve`: the probe reward with the validity gate over HTTP, for other trainers. */
import type { Command } from 'commander';
import { InvalidArgumentError, Option } from 'commander';
import { UserError } from '../errors.js';
import { loadConfig } from '../pipeline/config-file.js';
import type { SandboxKind } from '../pipeline/open-sandbox.js';
import { openRewardScorer } from '../pipeline/reward-scorer.js';
import { startRewardServer } from '../server/reward-server.js';
import type { RunningServer } from '../server/reward-server.js';
import { portNumber, positiveInteger, sandboxOption } from './options.js';
import { printJson, printWarnings } from './output.js';
import { createProgress } from './progress.js';
import { DEFAULT_CONFIGURATION, setOption } from './run-options.js';

interface Options {
  readonly probe: readonly string[];
  readonly reference?: string;
  readonly host: string;
  readonly port: number;
  readonly apiKeyEnv?: string;
  readonly sandbox?: SandboxKind;
  readonly workers?: number;
  readonly deadline: number;
  readonly itemTimeout: number;
  readonly maxBody: number;
  readonly repeatWindow: number;
  readonly endToken: readonly string[];
  readonly set: readonly string[];
  readonly json?: true;
}

/** Items that may wait: a request that would exceed it is asked to come again. */
const MAX_WAITING = 200_000;
const MIB = 1 << 20;

export function register(program: Command): void {
  program
    .command('serve')
    .description('serve the frozen-reference probe reward with the validity gate over HTTP, for OpenRLHF, verl, TRL')
    .argument(
      '[configuration]',
      'YAML file: its domain, band, sandbox, engine and reward settings',
      DEFAULT_CONFIGURATION,
    )
    .requiredOption('--probe <files...>', 'probe files; of several the least sure one rewards')
    .option('--reference <model>', 'model the probes were trained on: folder or hub id (default: the configuration’s)')
    .option('--host <address>', 'address to listen on; 0.0.0.0 for all', '127.0.0.1')
    .option('--port <n>', 'port to listen on; 0 for any that is free', portNumber, 8700)
    .option('--api-key-env <name>', 'environment variable with the key that clients must send')
    .addOption(sandboxOption())
    .option('--workers <n>', 'programs that run at once', positiveInteger)
    .option('--deadline <s>', 'seconds for one request', positiveInteger, 150)
    .option('--item-timeout <s>', 'seconds for the check of one completion', positiveInteger, 60)
    .option('--max-body <MiB>', 'largest request', positiveInteger, 32)
    .option(
      '--repeat-window <n>',
      'latest distinct tasks of a session that a new one is compared with, where domain.validity.rejectRepeats is on',
      positiveInteger,
      100_000,
    )
    .addOption(
      new Option('--end-token <text>', 'special token that the samples begin or end with; may be repeated')
        .default([] as string[], 'the reference’s, and the usual ones')
        .argParser(tokenText),
    )
    .addOption(setOption())
    .option('--json', 'print one JSON document, with the URL, when it serves')
    .addHelpText(
      'after',
      `
Routes:
  POST /get_reward   OpenRLHF's remote reward: {query, prompts, labels} to {rewards, scores, extra_logs}
  POST /v1/reward    {items: [{completion, type, cut}], deadlineMs} to {results}, each valid, invalid or error
  GET  /v1/info      types, prompts, stops, lengths, limits: what a trainer must know
  GET  /health       what is served, and how much waits
  GET  /metrics      for Prometheus

Examples:
  $ propel serve --probe probes/azr-micro/probe-0
  $ propel serve my.yaml --probe runs/mine/probes/probe-0 --host 0.0.0.0 --api-key-env PROPEL_KEY`,
    )
    .action(async (configuration: string, options: Options) => {
      const apiKey = keyOf(options.apiKeyEnv);
      const config = loadConfig(configuration, [
        ...options.set,
        ...(options.sandbox === undefined ? [] : [`sandbox.kind=${options.sandbox}`]),
        ...(options.workers === undefined ? [] : [`sandbox.workers=${options.workers}`]),
      ]);
      const { probe: probes, reference, host, port, endToken: specialTokens } = options;
      const scorer = await openRewardScorer({ config, probes, reference, specialTokens, progress: createProgress });
      printWarnings(scorer.warnings);
      const server = await startRewardServer(scorer, {
        host,
        port,
        apiKey,
        maxBodyBytes: options.maxBody * MIB,
        deadlineMs: options.deadline * 1000,
        itemTimeoutMs: options.itemTimeout * 1000,
        maxWaiting: MAX_WAITING,
        repeatWindow: config.domain.validity.rejectRepeats ? options.repeatWindow : 0,
        log: (line) => process.stderr.write(`${line}\n`),
      });
      if (options.json) printJson({ url: server.url, probes: scorer.probes, kinds: scorer.kinds });
      process.stderr.write(`serving ${scorer.probes.join(', ')} on ${server.url}; Ctrl-C ends it\n`);
      await untilStopped(server, options.deadline * 1000);
      process.stderr.write('stopped\n');
    });
}

function tokenText(text: string, all: readonly string[]): string[] {
  if (text.trim() === '') throw new InvalidArgumentError('Give the text of a token.');
  return [...all, text];
}

function keyOf(name: string | undefined): string | null {
  if (name === undefined) return null;
  const key = process.env[name];
  if (key === undefined || key === '') throw new UserError(`--api-key-env: the environment has no ${name}; set it`);
  return key;
}

/** The first Ctrl-C or SIGTERM lets requests end, a second one answers them with errors. */
function untilStopped(server: RunningServer, graceMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      process.stderr.write('no more requests are taken; those under way end first\n');
      server.stop(graceMs).then(resolve, reject);
    };
    process.on('SIGINT', stop);
    process.on('SIGTERM', stop);
  });
}
