/** What the passes of a run are cut by, so that it stays within `engine.memory`. */
import { UserError } from '../errors.js';
import type { AdapterLayout } from '../lm/adapter.js';
import { linearTypes, openCheckpoint } from '../lm/checkpoint.js';
import type { DecoderConfig } from '../lm/config.js';
import type { EngineSettings } from '../lm/engine.js';
import { trainerBytes, updateBytes } from '../lm/footprint.js';
import type { MicroBatchLimits } from '../rl/micro-batches.js';
import type { Config } from './config.js';
import { engineMemory, sizeText } from './memory-size.js';
import { planModels } from './plan-models.js';
import { passBytesOf, planOf, processBytes, weightBytes } from './resident-memory.js';

/** Bytes that one pass of a model may work with beside all weights; null without a budget. */
export async function passBytes(config: Config): Promise<number | null> {
  if (engineMemory(config.engine).budget === null) return null;
  return passBytesOf(config, await planModels(config, new Map()));
}

/**
 * The same where one model alone is held, with so many graphs.
 * @throws UserError when its weights alone take more than `engine.memory`
 */
export function modelPassBytes(config: Config, folder: string, graphs: number): number | null {
  const { budget } = engineMemory(config.engine);
  if (budget === null) return null;
  const checkpoint = openCheckpoint(folder);
  const { config: model } = checkpoint;
  const types = linearTypes(checkpoint);
  const weights = weightBytes(config.engine, { config: model, types });
  const held = processBytes(config) + weights * (planOf(config.engine, model).shareWeights ? 1 : graphs);
  if (budget > held) return budget - held;
  throw new UserError(
    `engine.memory: ${config.engine.memory} is less than the ${sizeText(held)} of process, sandbox and the model's weights; raise it`,
  );
}

/** The engine's settings, as those of a configuration give them. */
export function engineSettings(
  { provider, threads, dtype, memory }: Config['engine'],
  bytes: number | null,
): Pick<EngineSettings, 'provider' | 'threads' | 'dtype' | 'memory' | 'passBytes'> {
  return {
    provider,
    threads,
    dtype,
    memory: engineMemory({ memory }).setting,
    ...(bytes !== null && { passBytes: bytes }),
  };
}

/** Whether an update of so many sequences, the optimiser's state beside it, stays within a pass's bytes. */
export function updateFits(
  engine: Config['engine'],
  model: DecoderConfig,
  layout: AdapterLayout,
  bytes: number | null,
): MicroBatchLimits['fits'] {
  if (bytes === null) return undefined;
  const { optimiser, gradients } = trainerBytes(model, layout);
  const plan = planOf(engine, model);
  return (shape) => optimiser + gradients + updateBytes(model, layout, shape, plan) <= bytes;
}
