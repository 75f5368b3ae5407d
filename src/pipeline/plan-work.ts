/** How much a run will do, counted from its configuration: generations, solver trials, tokens, updates. */
import { armTrain, isTrained } from './arm-config.js';
import type { Arm } from './arm-config.js';
import { phasesNeeded } from './config.js';
import type { Config } from './config.js';
import { sharedTokens } from '../rl/micro-batches.js';
import { rescoredSteps } from './evaluate.js';
import type { TrainSettings } from './train-config.js';

/** What cannot be counted before a run has been made. */
export interface Expectations {
  /** Valid tasks / generations. */
  readonly validity: { readonly label: number; readonly train: number; readonly evaluate: number };
  /** Tokens of a completion of the generator, and of an answer of the solver. */
  readonly taskTokens: number;
  readonly answerTokens: number;
  /** Tokens of the generator's prompt, and of what is around a task in a question. */
  readonly promptTokens: number;
  readonly questionTokens: number;
}

/** Work on one model, in tokens. */
export interface Work {
  readonly phase: 'label' | 'train-probe' | 'train-generator' | 'evaluate' | 're-score';
  readonly arm: string;
  /** Completions of the generator; expected, and what the settings allow at most. */
  readonly generations: number;
  readonly generationsAtMost: number;
  /** Attempts of the solver. */
  readonly trials: number;
  readonly trialsAtMost: number;
  /** Tasks that are checked in the sandbox. */
  readonly checks: number;
  /** Texts that the reference model reads. */
  readonly readings: number;
  /** Sequences through forward and backward passes. */
  readonly updated: number;
  /** Batches that the generations come in: each is a rollout a task type. */
  readonly batches: number;
}

const NONE = { generations: 0, trials: 0, checks: 0, readings: 0, updated: 0, batches: 0 };

/** The phases of a run in order, of those that its arms call for. */
export function planWork(config: Config, expected: Expectations): Work[] {
  const needed = phasesNeeded(config);
  return [
    ...(needed.labels ? [labelWork(config, expected)] : []),
    ...(needed.probes ? [probeWork(config)] : []),
    ...Object.entries(config.arms).flatMap(([arm, settings]) =>
      isTrained(settings) ? [trainWork(config, expected, arm, settings)] : [],
    ),
    ...Object.entries(config.arms).flatMap(([arm, settings]) => evaluateWork(config, expected, arm, settings)),
  ];
}

/** Whole batches until there are labels enough. */
function labelWork({ label, band }: Config, { validity }: Expectations): Work {
  const most = Math.ceil(label.maxGenerations / label.batch) * label.batch;
  const batches = Math.ceil(label.tasks / (validity.label * label.batch));
  const generations = Math.min(most, batches * label.batch);
  return {
    ...NONE,
    phase: 'label',
    arm: '',
    generations,
    generationsAtMost: most,
    trials: Math.round(generations * validity.label) * band.of,
    // The last batch may bring nothing but valid tasks.
    trialsAtMost: (label.tasks - 1 + label.batch) * band.of,
    checks: generations,
    batches: generations / label.batch,
  };
}

function probeWork({ label }: Config): Work {
  const readings = label.tasks;
  return { ...NONE, phase: 'train-probe', arm: '', generationsAtMost: 0, trialsAtMost: 0, readings };
}

function trainWork(config: Config, { validity }: Expectations, arm: string, settings: Arm): Work {
  const train = armTrain(config.train, settings);
  const k = config.band.of;
  const most = train.steps * train.batch;
  const steps = Math.min(train.steps, stepsOfTrials(settings, train, validity.train * k));
  const generations = steps * train.batch;
  const valid = Math.round(generations * validity.train);
  const mined = minedTasks(settings, train.steps);
  const loop = settings.reward === 'solver';
  const probes = settings.reward === 'probe' ? settings.probes : 0;
  const atMost = loop ? trialsAtMost(settings, most, train.batch, k) : mined * k;
  return {
    phase: 'train-generator',
    arm,
    generations,
    generationsAtMost: most,
    trials: (loop ? valid : mined) * k,
    trialsAtMost: atMost,
    checks: generations,
    readings: valid * probes + (settings.reward === 'probe' && settings.crowding?.by === 'activations' ? valid : 0),
    updated: generations * train.updates,
    batches: steps,
  };
}

/** The steps after which an arm with a budget of trials ends. */
function stepsOfTrials(settings: Arm, { steps, batch }: TrainSettings, trialsASample: number): number {
  if (settings.reward !== 'solver' || settings.trials === undefined) return steps;
  return Math.ceil(settings.trials / (batch * trialsASample));
}

/** An arm ends at the end of the step that spends its last trial. */
function trialsAtMost(settings: Arm, generations: number, batch: number, k: number): number {
  const budget = settings.reward === 'solver' ? settings.trials : undefined;
  return Math.min(generations * k, budget === undefined ? Infinity : budget - 1 + batch * k);
}

/** No mining follows the last step. */
function minedTasks(settings: Arm, steps: number): number {
  if (settings.reward !== 'probe' || !settings.adversarial) return 0;
  const { every, mine } = settings.adversarial;
  return Math.floor((steps - 1) / every) * mine;
}

function evaluateWork(config: Config, { validity }: Expectations, arm: string, settings: Arm): Work[] {
  const { generations, batch, rescoreEvery } = config.evaluate;
  const k = config.band.of;
  const valid = Math.round(generations * validity.evaluate);
  const evaluated: Work = {
    ...NONE,
    phase: 'evaluate',
    arm,
    generations,
    generationsAtMost: generations,
    trials: valid * k,
    trialsAtMost: generations * k,
    checks: generations,
    readings: settings.reward === 'probe' ? valid * settings.probes : 0,
    batches: Math.ceil(generations / batch),
  };
  const train = armTrain(config.train, settings);
  const steps = rescoredSteps(train.steps, rescoreEvery).length;
  // The solver has measured its own arm's steps.
  if (!isTrained(settings) || settings.reward === 'solver' || steps === 0) return [evaluated];
  const trials = Math.round(steps * train.batch * validity.train) * k;
  const again = { generationsAtMost: 0, trials, trialsAtMost: steps * train.batch * k };
  return [evaluated, { ...NONE, phase: 're-score', arm, ...again }];
}

/** The train section as it is for the work's arm. */
export function workTrain({ train, arms }: Config, { arm }: Pick<Work, 'arm'>): TrainSettings {
  const own = arms[arm];
  return own === undefined ? train : armTrain(train, own);
}

export interface PlannedTokens {
  /** Written by the generator, and read of its prompts, each once a rollout. */
  readonly written: number;
  readonly prompts: number;
  /** Written by the solver in answers, and read of questions, each once for all attempts. */
  readonly answers: number;
  readonly questions: number;
  /** Read by the reference. */
  readonly reference: number;
  /** Through forward and backward passes, prompts with them: once a micro-batch where its sequences share one. */
  readonly trained: number;
}

export function tokensOf(config: Config, work: Work, expected: Expectations): PlannedTokens {
  const { taskTokens, answerTokens, promptTokens, questionTokens } = expected;
  const { domain } = config;
  const train = workTrain(config, work);
  const shared = sharedTokens(promptTokens);
  const sharing = Math.min(train.microBatch, train.batch / domain.types.length);
  return {
    written: work.generations * taskTokens,
    prompts: work.batches * config.domain.types.length * promptTokens,
    answers: work.trials * answerTokens,
    questions: (work.trials / config.band.of) * (questionTokens + taskTokens),
    reference: work.readings * taskTokens,
    trained: work.updated * (promptTokens - shared + taskTokens) + (work.updated / sharing) * shared,
  };
}
