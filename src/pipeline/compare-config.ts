/** A comparison's configuration: a run's, with the seeds to run it under and how many at once. */
import * as z from 'zod';
import { CLAIM_THRESHOLDS } from '../report/comparison-claims.js';
import type { ClaimThresholds } from '../report/comparison-claims.js';
import type { ArmSetup } from '../report/comparison.js';
import { isTrained } from './arm-config.js';
import type { Arm } from './arm-config.js';
import { loadSettings } from './config-file.js';
import type { GivenOverride } from './config-file.js';
import { configSchema } from './config.js';
import type { Config } from './config.js';
import { nameOf } from './model-setting.js';

const seedsSchema = z
  .array(z.int().min(0))
  .nonempty()
  .refine((seeds) => new Set(seeds).size === seeds.length, 'names a seed twice')
  .default([0, 1, 2])
  .describe('Seeds of the runs, instead of seed; each run is a folder of its own, seed-<n>.');

const share = z.number().min(0).max(1);
const claimsSchema = z
  .strictObject({
    seeds: z.int().positive().default(CLAIM_THRESHOLDS.seeds).describe('Fewest seeds.'),
    generations: z
      .int()
      .positive()
      .default(CLAIM_THRESHOLDS.generations)
      .describe('Fewest fresh generations of an arm and seed.'),
    timesBase: z
      .number()
      .positive()
      .default(CLAIM_THRESHOLDS.timesBase)
      .describe('Of a probe arm: mean frontier rate over its base’s.'),
    lowEndTimesBase: z
      .number()
      .positive()
      .default(CLAIM_THRESHOLDS.lowEndTimesBase)
      .describe('Of a probe arm: low end of the pooled 95% interval over its base’s pooled frontier rate.'),
    timesBaseOfValid: z
      .number()
      .positive()
      .default(CLAIM_THRESHOLDS.timesBaseOfValid)
      .describe('Of the single probe: mean in band / valid over its base’s.'),
    shareOfLift: share
      .default(CLAIM_THRESHOLDS.shareOfLift)
      .describe(
        'Share of another arm’s lift that counts as that lift: against the solver in the loop and against mode collapse.',
      ),
    trialsSlack: z
      .number()
      .min(1)
      .default(CLAIM_THRESHOLDS.trialsSlack)
      .describe('Solver trials over those of the solver in the loop that still count as matched.'),
    alike: share
      .default(CLAIM_THRESHOLDS.alike)
      .describe('Two rates are alike when the 95% interval of their difference lies within this, either way.'),
  })
  .prefault({})
  .describe('What propel compare asks of the numbers before it says that a claim holds.');

/**
 * A run's settings and a comparison's. There is no setting for what an arm is compared with: that is the first arm with `reward: none`
 * and the same policy.
 */
const comparisonSchema = configSchema
  .safeExtend({
    seeds: seedsSchema,
    parallel: z
      .union([z.literal('auto'), z.int().positive()], 'give auto or a whole number from 1')
      .default('auto')
      .describe('Runs at once; auto: as many as processors, engine.threads and memory allow.'),
    claims: claimsSchema,
  })
  .superRefine(({ arms }, context) => {
    for (const [name, arm] of Object.entries(arms)) {
      if (baseOf(arms, arm) !== undefined) continue;
      const what = arm.policy === undefined ? "the run's own policy" : `the policy ${nameOf(arm.policy)}`;
      context.addIssue({
        code: 'custom',
        path: ['arms', name],
        message: `is compared with nothing: add an arm with reward none and ${what}`,
      });
    }
    if (baseOf(arms, {}) === undefined && Object.values(arms).every(({ policy }) => policy)) {
      context.addIssue({
        code: 'custom',
        path: ['arms'],
        message: "name an arm with reward none and the run's own policy",
      });
    }
  });

export interface ComparisonSettings {
  /** As every seed runs it. */
  readonly config: Config;
  readonly seeds: readonly number[];
  readonly parallel: 'auto' | number;
  readonly claims: ClaimThresholds;
}

/** Read a comparison's file and what it extends. @throws UserError as for a run's configuration */
export function loadComparison(path: string, overrides: readonly GivenOverride[] = []): ComparisonSettings {
  const { seeds, parallel, claims, ...config } = loadSettings(path, overrides, comparisonSchema);
  return { config, seeds, parallel, claims };
}

/** The schema of every setting that a file can hold, for `propel config --schema`. */
export function documentedSchema(): unknown {
  const documented = comparisonSchema.safeExtend({
    extends: z
      .string()
      .optional()
      .describe(
        'Another YAML file, from this file’s folder or a pipeline of the package, whose settings this one changes: maps merge key by key, lists and values replace, and null drops an arm.',
      ),
    seeds: seedsSchema.describe(`Of propel compare only. ${seedsSchema.description}`),
    claims: claimsSchema.describe(`Of propel compare only. ${claimsSchema.description}`),
  });
  return z.toJSONSchema(documented, { io: 'input' });
}

/** What each arm is, for the report: the run's own base first among the untrained. */
export function armSetups(arms: Config['arms']): ArmSetup[] {
  return Object.entries(arms).map(([name, arm]) => ({
    name,
    reward: arm.reward,
    policy: arm.policy === undefined ? null : nameOf(arm.policy),
    base: baseOf(arms, arm)!,
    variation: variationOf(arm),
  }));
}

function baseOf(arms: Config['arms'], { policy }: Pick<Arm, 'policy'>): string | undefined {
  return Object.entries(arms).find(([, arm]) => arm.reward === 'none' && isSame(arm.policy, policy))?.[0];
}

/** How an arm differs from the plain one of its reward, in words. */
function variationOf(arm: Arm): string[] {
  if (!isTrained(arm)) return [];
  const words: string[] = [];
  if (arm.reward === 'probe' && arm.probes > 1) words.push(`${arm.probes} probes`);
  if (arm.reward === 'probe' && arm.adversarial !== undefined) words.push('adversarial');
  if (arm.reward === 'solver' && arm.trials !== undefined) words.push(`${arm.trials} trials`);
  if (arm.crowding !== undefined) words.push(`crowding by ${arm.crowding.by}`);
  for (const [key, value] of Object.entries(arm.train ?? {})) {
    words.push(`${key} ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`);
  }
  return words;
}

function isSame(a: Arm['policy'], b: Arm['policy']): boolean {
  return a === b || (a !== undefined && b !== undefined && nameOf(a) === nameOf(b));
}
