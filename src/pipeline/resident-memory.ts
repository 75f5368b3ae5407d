/** What a run holds in memory all the time, and what a budget leaves beside it. */
import { commonType } from '../lm/checkpoint.js';
import { parameterBytes } from '../lm/footprint.js';
import type { DecoderConfig } from '../lm/config.js';
import { memoryPlan } from '../lm/memory.js';
import type { MemoryPlan } from '../lm/memory.js';
import { computeType } from '../onnx/provider-types.js';
import type { ExecutionProvider } from '../onnx/session.js';
import { armTrain, isTrained } from './arm-config.js';
import type { Arm } from './arm-config.js';
import { RUN_MEMORY } from './compare-plan.js';
import { ensembleSize, phasesNeeded } from './config.js';
import type { Config } from './config.js';
import { engineMemory } from './memory-size.js';
import { policySetting } from './model-folders.js';
import type { PlannedModel } from './plan-models.js';
import type { TrainSettings } from './train-config.js';

/** A model's part in a memory's plan. */
export type SizedModel = Pick<PlannedModel, 'settings' | 'config' | 'types'>;

/** Bytes that one pass of a model may work with, so that the run stays within `engine.memory`; null where that is no size. */
export function passBytesOf(config: Config, models: readonly SizedModel[]): number | null {
  const { budget } = engineMemory(config.engine);
  return budget === null ? null : budget - processBytes(config) - residentBytes(config, models);
}

/** Node.js, ONNX Runtime and the sandbox. */
export function processBytes({ sandbox, domain }: Pick<Config, 'sandbox' | 'domain'>): number {
  return RUN_MEMORY + (sandbox.workers - 1) * domain.limits.memoryMiB * 2 ** 20;
}

export const residentBytes = (config: Config, models: readonly SizedModel[]): number =>
  models.reduce(
    (sum, model) => sum + (model.config ? graphsOf(config, model) * weightBytes(config.engine, model) : 0),
    0,
  );

/** In the type that they are computed with; of a model that is not here, stored in nobody knows what, `auto` is float32. */
export function weightBytes(engine: Config['engine'], { config, types }: Pick<SizedModel, 'config' | 'types'>): number {
  const type = computeType({ dtype: engine.dtype, stored: () => commonType(types ?? []) }, plannedProvider(engine));
  return parameterBytes(config!)[type];
}

/** Graphs of a model that a whole run holds at once, each with weights of its own. */
export function graphsOf(config: Config, { settings, config: decoder }: SizedModel): number {
  if (planOf(config.engine, decoder!).shareWeights) return 1;
  let graphs = 0;
  if (isPolicy(settings)) {
    const layouts = layoutsOf(config, settings);
    // Without an adapter, and with each layout; where one is trained, its update and the reference of its KL.
    graphs += 1 + layouts + (layouts > 0 ? 2 : 0);
  }
  // All candidate layers for training, then those of each probe that is used.
  if (isProbed(config, settings)) graphs += 1 + Math.min(config.probe.features.length, ensembleSize(config));
  if (settings.includes('models.solver')) graphs += 1;
  return graphs;
}

export const isPolicy = (settings: readonly string[]): boolean =>
  settings.some((setting) => setting.endsWith('policy'));

export const isProbed = (config: Config, settings: readonly string[]): boolean =>
  settings.includes('models.reference') && phasesNeeded(config).probes;

export const planOf = (engine: Config['engine'], decoder: DecoderConfig): MemoryPlan =>
  memoryPlan(decoder, engineMemory(engine).setting, plannedProvider(engine));

/** `auto` as cuda: both it and cpu share a large model's weights; with webgpu every graph has its own. */
export const plannedProvider = ({ provider }: Config['engine']): ExecutionProvider =>
  provider === 'auto' ? 'cuda' : provider;

/** An arm that is trained on a model, with the train section as it is for it. */
export interface TrainedArm {
  readonly arm: string;
  readonly train: TrainSettings;
}

/** The arms that are trained on the model of those settings. */
export function trainedBy(config: Config, settings: readonly string[]): TrainedArm[] {
  return armsOf(config, settings).flatMap(([arm, own]) =>
    isTrained(own) ? [{ arm, train: armTrain(config.train, own) }] : [],
  );
}

/** The arms whose generator is the model of those settings. */
export function armsOf({ arms }: Pick<Config, 'arms'>, settings: readonly string[]): [string, Arm][] {
  return Object.entries(arms).filter(([arm, own]) =>
    settings.includes(own.policy === undefined ? 'models.policy' : policySetting(arm)),
  );
}

/** Each distinct adapter is a graph of its own. */
function layoutsOf(config: Config, settings: readonly string[]): number {
  return new Set(trainedBy(config, settings).map(({ train }) => JSON.stringify(train.lora))).size;
}
