/** What memory a run takes at most: every model's graphs, and the largest of what they work with, for the longest texts that may come. */
import { factorCount, forwardBytes, parameterBytes, rolloutBytes, trainerBytes, updateBytes } from '../lm/footprint.js';
import type { AdapterLayout } from '../lm/adapter.js';
import type { DecoderConfig } from '../lm/config.js';
import { FORWARD_BATCH } from '../lm/engine.js';
import type { RolloutSize } from '../lm/footprint.js';
import type { BatchLimits } from '../lm/packing.js';
import { sharedTokens } from '../rl/micro-batches.js';
import { QUESTIONS_PER_ROLLOUT } from '../solver/local-solver.js';
import { armTrain, isTrained } from './arm-config.js';
import { RUN_MEMORY } from './compare-plan.js';
import { ensembleSize, phasesNeeded } from './config.js';
import type { Config } from './config.js';
import { policySetting } from './model-folders.js';
import type { PlannedModel } from './plan-models.js';
import type { Expectations } from './plan-work.js';
import { dealOut } from './propose.js';

/** One use of a model, in bytes: its weights as computed with, and what there is beside them. */
export interface UseMemory {
  readonly use: 'hidden' | 'rollout' | 'update';
  /** Sequences at once and their longest, for people: `32 sequences of 1,500 tokens`. */
  readonly sequences: number;
  readonly tokens: number;
  readonly weights: number;
  readonly activations: number;
  readonly cache: number;
  readonly optimiser: number;
  readonly gradients: number;
  /** All of it. */
  readonly total: number;
  /** Most sequences at once that fit beside the rest of the run; null without a budget, 0 when none does. */
  readonly sequencesThatFit: number | null;
}

export interface ModelMemory {
  /** Graphs of the model that a whole run holds at once, each with weights of its own. */
  readonly graphs: number;
  readonly resident: number;
  readonly uses: readonly UseMemory[];
}

export interface RunMemory {
  /** One a model, in the plan's order; null for a model of which nothing is known. */
  readonly models: readonly (ModelMemory | null)[];
  /** Node.js, ONNX Runtime and the sandbox. */
  readonly process: number;
  /** All graphs' weights. */
  readonly resident: number;
  /** The largest of what a use works with. */
  readonly working: number;
  readonly total: number;
  readonly budget: number | null;
  /** Null without a budget, or when a model is unknown. */
  readonly fits: boolean | null;
}

/** What one use needs beside the weights. */
interface Need {
  readonly use: UseMemory['use'];
  readonly sequences: number;
  readonly tokens: number;
  readonly bytes: (sequences: number) => Pick<UseMemory, 'activations' | 'cache' | 'optimiser' | 'gradients'>;
}

/** @param budget bytes; null: none */
export function planMemory(
  config: Config,
  models: readonly PlannedModel[],
  expected: Expectations,
  budget: number | null,
): RunMemory {
  const known = models.map((model) => model.config && { model: model.config, uses: usesOf(config, model, expected) });
  const process = RUN_MEMORY + (config.sandbox.workers - 1) * config.domain.limits.memoryMiB * 2 ** 20;
  const resident = known.reduce((sum, one) => sum + (one ? one.uses.graphs * weightBytes(one.model) : 0), 0);
  const left = budget === null ? null : budget - process - resident;
  const memory = known.map((one): ModelMemory | null => {
    if (!one) return null;
    const weights = weightBytes(one.model);
    const uses = one.uses.needs.map(({ use, sequences, tokens, bytes }): UseMemory => {
      const needed = bytes(sequences);
      const total = weights + workingBytes(needed);
      const sequencesThatFit = left === null ? null : mostSequences((n) => workingBytes(bytes(n)), left);
      return { use, sequences, tokens, weights, ...needed, total, sequencesThatFit };
    });
    return { graphs: one.uses.graphs, resident: one.uses.graphs * weights, uses };
  });
  const working = Math.max(0, ...memory.flatMap((one) => one?.uses.map((use) => use.total - use.weights) ?? []));
  const total = process + resident + working;
  const fits = budget === null || memory.includes(null) ? null : total <= budget;
  return { models: memory, process, resident, working, total, budget, fits };
}

/** As they are computed with: float32, whatever they are stored in. */
const weightBytes = (config: DecoderConfig): number => parameterBytes(config).float32;

const workingBytes = (need: ReturnType<Need['bytes']>): number =>
  need.activations + need.cache + need.optimiser + need.gradients;

/** Largest n with bytes(n) ≤ left; bytes grow with n. */
function mostSequences(bytes: (n: number) => number, left: number): number {
  let [fits, fails] = [0, 1];
  while (bytes(fails) <= left && fails < 2 ** 20) [fits, fails] = [fails, 2 * fails];
  while (fails - fits > 1) {
    const middle = Math.floor((fits + fails) / 2);
    if (bytes(middle) <= left) fits = middle;
    else fails = middle;
  }
  return fits;
}

function usesOf(config: Config, { settings, config: model }: PlannedModel, expected: Expectations) {
  const decoder = model!;
  const needs: Need[] = [];
  let graphs = 0;
  const trained = trainedBy(config, settings);
  if (settings.some((setting) => setting.endsWith('policy'))) {
    needs.push(rolloutNeed(decoder, policyRollout(config, expected)));
    // Without an adapter, and with each layout; where one is trained, its update and the reference of its KL.
    graphs += 1 + trained.length + (trained.length > 0 ? 2 : 0);
    const heaviest = trained.toSorted((a, b) => factorCount(decoder, b) - factorCount(decoder, a))[0];
    if (heaviest) needs.push(updateNeed(config, decoder, heaviest, expected));
  }
  if (settings.includes('models.reference') && phasesNeeded(config).probes) {
    const tokens = Math.min(decoder.maxPositions, expected.questionTokens + config.policy.maxNewTokens);
    const bytes = (n: number) => ({ ...NO_NEED, activations: forwardBytes(decoder, n, tokens) });
    const sequences = sequencesWithin(FORWARD_BATCH, tokens);
    needs.push({ use: 'hidden', sequences, tokens, bytes });
    // All candidate layers for training, then those of each probe that is used.
    graphs += 1 + Math.min(config.probe.features.length, ensembleSize(config));
  }
  if (settings.includes('models.solver')) {
    needs.push(rolloutNeed(decoder, solverRollout(config, expected)));
    graphs += 1;
  }
  return { graphs, needs };
}

/** Sequences of the longest text in one batch. */
const sequencesWithin = ({ rows, tokens }: BatchLimits, longest: number): number =>
  Math.max(1, Math.min(rows, Math.floor(tokens / longest)));

const NO_NEED = { activations: 0, cache: 0, optimiser: 0, gradients: 0 };

/** The distinct adapters that are trained on the model of those settings. */
function trainedBy(config: Config, settings: readonly string[]): AdapterLayout[] {
  const layouts = Object.entries(config.arms).flatMap(([name, arm]) => {
    const setting = arm.policy === undefined ? 'models.policy' : policySetting(name);
    return isTrained(arm) && settings.includes(setting) ? [armTrain(config.train, arm).lora] : [];
  });
  return [...new Map(layouts.map((layout) => [JSON.stringify(layout), layout])).values()];
}

/** The largest rollout of one task type. */
function policyRollout(config: Config, { promptTokens }: Expectations): RolloutSize {
  const batches = [
    phasesNeeded(config).labels ? config.label.batch : 0,
    config.evaluate.batch,
    ...Object.values(config.arms).map((arm) => (isTrained(arm) ? armTrain(config.train, arm).batch : 0)),
  ];
  const samples = Math.max(...batches.flatMap((batch) => dealOut(batch, config.domain.types).map(({ size }) => size)));
  return { prompts: 1, promptTime: promptTokens, samples, newTokens: config.policy.maxNewTokens };
}

/** As many questions at once as the local solver takes, each with all its attempts. */
function solverRollout(config: Config, { questionTokens }: Expectations): RolloutSize {
  return {
    prompts: QUESTIONS_PER_ROLLOUT,
    promptTime: questionTokens + config.policy.maxNewTokens,
    samples: QUESTIONS_PER_ROLLOUT * config.band.of,
    newTokens: config.solver.maxNewTokens,
  };
}

function rolloutNeed(decoder: DecoderConfig, size: RolloutSize): Need {
  const perPrompt = size.samples / size.prompts;
  return {
    use: 'rollout',
    sequences: size.samples,
    tokens: size.promptTime + size.newTokens,
    bytes: (samples) => {
      const prompts = Math.ceil(samples / perPrompt);
      return { ...NO_NEED, ...rolloutBytes(decoder, { ...size, prompts, samples }) };
    },
  };
}

function updateNeed(
  { train, policy }: Config,
  decoder: DecoderConfig,
  layout: AdapterLayout,
  { promptTokens }: Expectations,
): Need {
  const tokens = promptTokens + policy.maxNewTokens;
  const prefix = sharedTokens(promptTokens);
  const own = tokens - prefix;
  const trainer = trainerBytes(decoder, layout);
  const bytes = (n: number) => ({
    ...trainer,
    cache: 0,
    activations: updateBytes(decoder, layout, n, own, prefix),
  });
  const limits = { rows: Math.min(train.microBatch, train.batch), tokens: train.microBatchTokens - prefix };
  return { use: 'update', sequences: sequencesWithin(limits, own), tokens, bytes };
}
