/** `engine.memory: SIZE`: whether a run can stay within it at all, and what its passes are cut by. */
import { createCodeDomain, readTopicRules } from '../domain/azr/index.js';
import { UserError } from '../errors.js';
import type { AdapterLayout } from '../lm/adapter.js';
import { openCheckpoint } from '../lm/checkpoint.js';
import type { DecoderConfig } from '../lm/config.js';
import type { EngineSettings } from '../lm/engine.js';
import { trainerBytes, updateBytes } from '../lm/footprint.js';
import type { BatchLimits } from '../lm/packing.js';
import { count } from '../report/format.js';
import type { Config } from './config.js';
import { engineMemory, sizeText } from './memory-size.js';
import { findFile } from './paths.js';
import { expectations } from './plan-expectations.js';
import { passBytesOf, planMemory, planOf, processBytes, weightBytes } from './plan-memory.js';
import type { RunMemory, UseMemory } from './plan-memory.js';
import { planModels } from './plan-models.js';
import type { PlannedModel } from './plan-models.js';

/** Bytes that one pass of a model may work with beside all weights; null without a budget. */
export async function passBytes(config: Config): Promise<number | null> {
  if (engineMemory(config.engine).budget === null) return null;
  return passBytesOf(config, await planModels(config, new Map()));
}

/**
 * The same where the reference alone is held, with a graph a probe.
 * @throws UserError when its weights alone take more than `engine.memory`
 */
export function scorerPassBytes(config: Config, reference: string, probes: number): number | null {
  const { budget } = engineMemory(config.engine);
  if (budget === null) return null;
  const { config: model } = openCheckpoint(reference);
  const held = processBytes(config) + weightBytes(model) * (planOf(config.engine, model).shareWeights ? 1 : probes);
  if (budget > held) return budget - held;
  throw new UserError(
    `engine.memory: ${config.engine.memory} is less than the ${sizeText(held)} of process, sandbox and the reference's weights; raise it`,
  );
}

/** The engine's settings, as those of a configuration give them. */
export function engineSettings(
  { provider, threads, memory }: Config['engine'],
  bytes: number | null,
): Pick<EngineSettings, 'provider' | 'threads' | 'memory' | 'passBytes'> {
  return { provider, threads, memory: engineMemory({ memory }).setting, ...(bytes !== null && { passBytes: bytes }) };
}

/** Whether an update of so many sequences, the optimiser's state beside it, stays within a pass's bytes. */
export function updateFits(
  engine: Config['engine'],
  model: DecoderConfig,
  layout: AdapterLayout,
  bytes: number | null,
): BatchLimits['fits'] {
  if (bytes === null) return undefined;
  const { optimiser, gradients } = trainerBytes(model, layout);
  const plan = planOf(engine, model);
  return (rows, longest) => optimiser + gradients + updateBytes(model, layout, [rows, longest], plan) <= bytes;
}

/** @throws UserError when the weights alone, or one longest sequence of a use beside them, take more than `engine.memory` */
export async function checkMemory(config: Config): Promise<void> {
  const { budget } = engineMemory(config.engine);
  if (budget === null) return;
  const models = await planModels(config, new Map());
  const domain = createCodeDomain(config.domain, readTopicRules(findFile(config.domain.topics, 'domain.topics')));
  const tokenizerOf = (setting: string) => models.find(({ settings }) => settings.includes(setting))?.tokenizer ?? null;
  const memory = planMemory(config, models, expectations(config, domain, null, tokenizerOf), budget);
  const left = budget - memory.process - memory.resident;
  if (left <= 0) throw new UserError(tooSmallForWeights(config, models, memory));
  for (const [i, model] of models.entries()) {
    for (const use of memory.models[i]?.uses ?? []) {
      if (use.sequencesThatFit === 0) throw new UserError(tooSmallForUse(config, model, use, left));
    }
  }
}

function tooSmallForWeights(config: Config, models: readonly PlannedModel[], memory: RunMemory): string {
  const each = models.flatMap(({ settings }, i) => {
    const model = memory.models[i];
    if (!model) return [];
    const graphs = model.graphs > 1 ? ` in ${model.graphs} graphs` : '';
    return [`${settings.join(' and ')} ${sizeText(model.resident)}${graphs}`];
  });
  const advice = [
    `raise engine.memory above ${sizeText(memory.process + memory.resident)}`,
    ...(config.engine.provider === 'cpu'
      ? []
      : ['set engine.provider: cpu, where the graphs of a large model share their weights']),
    'take smaller models',
    ...(config.models.solver === null ? [] : ['solver.endpoint instead of a local solver']),
  ];
  return `engine.memory: ${config.engine.memory} is less than process and sandbox (${sizeText(memory.process)}) and weights (${each.join(', ')}) take; ${either(advice)}`;
}

function tooSmallForUse(config: Config, model: PlannedModel, use: UseMemory, left: number): string {
  const solver = use.use === 'rollout' && model.settings.includes('models.solver');
  const what = { hidden: 'hidden states', rollout: 'a rollout', update: 'an update' }[use.use];
  const advice = [
    'raise engine.memory',
    `lower ${solver ? 'policy.maxNewTokens or solver.maxNewTokens' : 'policy.maxNewTokens'}`,
    'take a smaller model',
    ...(config.models.solver === null ? [] : ['solver.endpoint instead of a local solver']),
  ];
  return `engine.memory: ${config.engine.memory} leaves ${sizeText(left)} beside process and weights, and ${what} of ${model.settings.join(' and ')} (${model.name}) takes ${sizeText(use.total - use.weights)} for one sequence of ${count(use.tokens)} tokens; ${either(advice)}`;
}

const either = (advice: readonly string[]): string => `${advice.slice(0, -1).join(', ')}, or ${advice.at(-1)}`;
