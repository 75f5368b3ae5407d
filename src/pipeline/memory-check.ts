/** Whether a run can stay within `engine.memory` at all, told before it begins. */
import { createCodeDomain, readTopicRules } from '../domain/azr/index.js';
import { UserError } from '../errors.js';
import { count } from '../report/format.js';
import type { Config } from './config.js';
import { lighterWeights } from './lighter-weights.js';
import { engineMemory, sizeText } from './memory-size.js';
import { findFile } from './paths.js';
import { expectations } from './plan-expectations.js';
import { planMemory } from './plan-memory.js';
import type { RunMemory, UseMemory } from './plan-memory.js';
import { planModels } from './plan-models.js';
import type { PlannedModel } from './plan-models.js';

/** @throws UserError when the weights alone, or one longest sequence of a use beside them, take more than `engine.memory` */
export async function checkMemory(config: Config): Promise<void> {
  const { budget } = engineMemory(config.engine);
  if (budget === null) return;
  const { models, memory } = await plannedMemory(config);
  const tooLarge = models
    .flatMap((model, i) =>
      (memory.models[i]?.uses ?? []).map((use) => ({ model, use, bytes: use.total - use.weights })),
    )
    .filter(({ use }) => use.sequencesThatFit === 0)
    .toSorted((a, b) => b.bytes - a.bytes)[0];
  if (!tooLarge) return;
  const { model, use, bytes } = tooLarge;
  const held = memory.process + memory.resident;
  const problem =
    budget <= held ? weightsProblem(models, memory) : useProblem(model, use, { left: budget - held, needed: bytes });
  const solver = use.use === 'rollout' && model.settings.includes('models.solver');
  const advice = [
    `give ${Math.ceil((held + bytes) / 2 ** 20)}MiB or more`,
    `lower policy.maxNewTokens${solver ? ' or solver.maxNewTokens' : ''}`,
    ...lighterWeights(config, models),
  ];
  throw new UserError(`engine.memory: ${config.engine.memory} ${problem}; ${alternatives(advice)}`);
}

/** What a run may take, about; with a budget all of that. */
export async function runBytes(config: Config): Promise<number> {
  return engineMemory(config.engine).budget ?? (await plannedMemory(config)).memory.total;
}

async function plannedMemory(config: Config): Promise<{ models: PlannedModel[]; memory: RunMemory }> {
  const models = await planModels(config, new Map());
  const domain = createCodeDomain(config.domain, readTopicRules(findFile(config.domain.topics, 'domain.topics')));
  const tokenizerOf = (setting: string) => models.find(({ settings }) => settings.includes(setting))?.tokenizer ?? null;
  return { models, memory: planMemory(config, models, expectations(config, domain, null, tokenizerOf), null) };
}

/** What is wrong with a budget that the weights alone pass, and what would help; null when they do not. */
export function weightsAlone(config: Config, models: readonly PlannedModel[], memory: RunMemory): string | null {
  const { budget, process, resident } = memory;
  if (budget === null || budget > process + resident) return null;
  return `${sizeText(budget)} ${weightsProblem(models, memory)}; ${alternatives(lighterWeights(config, models))}`;
}

function alternatives(advice: readonly string[]): string {
  return advice.length === 1 ? advice[0]! : `${advice.slice(0, -1).join(', ')}, or ${advice.at(-1)}`;
}

function weightsProblem(models: readonly PlannedModel[], memory: RunMemory): string {
  const each = models.flatMap(({ settings, name }, i) => {
    const model = memory.models[i];
    if (!model) return [];
    return [
      `${sizeText(model.resident)} of ${settings.join(' and ')} (${name})${model.graphs > 1 ? ` in ${model.graphs} graphs` : ''}`,
    ];
  });
  return `is less than process and sandbox take (${sizeText(memory.process)}) and the weights (${each.join(', ')})`;
}

const USES = { hidden: 'hidden states', rollout: 'a rollout', update: 'an update' };

function useProblem(
  { settings, name }: PlannedModel,
  { use, tokens }: UseMemory,
  { left, needed }: { readonly left: number; readonly needed: number },
): string {
  return `leaves ${sizeText(left)} beside process and weights, and ${USES[use]} of ${settings.join(' and ')} (${name}) needs ${sizeText(needed)} for one sequence of ${count(tokens)} tokens`;
}
