/**
 * The engine: every model, session and trainer, in one thread, because ONNX Runtime's `run` blocks the thread that calls it. Its methods
 * are what the worker serves; all arguments and results can be posted between threads.
 */
import { existsSync, realpathSync } from 'node:fs';
import { chooseProvider } from '../onnx/providers.js';
import type { ProviderChoice, ProviderSetting } from '../onnx/providers.js';
import { floatData, floats, integers, scalar } from '../onnx/session.js';
import type { Feeds, SessionSettings, Tensor } from '../onnx/session.js';
import { seededRandom } from '../metrics/random.js';
import { layoutKey } from './adapter.js';
import type { Adapter, AdapterLayout } from './adapter.js';
import { batchRows } from './batch-rows.js';
import type { TokenBatch } from './batch-rows.js';
import { openCheckpoint } from './checkpoint.js';
import type { DecoderConfig } from './config.js';
import { emitHidden, hiddenName } from './hidden-graph.js';
import type { MemorySetting } from './memory.js';
import { ModelSessions } from './model-sessions.js';
import type { ModelGraph } from './model-sessions.js';
import { packByLength } from './packing.js';
import { rowsAfterPrefix } from './prefix-graph.js';
import { checkGroups, checkHidden, checkLength, checkRollout } from './request-checks.js';
import type {
  Completion,
  GroupedRolloutRequest,
  HiddenRequest,
  Pooling,
  RolloutGroup,
  RolloutRequest,
} from './request-checks.js';
import { emitRollout } from './rollout-graph.js';
import { freshState, Trainer } from './trainer.js';
import type { AdamWSettings, LossReport, LossSettings, PolicyBatch, TrainerState } from './trainer.js';
import { emitLogProbs } from './update-graph.js';
import type { Trainable } from './update-graph.js';

export interface EngineSettings {
  readonly provider: ProviderSetting;
  readonly threads: number;
  readonly memory?: MemorySetting | undefined;
}

/** Most sequences, and tokens with their padding, in one forward pass for hidden states. */
export const FORWARD_BATCH = { rows: 64, tokens: 16_384 };
/** Stands for no stop: the graph's reductions need one to compare with. */
const NO_TOKEN = -1;

export class Engine {
  readonly #settings: SessionSettings;
  readonly #memory: MemorySetting;
  readonly choice: ProviderChoice;
  /** By the folder's real path: a policy and a reference that are one checkpoint are one model. */
  readonly #models = new Map<string, Model>();
  readonly #trainers = new Map<number, Trainer>();
  #nextTrainer = 1;

  private constructor(choice: ProviderChoice, { threads, memory = 'auto' }: EngineSettings) {
    this.choice = choice;
    this.#memory = memory;
    this.#settings = { provider: choice.provider, threads };
  }

  static async create(settings: EngineSettings): Promise<Engine> {
    return new Engine(await chooseProvider(settings.provider), settings);
  }

  #model(folder: string): Model {
    const path = existsSync(folder) ? realpathSync(folder) : folder;
    let model = this.#models.get(path);
    if (!model) {
      model = new Model(new ModelSessions(openCheckpoint(folder), this.#settings, this.#memory));
      this.#models.set(path, model);
    }
    return model;
  }

  rollout(folder: string, request: RolloutRequest): Promise<Completion[]> {
    return this.#model(folder).rollout(request);
  }

  rolloutGroups(folder: string, request: GroupedRolloutRequest): Promise<Completion[][]> {
    return this.#model(folder).rolloutGroups(request);
  }

  hiddenStates(folder: string, request: HiddenRequest): Promise<Map<number, Tensor>> {
    return this.#model(folder).hiddenStates(request);
  }

  logProbs(folder: string, batch: TokenBatch, adapter: Adapter | null): Promise<Float32Array> {
    return this.#model(folder).logProbs(batch, adapter);
  }

  /** A trainer that starts from `values`, or goes on from a state. @returns its handle. */
  async createTrainer(
    folder: string,
    trainable: Trainable,
    from: ReadonlyMap<string, Tensor> | TrainerState,
  ): Promise<number> {
    const state = from instanceof Map ? freshState(from) : (from as TrainerState);
    const model = this.#model(folder);
    if (trainable !== 'weights') await model.expectTraining(trainable);
    const trainer = await Trainer.create(model.sessions, trainable, state, this.#settings);
    this.#trainers.set(this.#nextTrainer, trainer);
    return this.#nextTrainer++;
  }

  #trainer(handle: number): Trainer {
    const trainer = this.#trainers.get(handle);
    if (!trainer) throw new Error(`no trainer ${handle}`);
    return trainer;
  }

  accumulate(handle: number, batch: PolicyBatch, loss: LossSettings): Promise<LossReport> {
    return this.#trainer(handle).accumulate(batch, loss);
  }

  step(handle: number, settings: AdamWSettings): Promise<{ gradientNorm: number }> {
    return this.#trainer(handle).step(settings);
  }

  trainerState(handle: number): TrainerState {
    return this.#trainer(handle).state();
  }

  trainedValues(handle: number): Map<string, Tensor> {
    return this.#trainer(handle).values();
  }

  async releaseTrainer(handle: number): Promise<void> {
    await this.#trainer(handle).release();
    this.#trainers.delete(handle);
  }

  async close(): Promise<void> {
    for (const trainer of this.#trainers.values()) await trainer.release();
    for (const model of this.#models.values()) await model.release();
    this.#trainers.clear();
    this.#models.clear();
  }
}

/** What one checkpoint is asked for; its graphs are compiled when first needed. */
class Model {
  readonly sessions: ModelSessions;
  readonly #config: DecoderConfig;

  constructor(sessions: ModelSessions) {
    this.sessions = sessions;
    this.#config = sessions.checkpoint.config;
  }

  async rollout(request: RolloutRequest): Promise<Completion[]> {
    const { prompts, seed, adapter } = request;
    checkRollout(this.#config, request);
    if (!prompts.length) return [];
    const graph = this.#rolloutGraph(adapter?.layout ?? null);
    const [completions] = await this.#sample(graph, [{ prompts, seed }], request, adapterFeeds(adapter));
    return completions!;
  }

  /** Have what goes with an update of an adapter compiled with it. */
  async expectTraining(layout: AdapterLayout): Promise<void> {
    await this.sessions.add(this.#rolloutGraph(layout));
    await this.sessions.add(this.#logProbGraph(null));
  }

  #rolloutGraph(layout: AdapterLayout | null): ModelGraph {
    return {
      key: `rollout ${layoutKey(layout)}`,
      emit: (g, weights) => emitRollout(g, this.#config, weights(), layout),
    };
  }

  #logProbGraph(layout: AdapterLayout | null, afterPrefix = false): ModelGraph {
    const { headRows } = this.sessions.plan;
    const emitTokens = afterPrefix ? rowsAfterPrefix : undefined;
    return {
      key: `logProbs ${layoutKey(layout)}${afterPrefix ? ' after a prefix' : ''}`,
      emit: (g, weights) => emitLogProbs(g, this.#config, weights(), layout, headRows, emitTokens),
    };
  }

  /** Completions of each group, as the group's own request would have them. */
  async rolloutGroups(request: GroupedRolloutRequest): Promise<Completion[][]> {
    const { groups } = request;
    checkGroups(this.#config, request);
    if (!groups.length) return [];
    const { layout } = groups[0]!.adapter;
    const graph: ModelGraph = {
      key: `rollout ${groups.length} × ${layoutKey(layout)}`,
      emit: (g, weights) => emitRollout(g, this.#config, weights(), layout, groups.length),
    };
    const feeds = stackedFeeds(groups.map(({ adapter }) => adapter));
    return this.#sample(graph, groups, request, feeds);
  }

  async #sample(
    graph: ModelGraph,
    groups: readonly Pick<RolloutGroup, 'prompts' | 'seed'>[],
    { perPrompt, maxNewTokens, temperature, stops: stopTokens }: Omit<RolloutRequest, 'prompts' | 'seed' | 'adapter'>,
    adapterInputs: Feeds,
  ): Promise<Completion[][]> {
    // Every group has as many rows as the largest: what it lacks are its own once more, drawn alike.
    const slots = Math.max(...groups.map(({ prompts }) => prompts.length));
    const prompts = groups.flatMap((group) =>
      Array.from({ length: slots }, (_, slot) => group.prompts[slot % group.prompts.length]!),
    );
    const samples = prompts.length * perPrompt;
    const stopIds = (stopTokens.length ? stopTokens : [NO_TOKEN]).map(BigInt);
    const promptTime = Math.max(...prompts.map((p) => p.length));
    const uniforms = new Float32Array(maxNewTokens * samples);
    groups.forEach((group, index) => {
      const own = group.prompts.length * perPrompt;
      const share = slots * perPrompt;
      const drawn = Float32Array.from({ length: maxNewTokens * own }, seededRandom(group.seed));
      for (let step = 0; step < maxNewTokens; step++) {
        for (let i = 0; i < share; i++) {
          uniforms[step * samples + index * share + i] = drawn[step * own + (i % own)]!;
        }
      }
    });
    const feeds: Feeds = {
      prompts: integers(padRows(prompts, promptTime), [prompts.length, promptTime]),
      promptLengths: integers(
        BigInt64Array.from(prompts, (p) => BigInt(p.length)),
        [prompts.length],
      ),
      uniforms: floats(uniforms, [maxNewTokens, samples]),
      stops: integers(BigInt64Array.from(stopIds), [stopIds.length]),
      temperature: scalar(temperature),
      ...adapterInputs,
    };
    const out = await this.sessions.run(graph, feeds);
    const tokens = out['tokens']!.data as BigInt64Array;
    const logProbs = floatData(out['logProbs']);
    const steps = tokens.length / samples;
    const stops = new Set(stopIds);
    const completion = (sample: number): Completion => {
      const written: number[] = [];
      let stopped = false;
      for (let step = 0; step < steps && !stopped; step++) {
        const token = tokens[step * samples + sample]!;
        written.push(Number(token));
        stopped = stops.has(token);
      }
      return {
        tokens: written,
        logProbs: Float32Array.from(written, (_, step) => logProbs[step * samples + sample]!),
        stopped,
      };
    };
    return groups.map((group, index) =>
      Array.from({ length: group.prompts.length * perPrompt }, (_, i) => completion(index * slots * perPrompt + i)),
    );
  }

  /** Layer → [sequences, poolings, width]. */
  async hiddenStates(request: HiddenRequest): Promise<Map<number, Tensor>> {
    const { sequences, layers, poolings } = request;
    checkHidden(this.#config, request);
    const graph: ModelGraph = {
      key: `hidden ${layers.join()}`,
      emit: (g, weights) => emitHidden(g, this.#config, weights(), layers),
    };
    const { width } = this.#config;
    const row = poolings.length * width;
    const states = new Map(
      layers.map((layer) => [
        layer,
        { shape: [sequences.length, poolings.length, width], data: new Float32Array(sequences.length * row) },
      ]),
    );
    const lengths = sequences.map((sequence) => sequence.length);
    for (const part of packByLength(lengths, FORWARD_BATCH)) {
      const batch = part.map((i) => sequences[i]!);
      const time = Math.max(...batch.map((s) => s.length));
      const out = await this.sessions.run(graph, {
        ids: integers(padRows(batch, time), [batch.length, time]),
        pooling: floats(poolingWeights(batch, time, poolings), [batch.length, poolings.length, time]),
      });
      for (const [layer, { data }] of states) {
        const pooled = floatData(out[hiddenName(layer)]);
        part.forEach((i, r) => data.set(pooled.subarray(r * row, (r + 1) * row), i * row));
      }
    }
    return states;
  }

  async logProbs(batch: TokenBatch, adapter: Adapter | null): Promise<Float32Array> {
    checkLength(this.#config, (batch.prefix?.length ?? 0) + batch.time);
    const graph = this.#logProbGraph(adapter?.layout ?? null, batch.prefix !== undefined);
    const rows = batchRows(batch, this.#config.heads / this.#config.kvHeads);
    const out = await this.sessions.run(graph, {
      ...rows.feeds,
      labels: integers(rows.pack(batch.labels), rows.shape),
      ...adapterFeeds(adapter),
    });
    return rows.unpack(floatData(out['logProbs']));
  }

  release(): Promise<void> {
    return this.sessions.release();
  }
}

function adapterFeeds(adapter: Adapter | null): Feeds {
  return Object.fromEntries([...(adapter?.factors ?? [])].map(([name, t]) => [name, floats(t.data, t.shape)]));
}

/** The factors of adapters of one layout, [adapters, …]. */
function stackedFeeds(adapters: readonly Adapter[]): Feeds {
  const stacked = [...adapters[0]!.factors].map(([name, { shape, data }]) => {
    const all = new Float32Array(adapters.length * data.length);
    adapters.forEach(({ factors }, i) => all.set(factors.get(name)!.data, i * data.length));
    return [name, floats(all, [adapters.length, ...shape])] as const;
  });
  return Object.fromEntries(stacked);
}

/** Token rows, right-padded with 0 to `time`. */
function padRows(rows: readonly (readonly number[])[], time: number): BigInt64Array {
  const padded = new BigInt64Array(rows.length * time);
  rows.forEach((row, r) => row.forEach((token, t) => (padded[r * time + t] = BigInt(token))));
  return padded;
}

function poolingWeights(
  rows: readonly (readonly number[])[],
  time: number,
  poolings: readonly Pooling[],
): Float32Array {
  const weights = new Float32Array(rows.length * poolings.length * time);
  rows.forEach((row, r) =>
    poolings.forEach((pooling, p) => {
      const at = (r * poolings.length + p) * time;
      if (pooling === 'last' || row.length === 1) weights[at + row.length - 1] = 1;
      else weights.fill(1 / (row.length - 1), at + 1, at + row.length);
    }),
  );
  return weights;
}
