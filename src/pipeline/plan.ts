/** What a configuration will take before any of it runs: models, memory, work, time. Nothing is downloaded and nothing is written. */
import { availableParallelism, loadavg } from 'node:os';
import { basename } from 'node:path';
import { createCodeDomain, readTopicRules } from '../domain/azr/index.js';
import type { CodeTask } from '../domain/azr/index.js';
import type { Domain } from '../domain/domain.js';
import { RunError } from '../errors.js';
import { parameterCount } from '../lm/config.js';
import { factorCount, parameterBytes } from '../lm/footprint.js';
import { parseHubModel } from '../lm/hub/cache.js';
import { measureMachine } from '../onnx/machine-rates.js';
import type { MachineRates } from '../onnx/machine-rates.js';
import { chooseProvider } from '../onnx/providers.js';
import type { ExecutionProvider } from '../onnx/session.js';
import { armTrain, isTrained } from './arm-config.js';
import { chatOf } from './chat.js';
import type { Config } from './config.js';
import { weightsAlone } from './memory-check.js';
import { policySetting } from './model-folders.js';
import { openSandbox } from './open-sandbox.js';
import { findFile } from './paths.js';
import { expectations } from './plan-expectations.js';
import { planMemory } from './plan-memory.js';
import type { RunMemory } from './plan-memory.js';
import { planModels } from './plan-models.js';
import type { GivenConfigs, PlannedModel } from './plan-models.js';
import { promptsAsGiven } from './plan-prompts.js';
import type { PlanPrompt } from './plan-prompts.js';
import { measureSandbox, runBasis } from './plan-rates.js';
import type { RunBasis, SandboxRates } from './plan-rates.js';
import { secondsLikeRun, secondsOnMachine, timedRows } from './plan-time.js';
import type { TimedModels } from './plan-time.js';
import { planWork, tokensOf } from './plan-work.js';
import type { Expectations, PlannedTokens, Work } from './plan-work.js';
import { answerRefusal, writingRefusal } from './positions.js';
import type { ProgressFactory } from './progress.js';
import { rememberedRun } from './remembered-rates.js';
import type { RememberedRun } from './remembered-rates.js';

/** Of the processors that a timing asks for, what it gets on a machine that does nothing else. */
const QUIET_SHARE = 0.75;

export interface PlanOptions {
  readonly config: Config;
  /** The `config.json` of models that are not here. */
  readonly modelConfigs: GivenConfigs;
  /** Bytes that the run may take; null: what the configuration says, if it does. */
  readonly memory: number | null;
  /** A run folder whose rates are taken; null: this machine is timed. */
  readonly like: string | null;
  readonly progress: ProgressFactory;
}

export interface PlanModel {
  readonly name: string;
  readonly settings: readonly string[];
  readonly family: string | null;
  readonly parameters: number | null;
  readonly bytes: Readonly<Record<string, number>> | null;
  /** Element types of the linear maps: as stored, else as `assumed` says; null where nothing tells. */
  readonly stored: readonly string[] | null;
  /** What is taken for granted of a model whose weights are not here; null where they are. */
  readonly assumed: string | null;
  readonly layers: number | null;
  readonly width: number | null;
  readonly maxPositions: number | null;
  /** Arm → parameters of its adapter, of the arms that are trained on this model. */
  readonly adapters: Readonly<Record<string, number>>;
  readonly problem: string | null;
  /** Why a run would be refused for it, in the run's own words. */
  readonly refusals: readonly string[];
}

export interface PlanPhase extends Work {
  readonly tokens: PlannedTokens;
  /** Null where the basis says nothing of it. */
  readonly seconds: number | null;
}

/** That other programs keep the machine busy, now or during the run that the rates are of; null for a quiet one, and where nobody looked. */
export interface Busy {
  readonly when: 'now' | 'then';
  /** `load 9.4 on 2 processors`. */
  readonly what: string;
}

/** `propel plan --json`. */
export interface Plan {
  readonly name: string;
  readonly models: readonly PlanModel[];
  /** What the generator is given for a task of each type, special tokens by their names; none where its tokenizer is not here. */
  readonly prompts: readonly PlanPrompt[];
  /** What cannot be counted, and where each figure comes from. */
  readonly expected: Expectations & { readonly basis: string };
  readonly phases: readonly PlanPhase[];
  readonly totals: {
    readonly generations: number;
    readonly generationsAtMost: number;
    readonly trials: number;
    readonly trialsAtMost: number;
    readonly tokens: PlannedTokens;
    /** Of the phases that the basis says something of. */
    readonly seconds: number | null;
  };
  readonly time: {
    readonly basis: string;
    readonly uncounted: readonly string[];
    readonly busy: Busy | null;
  };
  readonly memory: RunMemory & {
    /** Where the weights alone pass the budget: what takes how much, and what would help. */
    readonly problem: string | null;
  };
}

export async function plan(options: PlanOptions): Promise<Plan> {
  const { config, memory, like } = options;
  const models = await planModels(config, options.modelConfigs);
  const tokenizerOf = (setting: string) => models.find(({ settings }) => settings.includes(setting))?.tokenizer ?? null;
  const domain = createCodeDomain(config.domain, readTopicRules(findFile(config.domain.topics, 'domain.topics')));
  const basis = like === null ? rememberedRun(config) : runBasis(like, config, tokenizerOf('models.solver'));
  const expected = expectations(config, domain, basis, tokenizerOf);
  const works = planWork(config, expected);
  const estimate = await estimateOf(options, works, basis, () => onThisMachine(options, models, domain, expected));
  const phases = works.map((work) => ({
    ...work,
    tokens: tokensOf(config, work, expected),
    seconds: estimate.seconds(work),
  }));
  const runMemory = planMemory(config, models, expected, memory);
  return {
    name: config.name,
    models: models.map((model) => describeModel(config, domain, model, expected)),
    prompts: promptsAsGiven(config, domain, tokenizerOf('models.policy')),
    expected,
    phases,
    totals: totalsOf(phases),
    time: { basis: estimate.basis, uncounted: estimate.uncounted, busy: estimate.busy },
    memory: { ...runMemory, problem: weightsAlone(config, models, runMemory) },
  };
}

interface Estimate {
  readonly basis: string;
  readonly uncounted: readonly string[];
  readonly busy: Busy | null;
  readonly seconds: (work: Work) => number | null;
}

/** By the run that is named, else by the last one like it, what that has not done by a timing; else by a timing alone. */
async function estimateOf(
  { config, like }: PlanOptions,
  works: readonly Work[],
  basis: RunBasis | RememberedRun | null,
  timing: () => Promise<Estimate>,
): Promise<Estimate> {
  if (basis === null) return timing();
  const seconds = (work: Work): number | null => secondsLikeRun(config, work, basis.rates);
  if (!('at' in basis)) return { basis: `rates of ${like}`, uncounted: [], busy: null, seconds };
  const { name, at, load, processors } = basis;
  const last = `the last run like it on this machine (${name}, ${at.slice(0, 10)})`;
  const busy: Busy | null = isBusy(load, processors) ? { when: 'then', what: loadText(load, processors) } : null;
  const known = works.filter((work) => seconds(work) !== null);
  if (known.length === works.length) return { basis: last, uncounted: [], busy, seconds };
  const timed = await timing();
  const phases = [...new Set(works.filter((work) => seconds(work) === null).map(({ phase }) => phase))];
  return {
    basis: `${last}, and ${phases.join(', ')} by ${timed.basis}`,
    uncounted: timed.uncounted,
    busy: busy ?? timed.busy,
    seconds: (work) => seconds(work) ?? timed.seconds(work),
  };
}

const loadText = (load: number, processors: number): string => `load ${load.toFixed(1)} on ${processors} processors`;

/** More processes that want to run than processors, by a margin for what a plan itself is. */
function isBusy(load: number, processors: number): boolean {
  return load > processors + 1;
}

async function onThisMachine(
  { config, progress }: PlanOptions,
  models: readonly PlannedModel[],
  domain: Domain<CodeTask>,
  expected: Expectations,
): Promise<Estimate> {
  const configOf = (setting: string) => models.find(({ settings }) => settings.includes(setting))?.config ?? null;
  const [policy, reference] = [configOf('models.policy'), configOf('models.reference')];
  const solver = configOf('models.solver');
  if (!policy || !reference || (config.models.solver !== null && !solver)) {
    return { basis: 'none: a model is unknown', uncounted: [], busy: null, seconds: () => null };
  }
  const machine = await timeMachine(config);
  const sandbox = await timeSandbox(config, domain, progress);
  const timed: TimedModels = { policy, reference, solver };
  const none = { check: 0, grade: 0 };
  return {
    basis: `a timing of ${machine.provider} here${machine.instead}, ${machine.threads} threads${sandbox ? ', and of the sandbox' : ''}`,
    uncounted: [
      ...(solver === null ? ['the attempts of the endpoint'] : []),
      ...(sandbox === null ? ['the sandbox, which cannot start'] : []),
      'fitting the probe',
    ],
    busy: busyNow(machine),
    seconds: (work) => secondsOnMachine(config, work, expected, timed, machine, sandbox ?? none),
  };
}

/** What else the machine does now, by its load or by what it kept from the timing; null for a quiet one. */
function busyNow({ processorShare }: MachineRates): Busy | null {
  const [load, processors] = [loadavg()[0]!, availableParallelism()];
  if (!isBusy(load, processors) && processorShare >= QUIET_SHARE) return null;
  const got = `the timing got ${Math.round(100 * processorShare)}% of what it asked for`;
  return { when: 'now', what: `${loadText(load, processors)}, ${got}` };
}

/** With the provider of the configuration; where that is not here, as of a plan for another machine, with cpu. */
async function timeMachine(config: Config): Promise<MachineRates & { readonly instead: string }> {
  const { provider: wanted, threads } = config.engine;
  const [provider, instead] = await chooseProvider(wanted).then(
    ({ provider: chosen }): [ExecutionProvider, string] => [chosen, ''],
    (error: unknown): [ExecutionProvider, string] => {
      if (!(error instanceof RunError) || wanted === 'cpu') throw error;
      return ['cpu', `, as ${wanted} is not`];
    },
  );
  return { ...(await measureMachine(provider, threads, timedRows(config))), instead };
}

async function timeSandbox(
  config: Config,
  domain: Domain<CodeTask>,
  progress: ProgressFactory,
): Promise<SandboxRates | null> {
  try {
    const sandbox = await openSandbox({ ...config.sandbox, limits: config.domain.limits }, progress);
    try {
      return await measureSandbox(domain, sandbox, config);
    } finally {
      await sandbox.close();
    }
  } catch {
    // A plan is of use without it, and says so.
    return null;
  }
}

function describeModel(
  config: Config,
  domain: Domain<CodeTask>,
  model: PlannedModel,
  expected: Expectations,
): PlanModel {
  const { name, settings, config: decoder, types, assumed, problem } = model;
  if (decoder === null) {
    const unknown = { family: null, parameters: null, bytes: null, layers: null, width: null, maxPositions: null };
    return { name, settings, ...unknown, stored: types, assumed, adapters: {}, problem, refusals: [] };
  }
  const adapted = Object.entries(config.arms).flatMap(([arm, own]) => {
    const setting = own.policy === undefined ? 'models.policy' : policySetting(arm);
    if (!isTrained(own) || !settings.includes(setting)) return [];
    return [[arm, factorCount(decoder, armTrain(config.train, own).lora)] as const];
  });
  return {
    name,
    settings,
    family: decoder.family,
    parameters: parameterCount(decoder),
    bytes: parameterBytes(decoder),
    stored: types,
    assumed,
    layers: decoder.layers,
    width: decoder.width,
    maxPositions: decoder.maxPositions,
    adapters: Object.fromEntries(adapted),
    problem,
    refusals: positionRefusals(config, domain, model, decoder.maxPositions, expected),
  };
}

/** What a run would be refused for before it begins; of a model that is not here the prompt's length is estimated. */
function positionRefusals(
  { policy, solver, ...config }: Config,
  domain: Domain<CodeTask>,
  { name, settings, tokenizer }: PlannedModel,
  maxPositions: number,
  { promptTokens }: Expectations,
): string[] {
  const positions = { name: parseHubModel(name)?.id ?? basename(name), maxPositions };
  const writing = writingRefusal('policy', policy.maxNewTokens, promptTokens, positions);
  const answering = writingRefusal('solver', solver.maxNewTokens, 1, positions);
  const around = tokenizer?.question('', chatOf(solver, domain)).length ?? 1;
  return settings
    .flatMap((setting) => {
      if (setting === 'models.policy') return [writing];
      if (setting === 'models.solver')
        return [answering ?? answerRefusal({ policy, solver, ...config }, around, positions)];
      return setting.endsWith('.policy') ? [writing && `${setting}: ${writing}`] : [];
    })
    .filter((refusal) => refusal !== null);
}

function totalsOf(phases: readonly PlanPhase[]): Plan['totals'] {
  const sum = (of: (phase: PlanPhase) => number) => phases.reduce((total, phase) => total + of(phase), 0);
  const kinds = ['written', 'prompts', 'answers', 'questions', 'reference', 'trained'] as const;
  const tokens = kinds.map((kind) => [kind, sum((phase) => phase.tokens[kind])] as const);
  const timed = phases.some(({ seconds }) => seconds !== null);
  return {
    generations: sum(({ generations }) => generations),
    generationsAtMost: sum(({ generationsAtMost }) => generationsAtMost),
    trials: sum(({ trials }) => trials),
    trialsAtMost: sum(({ trialsAtMost }) => trialsAtMost),
    tokens: Object.fromEntries(tokens) as unknown as PlannedTokens,
    seconds: timed ? sum(({ seconds }) => seconds ?? 0) : null,
  };
}
