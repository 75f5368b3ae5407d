/** The whole of a run: label → train-probe → train-generator → evaluate → report; the first two where an arm learns its reward from labels. */
import { join } from 'node:path';
import { UserError } from '../errors.js';
import { Tokenizer } from '../lm/tokenizer.js';
import type { Results } from '../report/results.js';
import { DATABASE_FILE } from '../store/database.js';
import { isThere } from '../store/files.js';
import type { Phase } from '../store/rows.js';
import { isTrained } from './arm-config.js';
import { phasesNeeded } from './config.js';
import type { Config } from './config.js';
import { evaluate } from './evaluate.js';
import { label } from './label.js';
import { modelFolders } from './model-folders.js';
import { basisOf } from './plan-rates.js';
import { rememberRates, remembersRates } from './remembered-rates.js';
import { report } from './report.js';
import { runProgress } from './run-pace.js';
import { trainGenerator } from './train-generator.js';
import { trainProbe } from './train-probe.js';
import { checkModels } from './preflight.js';
import { Stopped, Workspace } from './workspace.js';
import type { RunOptions } from './workspace.js';

/** Run all phases that are not done, and write the report. @throws Stopped when the user asks to stop. */
export async function run(options: RunOptions): Promise<Results> {
  const progress = runProgress(options.config, options.progress);
  await inWorkspace({ ...options, progress }, async (workspace) => {
    const needed = phasesNeeded(options.config);
    if (needed.labels) await label(workspace);
    if (needed.probes) await trainProbe(workspace);
    await trainGenerator(workspace);
    await evaluate(workspace);
  });
  return report(options.folder);
}

/** Work in a run folder once the models have been checked, and close all that was opened whatever happens; `fresh` starts over at `from`. */
export async function inWorkspace<Result>(
  options: RunOptions,
  work: (workspace: Workspace) => Promise<Result>,
  from: Phase = 'label',
): Promise<Result> {
  await checkModels(options.config);
  const workspace = Workspace.open(options, from);
  let result: Result;
  try {
    result = await work(workspace);
  } catch (error) {
    if (error instanceof Stopped) await remember(workspace);
    await workspace.close(true);
    throw error;
  }
  await remember(workspace);
  await workspace.close();
  return result;
}

/** Keep what the phases took, for the plans of runs like this one. */
async function remember({ config, store }: Workspace): Promise<void> {
  if (!remembersRates()) return;
  const { solver } = modelFolders(config);
  rememberRates(config, basisOf(store, config, solver === null ? null : await Tokenizer.open(solver)));
}

/**
 * Work on a later phase in the folder of a run that has been begun, or that the phase itself can begin. With `fresh` that phase and what comes after it start over, with new
 * settings if theirs have changed; what they build on stays.
 * @throws UserError, before anything is written or removed, when the run is not begun or its earlier settings were others
 */
export async function inBegunRun<Result>(
  options: RunOptions,
  phase: Exclude<Phase, 'label'>,
  work: (workspace: Workspace) => Promise<Result>,
): Promise<Result> {
  const { folder, config } = options;
  if (isThere(join(folder, DATABASE_FILE))) return inWorkspace(options, work, phase);
  if (canBegin(config, phase)) return inWorkspace(options, work);
  throw new UserError(`${folder} holds no run yet: run 'propel label' first, or give the run's folder with --out`);
}

/** Whether the phase builds on none before it: no arm learns its reward from labels, or no arm is trained. */
function canBegin(config: Config, phase: Phase): boolean {
  if (phase === 'train-generator') return !phasesNeeded(config).labels;
  return phase === 'evaluate' && !Object.values(config.arms).some(isTrained);
}
