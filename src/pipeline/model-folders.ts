/** Which checkpoint folders a configuration names, and what was in them when the run began. */
import { UserError } from '../errors.js';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ADAPTER_CONFIG, modelHash } from '../lm/adapter-folder.js';
import type { Config } from './config.js';
import { adapterOf, baseOf } from './model-setting.js';
import type { ModelSetting } from './model-setting.js';
import { findModel } from './models.js';
import { packageRoot } from './paths.js';

const ROLES = ['policy', 'reference', 'solver'] as const satisfies readonly (keyof Config['models'])[];
type Role = (typeof ROLES)[number];

export interface ModelFolders {
  readonly policy: string;
  readonly reference: string;
  /** Null where an endpoint takes its place. */
  readonly solver: string | null;
  /** Arm → its own generator, of the arms that have one. */
  readonly armPolicies: ReadonlyMap<string, string>;
  /** Setting → the PEFT folder of the adapter on the model that it names, of those that have one. */
  readonly adapters: Readonly<Record<string, string>>;
}

/** The setting that names an arm's own generator. */
export const policySetting = (arm: string): string => `arms.${arm}.policy`;

/** The absolute folder of each model. @throws UserError for one that is neither a folder nor in the hub's cache. */
export function modelFolders({ models, arms }: Pick<Config, 'models' | 'arms'>): ModelFolders {
  const adapters: Record<string, string> = {};
  const find = (model: ModelSetting, setting: string): string => {
    const { folder, adapter } = placeOf(model, setting);
    if (adapter !== null) adapters[setting] = adapter;
    return folder;
  };
  const own = Object.entries(arms).flatMap(([arm, { policy }]) =>
    policy === undefined ? [] : [[arm, find(policy, policySetting(arm))] as const],
  );
  return {
    policy: find(models.policy, 'models.policy'),
    reference: find(models.reference, 'models.reference'),
    solver: models.solver === null ? null : find(models.solver, 'models.solver'),
    armPolicies: new Map(own),
    adapters,
  };
}

/** Where a model lies: its checkpoint, and the adapter on it. */
interface ModelPlace {
  readonly folder: string;
  readonly adapter: string | null;
}

/** @throws UserError for a model that is neither a folder nor in the hub's cache, and an adapter that is none */
export function placeOf(model: ModelSetting, setting: string): ModelPlace {
  const adapter = adapterOf(model);
  return {
    folder: findModel(baseOf(model), adapter === null ? setting : `${setting}.base`),
    adapter: adapter === null ? null : findAdapter(adapter, `${setting}.adapter`),
  };
}

/** The folder of an adapter, from the working folder or the package. */
function findAdapter(name: string, setting: string): string {
  const folder = [resolve(name), resolve(packageRoot(), name)].find((one) => existsSync(join(one, ADAPTER_CONFIG)));
  if (folder !== undefined) return folder;
  throw new UserError(
    `${setting} ${name} is no PEFT folder: give the path of one that holds ${ADAPTER_CONFIG}, from the working folder or from ${packageRoot()}`,
  );
}

/** What the models' weights are: kept with the run, which goes on with no others. */
export interface ModelHashes {
  readonly modelHashes: Readonly<Partial<Record<Role, string>>>;
  /** Arm → its own policy's. */
  readonly policyHashes: Readonly<Record<string, string>>;
}

export function hashModels({ armPolicies, adapters, ...models }: ModelFolders): ModelHashes {
  const hash = (folder: string, setting: string): string => modelHash(folder, adapters[setting] ?? null);
  return {
    modelHashes: {
      policy: hash(models.policy, 'models.policy'),
      reference: hash(models.reference, 'models.reference'),
      ...(models.solver === null ? {} : { solver: hash(models.solver, 'models.solver') }),
    },
    policyHashes: Object.fromEntries([...armPolicies].map(([arm, folder]) => [arm, hash(folder, policySetting(arm))])),
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
