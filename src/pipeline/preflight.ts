/** What can be told before any work: whether the models' files are whole, belong together, and have what the settings ask of them. */
import { UserError } from '../errors.js';
import { factorShapes } from '../lm/adapter.js';
import { modelName } from '../lm/hub/cache.js';
import { openModelFiles } from '../lm/language-model.js';
import type { ModelFiles } from '../lm/language-model.js';
import type { Config } from './config.js';
import { findModel } from './models.js';

/** By role; without a solver where an endpoint takes its place. */
export type ModelFolders = Readonly<Record<'policy' | 'reference', string>> & { readonly solver?: string };

/** The absolute folder of each model. @throws UserError for one that is neither a folder nor in the hub's cache. */
export function modelFolders({ models }: Config): ModelFolders {
  return {
    policy: findModel(models.policy, 'models.policy'),
    reference: findModel(models.reference, 'models.reference'),
    ...(models.solver === null ? {} : { solver: findModel(models.solver, 'models.solver') }),
  };
}

/**
 * Check the models against the configuration, before a run folder is opened and before anything is computed.
 * @throws UserError naming the file or the setting
 */
export async function checkModels(config: Config): Promise<void> {
  const folders = modelFolders(config);
  const opened = new Map<string, ModelFiles>();
  for (const [role, folder] of Object.entries(folders)) {
    if (!opened.has(folder)) opened.set(folder, await openModel(role, folder));
  }
  checkSampling('policy', config.policy, folders.policy, opened.get(folders.policy)!);
  checkTargets(config, opened.get(folders.policy)!);
  if (folders.solver !== undefined) {
    checkSampling('solver', config.solver, folders.solver, opened.get(folders.solver)!);
    checkSolverRoom(config, opened.get(folders.solver)!, folders.solver);
  }
  checkLayers(config.probe.features, folders.reference, opened.get(folders.reference)!.config.layers);
}

async function openModel(role: string, folder: string): Promise<ModelFiles> {
  try {
    return await openModelFiles(folder);
  } catch (cause) {
    if (!(cause instanceof UserError)) throw cause;
    const advice = 'give the folder of a whole checkpoint, or fetch it again';
    throw new UserError(`models.${role}: ${cause.message}; ${advice}`, { cause });
  }
}

/** Stops are one token each, and what may be written fits into the model's positions beside at least one token of prompt. */
function checkSampling(
  role: 'policy' | 'solver',
  settings: Pick<Config['policy'], 'maxNewTokens' | 'stops'>,
  folder: string,
  files: ModelFiles,
): void {
  const { maxPositions } = files.config;
  if (settings.maxNewTokens >= maxPositions) {
    throw new UserError(
      `${role}.maxNewTokens: ${settings.maxNewTokens} tokens and a prompt are more than the ${maxPositions} positions of ${modelName(folder)}; lower it`,
    );
  }
  settings.stops.forEach((stop, i) => {
    try {
      files.tokenizer.singleToken(stop);
    } catch (cause) {
      throw new UserError(`${role}.stops.${i}: ${(cause as Error).message} (${folder})`, { cause });
    }
  });
}

/** A task as long as the generator may write it leaves the solver room for its answer; else a run would end at the first long one. */
function checkSolverRoom({ policy, solver }: Config, { config, tokenizer }: ModelFiles, folder: string): void {
  const around = tokenizer.question('', solver.chat).length;
  const most = policy.maxNewTokens + solver.maxNewTokens;
  if (most + around <= config.maxPositions) return;
  throw new UserError(
    `solver.maxNewTokens: a task of policy.maxNewTokens ${policy.maxNewTokens} and ${solver.maxNewTokens} more are ${most} tokens, ${modelName(folder)} has ${config.maxPositions} positions; lower either`,
  );
}

/** Every module that is to be adapted is one of the policy's own. */
function checkTargets({ train }: Config, { config }: ModelFiles): void {
  try {
    factorShapes(config, train.lora);
  } catch (cause) {
    if (!(cause instanceof UserError)) throw cause;
    throw new UserError(`train.lora.targets: ${cause.message}`, { cause });
  }
}

function checkLayers(features: Config['probe']['features'], folder: string, layers: number): void {
  for (const [i, spec] of features.entries()) {
    for (const [j, { layer }] of spec.entries()) {
      if (layer <= layers) continue;
      throw new UserError(
        `probe.features.${i}.${j}.layer: ${modelName(folder)} has no layer ${layer}; give 0, the embeddings, to ${layers}, its last layer`,
      );
    }
  }
}
