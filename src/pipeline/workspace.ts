/** What a phase works with: the run folder's store, the models in their engine, the sandbox and the domain, each opened when first needed. */
import { createCodeDomain, readTopicRules } from '../domain/azr/index.js';
import type { CodeTask, TopicRules } from '../domain/azr/index.js';
import { UserError } from '../errors.js';
import type { Check, Domain } from '../domain/domain.js';
import { EngineThread, LanguageModel } from '../lm/language-model.js';
import type { ProviderSetting } from '../onnx/providers.js';
import type { Sandbox } from '../sandbox/sandbox.js';
import { PATIENCE } from '../solver/back-off.js';
import { openEndpointSolver } from '../solver/endpoint-solver.js';
import type { EndpointSolverSettings } from '../solver/endpoint-solver.js';
import { createLocalSolver } from '../solver/local-solver.js';
import type { Solver } from '../solver/solver.js';
import type { Json, Phase } from '../store/rows.js';
import { RunStore } from '../store/store.js';
import { chatOf } from './chat.js';
import type { Config } from './config.js';
import { endpointPrompt } from './endpoint-prompt.js';
import { engineSettings, passBytes } from './memory-budget.js';
import { hashModels, modelFolders, policySetting, requireSameModels } from './model-folders.js';
import type { ModelFolders, ModelHashes } from './model-folders.js';
import { openSandbox } from './open-sandbox.js';
import { findFile } from './paths.js';
import { endpointSettings } from './solver-config.js';
import { writePipeline, writtenPipeline } from './pipeline-file.js';
import type { ProgressFactory } from './progress.js';
import { ReferenceLength } from './reference-length.js';
import { phaseOfSetting } from './settings-phase.js';
import { versions } from './versions.js';

export interface RunOptions {
  readonly config: Config;
  /** How it was given: a file and overrides, as on the command line. */
  readonly source?: string;
  /** The run folder. */
  readonly folder: string;
  /** Start over: the whole run, or from the phase that is asked for. */
  readonly fresh: boolean;
  readonly progress: ProgressFactory;
  /** Aborted when the user asks to stop: the phase ends after the batch it is in. */
  readonly signal: AbortSignal;
}

/** What a run's row holds of its configuration: beside the settings what the files that they name were. */
interface RecordedConfig extends ModelHashes {
  readonly topicRules: TopicRules;
}

/** The user asked to stop; what was done is committed. */
export class Stopped extends Error {
  constructor() {
    super('stopped; the same command goes on from here');
    this.name = 'Stopped';
  }
}

export class Workspace {
  readonly config: Config;
  readonly store: RunStore;
  readonly domain: Domain<CodeTask>;
  readonly progress: ProgressFactory;
  readonly #signal: AbortSignal;
  readonly #folders: ModelFolders;
  readonly #readOnly: boolean;
  #engine: Promise<EngineThread> | null = null;
  readonly #models = new Map<string, Promise<LanguageModel>>();
  #passBytes: Promise<number | null> | null = null;
  #sandbox: Promise<Sandbox> | null = null;
  #solver: Promise<Solver> | null = null;
  readonly #referenceLength: ReferenceLength;

  private constructor(
    options: RunOptions,
    folders: ModelFolders,
    topicRules: TopicRules,
    store: RunStore,
    readOnly: boolean,
  ) {
    this.config = options.config;
    this.progress = options.progress;
    this.#signal = options.signal;
    this.#folders = folders;
    this.#readOnly = readOnly;
    this.store = store;
    this.#referenceLength = new ReferenceLength(folders.reference);
    this.domain = createCodeDomain(options.config.domain, topicRules);
  }

  /**
   * Open a run folder for a configuration, to work from the phase `from` on.
   * @throws UserError when a model is missing or the folder holds another run; RunError when another process works in it.
   */
  static open(options: RunOptions, from: Phase = 'label'): Workspace {
    const folders = modelFolders(options.config);
    const topicRules = readTopicRules(findFile(options.config.domain.topics, 'domain.topics'));
    const { seed, ...config } = options.config;
    const run = {
      seed,
      config: {
        ...(config as unknown as { [key: string]: Json }),
        ...hashModels(folders),
        topicRules: topicRules as unknown as Json,
      },
      versions: versions(),
    };
    const store = RunStore.open(options.folder, { fresh: options.fresh && from === 'label' });
    try {
      const phaseOf = phaseOfSetting(options.config, store.probes().length);
      if (options.fresh && from !== 'label') store.restartFrom(from, run, phaseOf);
      else store.startRun(run, phaseOf);
      writePipeline(options.folder, options.config, options.source, run.versions.propel);
      return new Workspace(options, folders, topicRules, store, false);
    } catch (error) {
      store.abandon(writtenPipeline(options.folder));
      throw error;
    }
  }

  /** Open a run folder to read from, with the configuration that it holds. @throws UserError when it holds no run. */
  static read(folder: string, progress: ProgressFactory, signal: AbortSignal): Workspace {
    const store = RunStore.read(folder);
    try {
      const run = store.run();
      if (!run) throw new UserError(`${folder} holds no run yet: start one with 'propel run'`);
      const { modelHashes, policyHashes, topicRules, ...config } = run.config as unknown as RecordedConfig;
      const options = {
        config: { ...config, seed: run.seed } as unknown as Config,
        folder,
        fresh: false,
        progress,
        signal,
      };
      const folders = modelFolders(options.config);
      requireSameModels(folders, { modelHashes, policyHashes }, folder);
      return new Workspace(options, folders, topicRules, store, true);
    } catch (error) {
      store.close();
      throw error;
    }
  }

  /** @throws Stopped when the user has asked for it. */
  checkpoint(): void {
    if (this.#signal.aborted) throw new Stopped();
  }

  /** Bytes that one pass of a model may work with; null without a budget. */
  passBytes(): Promise<number | null> {
    return (this.#passBytes ??= passBytes(this.config));
  }

  async #openEngine(): Promise<EngineThread> {
    const settings = engineSettings(this.config.engine, await this.passBytes());
    // What is fastest may change from start to start; a run that was begun goes on where it began.
    const begun = this.store.run()?.versions['provider'] as ProviderSetting | undefined;
    const provider = settings.provider === 'auto' ? (begun ?? 'auto') : settings.provider;
    const engine = await EngineThread.start({ ...settings, provider, model: this.#folders.policy });
    this.progress('engine').done(describeChoice(engine.choice));
    return engine;
  }

  /** The run goes on with the provider and the type that began it: others would round its rows differently. */
  async #engineOfRun(): Promise<EngineThread> {
    const engine = await (this.#engine ??= this.#openEngine());
    if (this.#readOnly) return engine;
    for (const key of ['provider', 'dtype'] as const) {
      const now = engine.choice[key];
      const begun = this.store.recordVersion(key, now);
      if (begun === now) continue;
      throw new UserError(
        `the run was begun ${key === 'provider' ? 'on' : 'in'} ${begun}, and engine.${key} gives ${now} now: go on where ${begun} works, or start over with 'propel run --fresh'`,
      );
    }
    return engine;
  }

  #model(folder: string, setting: string): Promise<LanguageModel> {
    const adapter = this.#folders.adapters[setting] ?? null;
    const key = JSON.stringify([folder, adapter]);
    let model = this.#models.get(key);
    if (!model) {
      model = this.#engineOfRun().then((engine) => LanguageModel.open(engine, folder, adapter));
      this.#models.set(key, model);
    }
    return model;
  }

  /** The generator of the run, or of an arm that has one of its own. */
  policy(arm?: string): Promise<LanguageModel> {
    const own = arm === undefined ? undefined : this.#folders.armPolicies.get(arm);
    return own === undefined
      ? this.#model(this.#folders.policy, 'models.policy')
      : this.#model(own, policySetting(arm!));
  }
  reference(): Promise<LanguageModel> {
    return this.#model(this.#folders.reference, 'models.reference');
  }

  /** @throws UserError when it is an endpoint that cannot be reached, refuses the key or does not serve the model */
  solver(): Promise<Solver> {
    return (this.#solver ??= this.#openSolver());
  }

  async #openSolver(): Promise<Solver> {
    const endpoint = endpointSettings(this.config.solver);
    if (endpoint !== null) return this.#openEndpoint(endpoint);
    const { solver } = this.config;
    const model = await this.#model(this.#folders.solver!, 'models.solver');
    return createLocalSolver(model, { ...solver, chat: chatOf(solver, this.domain), end: this.domain.answerEnd });
  }

  async #openEndpoint(settings: EndpointSolverSettings): Promise<Solver> {
    const progress = this.progress('solver');
    const waiting = setInterval(() => progress.update(0, 1, `waiting for ${settings.endpoint} to answer`), 1000);
    try {
      const promptOf = await endpointPrompt(this.config.solver, this.domain);
      const warn = (message: string): void => progress.done(`warning: ${message}`);
      const solver = await openEndpointSolver(settings, PATIENCE, warn, promptOf);
      await solver.prove();
      if (!this.#readOnly)
        this.store.recordVersion('solverSamplingRefused', solver.refusedSampling.join(', ') || 'nothing');
      return solver;
    } finally {
      clearInterval(waiting);
    }
  }

  sandbox(): Promise<Sandbox> {
    return (this.#sandbox ??= openSandbox(
      { ...this.config.sandbox, limits: this.config.domain.limits },
      this.progress,
    ));
  }

  /** The domain's check of proposed tasks, of which none may be longer than the reference model reads. @param earlier null: repeats are let be */
  async check(tasks: readonly (CodeTask | null)[], earlier: ReadonlySet<string> | null): Promise<Check<CodeTask>[]> {
    const checks = await this.domain.check(tasks, await this.sandbox(), earlier ? { earlier } : {});
    return this.#referenceLength.limit(checks, (task) => this.domain.render(task));
  }

  /** @param failed whether the work has failed: then a run that has only just begun leaves nothing behind */
  async close(failed = false): Promise<void> {
    await Promise.allSettled([
      this.#solver?.then((solver) => solver.close()),
      this.#sandbox?.then((sandbox) => sandbox.close()),
      this.#engine?.then((engine) => engine.close()),
    ]);
    if (failed) this.store.abandon(writtenPipeline(this.store.folder));
    else this.store.close();
  }
}

/** The provider that was taken, and what was tried before it. */
function describeChoice({ provider, tests }: EngineThread['choice']): string {
  return tests
    .map((test) =>
      test.provider === provider ? `${provider}, ${test.detail}` : `not ${test.provider}: ${test.detail}`,
    )
    .join('; ');
}
