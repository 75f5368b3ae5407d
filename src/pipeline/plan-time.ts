/** How long a run takes, about: by what this machine multiplies in a second, or by what a run before it took. */
import { cacheBytesPerToken, multiplyingParameters, operatorCount } from '../lm/footprint.js';
import type { DecoderConfig } from '../lm/config.js';
import type { MachineRates } from '../onnx/machine-rates.js';
import { QUESTIONS_PER_ROLLOUT } from '../solver/local-solver.js';
import { armTrain, isTrained } from './arm-config.js';
import type { Config } from './config.js';
import type { RunRates, SandboxRates } from './plan-rates.js';
import type { Expectations, Work } from './plan-work.js';
import { tokensOf, workTrain } from './plan-work.js';

/** A rollout lasts as long as its longest completion, so many times the mean: 1.6 to 3.4 in batches of the micro-world. */
const LONGEST = 2.5;
/** Rows of a product that keeps a processor busy. */
export const MANY_ROWS = 512;
/** Reads of a growing cache in a step, and the copies that make it longer, in bytes moved a byte held. */
const CACHE_TRAFFIC = 3;
/** Forward passes that a backward one through frozen weights costs. */
const BACKWARD = 1;

/** Models whose time is counted; null for one that is not here or of which nothing is known. */
export interface TimedModels {
  readonly policy: DecoderConfig;
  readonly reference: DecoderConfig;
  /** Null for an endpoint. */
  readonly solver: DecoderConfig | null;
}

/** The rows that have to be timed for a configuration. */
export function timedRows(config: Config): number[] {
  const { types } = config.domain;
  const trained = Object.values(config.arms).filter(isTrained);
  const batches = [
    config.label.batch,
    config.evaluate.batch,
    ...trained.map((arm) => armTrain(config.train, arm).batch),
  ];
  const attempts = Math.min(QUESTIONS_PER_ROLLOUT, config.label.batch) * config.band.of;
  return [1, MANY_ROWS, attempts, ...batches.map((batch) => Math.ceil(batch / types.length))];
}

/** Seconds of one piece of work; the attempts of a solver behind an endpoint are not counted. */
export function secondsOnMachine(
  config: Config,
  work: Work,
  expected: Expectations,
  models: TimedModels,
  machine: MachineRates,
  sandbox: SandboxRates,
): number {
  const tokens = tokensOf(config, work, expected);
  const kinds = config.domain.types.length;
  const { policy, reference, solver } = models;
  const reading = (model: DecoderConfig, count: number) =>
    count * multiplyingParameters(model) * (secondsPerParameter(machine, MANY_ROWS) / MANY_ROWS);
  let seconds = work.checks * sandbox.check + work.trials * sandbox.grade;
  if (work.generations > 0) {
    const rollouts = work.batches * kinds;
    const samples = work.generations / rollouts;
    const { taskTokens: mean, promptTokens: context } = expected;
    seconds += reading(policy, tokens.prompts);
    const one = { prompts: 1, samples, context, mean, most: config.policy.maxNewTokens };
    seconds += rollouts * writing(policy, machine, one);
  }
  if (solver !== null && work.trials > 0) {
    const rows = Math.min(QUESTIONS_PER_ROLLOUT * config.band.of, work.trials);
    const { questionTokens, taskTokens, answerTokens } = expected;
    const context = questionTokens + taskTokens;
    const attempts = { prompts: rows / config.band.of, samples: rows, context };
    const one = { ...attempts, mean: answerTokens, most: config.solver.maxNewTokens };
    seconds += reading(solver, tokens.questions) + (work.trials / rows) * writing(solver, machine, one);
  }
  seconds += reading(reference, tokens.reference);
  // Forward once for the KL's reference, then forward and backward each time.
  const passes = work.updated > 0 ? 1 / workTrain(config, work).updates + 1 + BACKWARD : 0;
  return seconds + passes * reading(policy, tokens.trained);
}

interface Writing {
  readonly prompts: number;
  readonly samples: number;
  /** Tokens of a prompt. */
  readonly context: number;
  /** Tokens that are written, in the mean and at most. */
  readonly mean: number;
  readonly most: number;
}

/** One rollout: as many steps as its longest completion, each of which reads all weights, the prompts and what was written before. */
function writing(model: DecoderConfig, machine: MachineRates, rollout: Writing): number {
  const { prompts, samples, context, mean, most } = rollout;
  const steps = Math.min(most, LONGEST * mean);
  const secondsPerByte = secondsPerParameter(machine, 1) / Float32Array.BYTES_PER_ELEMENT;
  const bytes = (prompts * context + CACHE_TRAFFIC * samples * (steps / 2)) * cacheBytesPerToken(model);
  const step =
    multiplyingParameters(model) * secondsPerParameter(machine, samples) +
    bytes * secondsPerByte +
    operatorCount(model) * machine.secondsPerOperator;
  return steps * step;
}

/** By the timing with the nearest number of rows, more rows in proportion. */
function secondsPerParameter({ secondsPerParameter: timed }: MachineRates, rows: number): number {
  const counts = [...timed.keys()].toSorted((a, b) => a - b);
  const at = counts.find((count) => count >= rows) ?? counts.at(-1)!;
  return timed.get(at)! * Math.max(1, rows / at);
}

/** Seconds of one piece of work at a run's rates; null where the run has done nothing of the kind. */
export function secondsLikeRun({ arms }: Config, work: Work, rates: RunRates): number | null {
  const { phase } = work;
  const rate = phase === 'train-generator' ? (rates.training.get(arms[work.arm]!.reward) ?? null) : rates[phase];
  return rate === null ? null : rate * unitsOf(work);
}

/** What a phase's rate is of: labels for the probe, trials where tasks are re-scored, else generations. */
function unitsOf({ phase, generations, readings, trials }: Work): number {
  if (phase === 'train-probe') return readings;
  return phase === 're-score' ? trials : generations;
}
