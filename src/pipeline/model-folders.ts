/** Which checkpoint folders a configuration names, and what was in them when the run began. */
import { UserError } from '../errors.js';
import { checkpointHash } from '../lm/checkpoint.js';
import type { Config } from './config.js';
import { findModel } from './models.js';

const ROLES = ['policy', 'reference', 'solver'] as const satisfies readonly (keyof Config['models'])[];
type Role = (typeof ROLES)[number];

export interface ModelFolders {
  readonly policy: string;
  readonly reference: string;
  /** Null where an endpoint takes its place. */
  readonly solver: string | null;
  /** Arm → its own generator, of the arms that have one. */
  readonly armPolicies: ReadonlyMap<string, string>;
}

/** The setting that names an arm's own generator. */
export const policySetting = (arm: string): string => `arms.${arm}.policy`;

/** The absolute folder of each model. @throws UserError for one that is neither a folder nor in the hub's cache. */
export function modelFolders({ models, arms }: Config): ModelFolders {
  const own = Object.entries(arms).flatMap(([arm, { policy }]) =>
    policy === undefined ? [] : [[arm, findModel(policy, policySetting(arm))] as const],
  );
  return {
    policy: findModel(models.policy, 'models.policy'),
    reference: findModel(models.reference, 'models.reference'),
    solver: models.solver === null ? null : findModel(models.solver, 'models.solver'),
    armPolicies: new Map(own),
  };
}

/** What the models' weights are: kept with the run, which goes on with no others. */
export interface ModelHashes {
  readonly modelHashes: Readonly<Partial<Record<Role, string>>>;
  /** Arm → its own policy's. */
  readonly policyHashes: Readonly<Record<string, string>>;
}

export function hashModels({ armPolicies, ...models }: ModelFolders): ModelHashes {
  return {
    modelHashes: {
      policy: checkpointHash(models.policy),
      reference: checkpointHash(models.reference),
      ...(models.solver === null ? {} : { solver: checkpointHash(models.solver) }),
    },
    policyHashes: Object.fromEntries([...armPolicies].map(([arm, folder]) => [arm, checkpointHash(folder)])),
  };
}

/** @throws UserError when weights are not those that the run in `run` began with. */
export function requireSameModels(folders: ModelFolders, begun: ModelHashes, run: string): void {
  const now = hashModels(folders);
  for (const role of ROLES) {
    requireSame(now.modelHashes[role], begun.modelHashes[role], `${folders[role]} is not the ${role} that ${run}`);
  }
  for (const [arm, folder] of folders.armPolicies) {
    requireSame(
      now.policyHashes[arm],
      begun.policyHashes[arm],
      `${folder} is not the policy of arm ${arm} that ${run}`,
    );
  }
}

function requireSame(now: string | undefined, begun: string | undefined, what: string): void {
  if (now !== begun) throw new UserError(`${what} was run with: its weights have changed`);
}
