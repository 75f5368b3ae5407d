/** `propel compare`: the same arms under several seeds, and one report over all of them. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { InvalidArgumentError } from 'commander';
import type { Command } from 'commander';
import { RunError } from '../errors.js';
import { compare } from '../pipeline/compare.js';
import { loadComparison } from '../pipeline/compare-config.js';
import { claimLines, comparisonTable } from '../report/comparison-table.js';
import { folderName, nonNegativeInteger, positiveInteger, sandboxOption } from './options.js';
import { printJson } from './output.js';
import { overridesOf, setOption, stopSignal } from './run-options.js';
import type { RunFlags } from './run-options.js';
import { createSeedBoard } from './seed-board.js';

const DEFAULT_COMPARISON = 'pipelines/azr-comparison.yaml';

interface CompareFlags extends Omit<RunFlags, 'seed'> {
  readonly seeds?: readonly number[];
  readonly parallel?: 'auto' | number;
  readonly check?: boolean;
}

export function register(program: Command): void {
  program
    .command('compare')
    .description('run the same arms under several seeds and report on all of them together')
    .argument('[configuration]', 'YAML file, from the working folder or the package', DEFAULT_COMPARISON)
    .option('--seeds <n,n,…>', 'seeds, instead of the configuration’s', seedList)
    .option('--parallel <n>', 'runs at once: a number, or auto for what processors and memory allow', parallelRuns)
    .option('--out <folder>', 'folder of the comparison (default: runs/<name>)', folderName)
    .addOption(sandboxOption())
    .option('--fresh', 'start every seed over')
    .addOption(setOption())
    .option('--check', 'exit with code 1 when a claim does not hold or cannot be judged')
    .option('--json', 'print comparison.json on standard output')
    .addHelpText(
      'after',
      `
Each seed is a run folder of its own, seed-<n>, made as by 'propel run'. Stopped at any moment and started again, every seed goes on where
it was; 'propel report' writes the report again.

Examples:
  propel compare pipelines/azr-comparison.yaml           the paper's comparison on the embedded models, into runs/azr-comparison
  propel compare my.yaml --seeds 0,1,2,3,4 --parallel 2
  propel compare runs/mine/comparison.yaml --out runs/mine --check`,
    )
    .action(async (configuration: string, flags: CompareFlags) => {
      const settings = loadComparison(configuration, [
        ...overridesOf(flags),
        ...(flags.seeds === undefined
          ? []
          : [{ option: `--seeds ${flags.seeds.join(',')}`, setting: `seeds=${JSON.stringify(flags.seeds)}` }]),
        ...(flags.parallel === undefined
          ? []
          : [{ option: `--parallel ${flags.parallel}`, setting: `parallel=${flags.parallel}` }]),
      ]);
      const folder = flags.out ?? join('runs', settings.config.name);
      const comparison = await compare({
        settings,
        folder,
        fresh: flags.fresh ?? false,
        command: [process.execPath, ...process.execArgv, fileURLToPath(new URL('main.js', import.meta.url))],
        progress: createSeedBoard(settings.seeds),
        signal: stopSignal(),
      });
      if (flags.json) printJson(comparison);
      else {
        process.stdout.write(`\n${comparisonTable(comparison)}\n${claimLines(comparison)}\n`);
        process.stdout.write(`${join(folder, 'report.html')}\n${join(folder, 'comparison.json')}\n`);
      }
      const failing = comparison.claims.filter(({ verdict }) => verdict !== 'holds');
      if (flags.check && failing.length > 0) {
        throw new RunError(
          `${failing.length} of ${comparison.claims.length} claims do not hold: ${failing.map(({ id, verdict }) => (verdict === 'does not hold' ? id : `${id} (${verdict})`)).join(', ')}`,
        );
      }
    });
}

function seedList(text: string): number[] {
  return text.split(',').map(nonNegativeInteger);
}

function parallelRuns(text: string): 'auto' | number {
  if (text === 'auto') return text;
  try {
    return positiveInteger(text);
  } catch {
    throw new InvalidArgumentError('Give auto or a whole number from 1.');
  }
}
