/** The whole of a run: label → train-probe → train-generator → evaluate → report. */
import type { Results } from '../report/results.js';
import { evaluate } from './evaluate.js';
import { label } from './label.js';
import { report } from './report.js';
import { trainGenerator } from './train-generator.js';
import { trainProbe } from './train-probe.js';
import { Workspace } from './workspace.js';
import type { RunOptions } from './workspace.js';

/** Run all phases that are not done, and write the report. @throws Stopped when the user asks to stop. */
export async function run(options: RunOptions): Promise<Results> {
  await inWorkspace(options, async (workspace) => {
    await label(workspace);
    await trainProbe(workspace);
    await trainGenerator(workspace);
    await evaluate(workspace);
  });
  return report(options.folder);
}

/** Work in a run folder, and close all that was opened whatever happens. */
export async function inWorkspace<Result>(
  options: RunOptions,
  work: (workspace: Workspace) => Promise<Result>,
): Promise<Result> {
  const workspace = Workspace.open(options);
  try {
    return await work(workspace);
  } finally {
    await workspace.close();
  }
}
