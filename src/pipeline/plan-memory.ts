/** What memory a run takes at most: every model's graphs, and the largest of what they work with, for the longest texts that may come. */
import { forwardBytes, rolloutBytes, rolloutWorkingBytes, trainerBytes, updateBytes } from '../lm/footprint.js';
import type { DecoderConfig } from '../lm/config.js';
import { FORWARD_BATCH } from '../lm/engine.js';
import type { RolloutSize } from '../lm/footprint.js';
import { packByLength } from '../lm/packing.js';
import type { BatchLimits } from '../lm/packing.js';
import { rolloutParts } from '../lm/rollout-parts.js';
import { largest } from '../metrics/extremes.js';
import { sharedTokens } from '../rl/micro-batches.js';
import { QUESTIONS_PER_ROLLOUT } from '../solver/local-solver.js';
import { phasesNeeded } from './config.js';
import type { Config } from './config.js';
import { engineMemory } from './memory-size.js';
import type { PlannedModel } from './plan-models.js';
import type { Expectations } from './plan-work.js';
import { dealOut } from './propose.js';
import {
  armsOf,
  graphsOf,
  isPolicy,
  isProbed,
  passBytesOf,
  planOf,
  processBytes,
  residentBytes,
  trainedBy,
  weightBytes,
} from './resident-memory.js';
import type { SizedModel, TrainedArm } from './resident-memory.js';

/** One use of a model, in bytes: its weights as computed with, and what there is beside them. */
export interface UseMemory {
  readonly use: 'hidden' | 'rollout' | 'update';
  /** Of an update: the arms that are trained so; empty of what no arm's own settings change. */
  readonly arms: readonly string[];
  /** Sequences at once and their longest, for people: `32 sequences of 1,500 tokens`. */
  readonly sequences: number;
  /** Sequences that would be at once if `engine.memory` did not cut them. */
  readonly uncut: number;
  readonly tokens: number;
  /** Whether the longest has more tokens than the model has positions. */
  readonly beyondPositions: boolean;
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
  /** What it may take: as given, else as `engine.memory` says. */
  readonly budget: number | null;
  /** Null without a budget, or when a model is unknown. */
  readonly fits: boolean | null;
}

/** What one use needs beside the weights. */
interface Need {
  readonly use: UseMemory['use'];
  readonly arms?: readonly string[];
  readonly sequences: number;
  readonly tokens: number;
  readonly bytes: (sequences: number) => Pick<UseMemory, 'activations' | 'cache' | 'optimiser' | 'gradients'>;
  /** Sequences of the largest part when those of one pass are cut to so many bytes. */
  readonly cut: (passBytes: number) => number;
}

/** @param given bytes that the run may take; null: what `engine.memory` says, if it says a size */
export function planMemory(
  config: Config,
  models: readonly PlannedModel[],
  expected: Expectations,
  given: number | null,
): RunMemory {
  const process = processBytes(config);
  const resident = residentBytes(config, models);
  const budget = given ?? engineMemory(config.engine).budget;
  const left = budget === null ? null : budget - process - resident;
  const passBytes = passBytesOf(config, models);
  const memory = models.map((model): ModelMemory | null => {
    if (!model.config) return null;
    const weights = weightBytes(config.engine, model);
    const uses = needsOf(config, model, expected).map(
      ({ use, arms = [], sequences: uncut, tokens, bytes, cut }): UseMemory => {
        const sequences = passBytes === null ? uncut : cut(passBytes);
        const needed = bytes(sequences);
        const total = weights + workingBytes(needed);
        const sequencesThatFit = left === null ? null : mostSequences((n) => workingBytes(bytes(n)), left);
        const beyondPositions = tokens > model.config!.maxPositions;
        return { use, arms, sequences, uncut, tokens, beyondPositions, weights, ...needed, total, sequencesThatFit };
      },
    );
    const graphs = graphsOf(config, model);
    return { graphs, resident: graphs * weights, uses };
  });
  const working = Math.max(0, largest(memory.flatMap((one) => one?.uses.map((use) => use.total - use.weights) ?? [])));
  const total = process + resident + working;
  const fits = budget === null || memory.includes(null) ? null : total <= budget;
  return { models: memory, process, resident, working, total, budget, fits };
}

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

function needsOf(config: Config, { settings, config: model }: SizedModel, expected: Expectations): Need[] {
  const decoder = model!;
  const needs: Need[] = [];
  if (isPolicy(settings)) {
    needs.push(rolloutNeed(decoder, policyRollout(config, settings, expected)));
    for (const need of updateNeeds(config, settings, decoder, expected)) needs.push(need);
  }
  if (isProbed(config, settings)) {
    const tokens = Math.min(decoder.maxPositions, expected.questionTokens + config.policy.maxNewTokens);
    const bytes = (n: number) => ({ ...NO_NEED, activations: forwardBytes(decoder, n, tokens) });
    needs.push(batchNeed('hidden', FORWARD_BATCH, tokens, bytes));
  }
  if (settings.includes('models.solver')) needs.push(rolloutNeed(decoder, solverRollout(config, expected)));
  return needs;
}

/** Of batches by length, all of them of the longest text. */
function batchNeed(use: UseMemory['use'], limits: BatchLimits, tokens: number, bytes: Need['bytes']): Need {
  const longest = Array<number>(limits.rows).fill(tokens);
  const sequences = packByLength(longest, limits)[0]!.length;
  const cut = (passBytes: number) =>
    packByLength(longest, { ...limits, fits: (rows) => workingBytes(bytes(rows)) <= passBytes })[0]!.length;
  return { use, sequences, tokens, bytes, cut };
}

const NO_NEED = { activations: 0, cache: 0, optimiser: 0, gradients: 0 };

/** The largest rollout of one task type. */
function policyRollout(config: Config, settings: readonly string[], { promptTokens }: Expectations): RolloutSize {
  const labels = settings.includes('models.policy') && phasesNeeded(config).labels;
  const batches = [
    labels ? config.label.batch : 0,
    armsOf(config, settings).length > 0 ? config.evaluate.batch : 0,
    ...trainedBy(config, settings).map(({ train }) => train.batch),
  ];
  const samples = largest(batches.flatMap((batch) => dealOut(batch, config.domain.types).map(({ size }) => size)));
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
  const promptLengths = Array<number>(size.prompts).fill(size.promptTime);
  const shape = { promptLengths, groups: 1, perPrompt, maxNewTokens: size.newTokens };
  return {
    use: 'rollout',
    sequences: size.samples,
    tokens: size.promptTime + size.newTokens,
    bytes: (samples) => {
      const prompts = Math.ceil(samples / perPrompt);
      return { ...NO_NEED, ...rolloutBytes(decoder, { ...size, prompts, samples }) };
    },
    cut: (passBytes) => {
      const parts = rolloutParts(shape, (part) => rolloutWorkingBytes(decoder, part) <= passBytes);
      return largest(parts.map(({ prompts, samples }) => (prompts[1] - prompts[0]) * (samples[1] - samples[0])));
    },
  };
}

/** An update of each arm, those alike as one. */
function updateNeeds(
  config: Config,
  settings: readonly string[],
  decoder: DecoderConfig,
  expected: Expectations,
): Need[] {
  const alike = new Map<string, TrainedArm[]>();
  for (const one of trainedBy(config, settings)) {
    const { lora, microBatch, batch, microBatchTokens } = one.train;
    const key = JSON.stringify([lora, Math.min(microBatch, batch), microBatchTokens]);
    alike.set(key, [...(alike.get(key) ?? []), one]);
  }
  return [...alike.values()].map((arms) => updateNeed(config, decoder, arms, expected));
}

function updateNeed(
  { policy, engine }: Config,
  decoder: DecoderConfig,
  arms: readonly TrainedArm[],
  { promptTokens }: Expectations,
): Need {
  const { train } = arms[0]!;
  const tokens = promptTokens + policy.maxNewTokens;
  const prefix = sharedTokens(promptTokens);
  const own = tokens - prefix;
  const trainer = trainerBytes(decoder, train.lora);
  const bytes = (n: number) => ({
    ...trainer,
    cache: 0,
    activations: updateBytes(decoder, train.lora, { batch: n, time: own, prefix }, planOf(engine, decoder)),
  });
  const limits = { rows: Math.min(train.microBatch, train.batch), tokens: train.microBatchTokens - prefix };
  return { ...batchNeed('update', limits, own, bytes), tokens, arms: arms.map(({ arm }) => arm) };
}
