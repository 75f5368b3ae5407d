/** A comparison: the same arms under several seeds, each seed a run of its own in one folder, and one report over all of them. */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { RunError, UserError } from '../errors.js';
import type { Comparison } from '../report/comparison.js';
import { changedKeys, describeChanges } from '../store/changed-settings.js';
import { DATABASE_FILE, makeRunFolder, removeEmptyFolders } from '../store/database.js';
import { writeFileAtomic } from '../store/files.js';
import { lockRunFolder } from '../store/lock.js';
import type { Json } from '../store/rows.js';
import { RunStore } from '../store/store.js';
import type { ComparisonSettings } from './compare-config.js';
import { runsAtOnce } from './compare-plan.js';
import { COMPARISON_FILE, reportComparison, seedFolder } from './compare-report.js';
import { PIPELINE_FILE } from './pipeline-file.js';
import { runSeeds } from './compare-seeds.js';
import type { SeedEnd, SeedRuns } from './compare-seeds.js';
import { runBytes } from './memory-check.js';
import { checkModels } from './preflight.js';
import { Stopped } from './workspace.js';

export interface CompareOptions extends Pick<SeedRuns, 'command' | 'progress' | 'signal'> {
  readonly settings: ComparisonSettings;
  /** Holds `seed-<n>/` for each seed, and the report. */
  readonly folder: string;
  /** Start every seed over. */
  readonly fresh: boolean;
}

/** What bad input ends a command with. */
const BAD_INPUT = 2;

/**
 * Run every seed that is not finished, and write `comparison.json` and `report.html` over those that are.
 * @throws Stopped when the user asks to stop; UserError or RunError, after the other seeds have finished, when a seed failed
 */
export async function compare(options: CompareOptions): Promise<Comparison> {
  const { settings, folder, fresh, signal } = options;
  const { config, seeds } = settings;
  await checkModels(config);
  if (!fresh) for (const seed of seeds) checkSettings(seedFolder(folder, seed), settings);
  const made = makeRunFolder(folder);
  const lock = lockRunFolder(folder);
  let isRefused = false;
  const pipeline = join(folder, PIPELINE_FILE);
  try {
    writeFileAtomic(pipeline, stringify(config));
    writeFileAtomic(join(folder, COMPARISON_FILE), comparisonFile(settings));
    const ends = await runSeeds({
      ...options,
      config,
      seeds,
      atOnce: runsAtOnce(config, seeds.length, settings.parallel, await runBytes(config)),
      folderOf: (seed) => seedFolder(folder, seed),
      argumentsOf: (seed) => {
        const out = seedFolder(folder, seed);
        return ['run', pipeline, '--seed', String(seed), '--out', out, ...(fresh ? ['--fresh'] : [])];
      },
    });
    if (signal.aborted) throw new Stopped();
    const failed = ends.filter(({ code }) => code !== 0);
    if (failed.length === ends.length) {
      // As of a run that is refused, nothing stays of a comparison of which no seed has begun.
      isRefused = seeds.every((seed) => !existsSync(seedFolder(folder, seed)));
      throw failure(failed, 'no seed has finished');
    }
    const missing = failed.map(({ seed, why }) => ({ seed, why }));
    const comparison = reportComparison(folder, missing);
    if (failed.length > 0) throw failure(failed, 'the other seeds have finished, and the report is over them');
    return comparison;
  } finally {
    if (isRefused) for (const file of [PIPELINE_FILE, COMPARISON_FILE]) rmSync(join(folder, file), { force: true });
    lock.release();
    if (isRefused) removeEmptyFolders(made);
  }
}

/** The folder's own configuration: what it was made from, resolved, so that `propel compare` goes on from it and `propel run` from its base. */
function comparisonFile({ seeds, parallel, claims }: ComparisonSettings): string {
  return stringify({ extends: PIPELINE_FILE, seeds, parallel, claims });
}

/** @throws UserError, before anything is written, when a seed has been run with other settings */
function checkSettings(folder: string, { config }: ComparisonSettings): void {
  if (!existsSync(join(folder, DATABASE_FILE))) return;
  const store = RunStore.read(folder);
  try {
    const run = store.run();
    if (run === null) return;
    const { seed: _, ...settings } = JSON.parse(JSON.stringify(config)) as { [key: string]: Json };
    // What else the run has recorded beside its settings, hashes of models and the like, it checks itself.
    const held = Object.fromEntries(Object.keys(settings).map((key) => [key, run.config[key] ?? null]));
    const changed = changedKeys(held, settings);
    if (changed.length === 0) return;
    throw new UserError(
      `${folder} holds a run with other settings (${describeChanges(changed)}); ` +
        'give the settings it was begun with, start over with --fresh, or choose another folder with --out',
    );
  } finally {
    store.close();
  }
}

/** One line over all seeds that failed; those that failed alike are named together. */
function failure(failed: readonly SeedEnd[], otherwise: string): UserError | RunError {
  const alike = new Map<string, number[]>();
  for (const { seed, why } of failed) alike.set(why, [...(alike.get(why) ?? []), seed]);
  const told = [...alike].map(([why, seeds]) => `${seeds.length > 1 ? 'seeds' : 'seed'} ${seeds.join(', ')}: ${why}`);
  const message = `${told.join('; ')} (${otherwise}; the same command tries again)`;
  return failed.every(({ code }) => code === BAD_INPUT) ? new UserError(message) : new RunError(message);
}
