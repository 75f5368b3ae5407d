/** The report of a comparison's folder: comparison.json and report.html, over the results of its seeds. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import * as z from 'zod';
import { UserError } from '../errors.js';
import { comparisonClaims } from '../report/comparison-claims.js';
import { writeComparisonReport } from '../report/comparison-html.js';
import { compareArms } from '../report/comparison.js';
import type { Comparison } from '../report/comparison.js';
import type { Results } from '../report/results.js';
import { writeFileAtomic } from '../store/files.js';
import { armSetups, loadComparison } from './compare-config.js';
import { report } from './report.js';

/** The seeds, over {@link PIPELINE_FILE}. */
export const COMPARISON_FILE = 'comparison.yaml';

export function seedFolder(folder: string, seed: number): string {
  return join(folder, `seed-${seed}`);
}

export function isComparisonFolder(folder: string): boolean {
  return existsSync(join(folder, COMPARISON_FILE));
}

/**
 * Write `comparison.json` and `report.html` over the seeds that have results.
 * @param failed seeds whose results, if they have any, are of an earlier time
 * @throws UserError when no seed has results
 */
export function reportComparison(folder: string, failed: Comparison['missing'] = []): Comparison {
  const { config, seeds, claims } = loadComparison(join(folder, COMPARISON_FILE));
  const found = seeds.map((seed) => {
    const failure = failed.find((other) => other.seed === seed);
    return failure ?? seedResults(folder, seed, Object.keys(config.arms));
  });
  const missing = found.flatMap((result) => ('why' in result ? [result] : []));
  const runs = found.flatMap((result) => ('why' in result ? [] : [result]));
  if (runs.length === 0) {
    throw new UserError(
      `${folder}: no seed has been run to its end; 'propel compare ${join(folder, COMPARISON_FILE)}' goes on`,
    );
  }
  const measured = runs.map(({ seed }) => seed);
  const arms = compareArms(armSetups(config.arms), runs);
  const { seed: _, ...shared } = config;
  const comparison: Comparison = {
    name: config.name,
    seeds: measured,
    missing,
    band: config.band,
    claims: comparisonClaims(arms, measured, claims),
    arms,
    versions: runs[0]!.versions,
    config: shared,
  };
  writeFileAtomic(join(folder, 'comparison.json'), `${JSON.stringify(comparison, null, 2)}\n`);
  writeComparisonReport(join(folder, 'report.html'), comparison);
  return comparison;
}

/** Write the reports of every seed that has been evaluated again, then the comparison's. @throws UserError when there is none */
export function reportComparisonAgain(folder: string): Comparison {
  for (const seed of loadComparison(join(folder, COMPARISON_FILE)).seeds) {
    if (existsSync(join(seedFolder(folder, seed), 'results.json'))) report(seedFolder(folder, seed));
  }
  return reportComparison(folder);
}

/** A seed's results, or why there are none to compare. */
function seedResults(folder: string, seed: number, arms: readonly string[]): Results | Comparison['missing'][number] {
  const path = join(seedFolder(folder, seed), 'results.json');
  if (!existsSync(path)) return { seed, why: 'not run to its end' };
  const results = readResults(path);
  const absent = arms.filter((name) => !results.arms.some((arm) => arm.name === name));
  return absent.length === 0 ? results : { seed, why: `not evaluated: ${absent.join(', ')}` };
}

/** What a comparison reads of a seed's results. */
const resultsSchema = z.looseObject({
  seed: z.number(),
  versions: z.record(z.string(), z.unknown()),
  arms: z.array(
    z.looseObject({
      name: z.string(),
      seed: z.number(),
      n: z.number(),
      valid: z.number(),
      frontier: z.number(),
      frontierRate: z.number(),
      uniqueFrontierRate: z.number(),
      passCounts: z.array(z.number()),
      diversity: z.looseObject({}),
      solverTrials: z.object({ offline: z.number(), inLoop: z.number() }),
      byType: z.record(z.string(), z.looseObject({})),
      seconds: z.record(z.string(), z.number()),
    }),
  ),
});

/** @throws UserError when the file is damaged, or of another version that writes other results */
function readResults(path: string): Results {
  try {
    return resultsSchema.parse(JSON.parse(readFileSync(path, 'utf8'))) as unknown as Results;
  } catch (cause) {
    const what = cause instanceof z.ZodError ? `lacks ${cause.issues[0]!.path.join('.')}` : 'is damaged';
    throw new UserError(`${path} ${what}; write it again with 'propel report ${dirname(path)}'`, { cause });
  }
}
