/**
 * The engine: every model, session and trainer, in one thread, because ONNX Runtime's `run` blocks the thread that calls it. Its methods
 * are what the worker serves; all arguments and results can be posted between threads.
 */
import { existsSync, realpathSync } from 'node:fs';
import { largest } from '../metrics/extremes.js';
import type { DTypeSetting } from '../onnx/compute-type.js';
import type { TypeChoice } from '../onnx/provider-types.js';
import { chooseProvider } from '../onnx/providers.js';
import type { ProviderChoice, ProviderSetting } from '../onnx/providers.js';
import { floatData, floats, hasLoop, integers } from '../onnx/session.js';
import type { Feeds, SessionSettings, Tensor } from '../onnx/session.js';
import { layoutKey } from './adapter.js';
import type { Adapter, AdapterLayout } from './adapter.js';
import { batchRows } from './batch-rows.js';
import type { TokenBatch } from './batch-rows.js';
import { openCheckpoint, storedType } from './checkpoint.js';
import type { DecoderConfig } from './config.js';
import { emitHidden, hiddenName } from './hidden-graph.js';
import { loopRollout } from './loop-rollout.js';
import type { MemorySetting } from './memory.js';
import { ModelSessions } from './model-sessions.js';
import type { ModelGraph } from './model-sessions.js';
import { forwardBytes, rolloutWorkingBytes } from './footprint.js';
import type { RolloutSize } from './footprint.js';
import { packByLength } from './packing.js';
import { padRows } from './padding.js';
import { rowsAfterPrefix } from './prefix-graph.js';
import { checkGroups, checkHidden, checkLength, checkRollout } from './request-checks.js';
import type { Completion, GroupedRolloutRequest, HiddenRequest, Pooling, RolloutRequest } from './request-checks.js';
import { emitRollout } from './rollout-graph.js';
import { rolloutInParts } from './rollout-parts.js';
import { adapterFeeds, completionsByGroup, groupedSampling, singleSampling } from './sampling.js';
import type { Sampling } from './sampling.js';
import { emitPrompts, emitStep } from './step-graphs.js';
import { modelWindow } from './sliding-window.js';
import { stepRollout } from './step-rollout.js';
import { freshState, Trainer } from './trainer.js';
import type { AdamWSettings, LossReport, LossSettings, PolicyBatch, TrainerState } from './trainer.js';
import { emitLogProbs } from './update-graph.js';
import type { Trainable } from './update-graph.js';

export interface EngineSettings {
  readonly provider: ProviderSetting;
  readonly threads: number;
  /** Type of the models' large products; auto unless given. */
  readonly dtype?: DTypeSetting | undefined;
  readonly memory?: MemorySetting | undefined;
  /** Bytes that a forward pass or a rollout may work with beside the weights: larger ones are cut. Default: whatever it takes. */
  readonly passBytes?: number | undefined;
  /**
   * Checkpoint folder of the model whose step `auto` tries on each provider, in the type it would have; without it `auto` takes the first
   * that works.
   */
  readonly model?: string | undefined;
  /** Folder to record in where each node runs, as sessions are released. */
  readonly profile?: string | undefined;
}

/** What an engine's type is chosen by: its setting and its model's weights. */
export function typeChoice({ dtype = 'auto', model }: EngineSettings): TypeChoice {
  return { dtype, stored: () => (model === undefined ? 'float32' : storedType(openCheckpoint(model))) };
}

/** Most sequences, and tokens with their padding, in one forward pass for hidden states. */
export const FORWARD_BATCH = { rows: 64, tokens: 16_384 };

export class Engine {
  readonly #settings: SessionSettings;
  readonly #memory: MemorySetting;
  readonly #passBytes: number;
  readonly choice: ProviderChoice;
  /** By the folder's real path: a policy and a reference that are one checkpoint are one model. */
  readonly #models = new Map<string, Model>();
  readonly #trainers = new Map<number, Trainer>();
  #nextTrainer = 1;

  private constructor(choice: ProviderChoice, { threads, dtype, profile, memory = 'auto', passBytes }: EngineSettings) {
    this.choice = choice;
    this.#memory = memory;
    this.#passBytes = passBytes ?? Infinity;
    this.#settings = { provider: choice.provider, threads, dtype, profile };
  }

  /** `choice` is the provider, where it has been chosen already. */
  static async create(settings: EngineSettings, choice?: ProviderChoice): Promise<Engine> {
    return new Engine(choice ?? (await chooseProvider(settings.provider, null, typeChoice(settings))), settings);
  }

  #model(folder: string): Model {
    const path = existsSync(folder) ? realpathSync(folder) : folder;
    let model = this.#models.get(path);
    if (!model) {
      model = new Model(new ModelSessions(openCheckpoint(folder), this.#settings, this.#memory), this.#passBytes);
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

  hiddenBatches(folder: string, sequences: HiddenRequest['sequences']): number[][] {
    return this.#model(folder).hiddenBatches(sequences);
  }

  logProbs(folder: string, batch: TokenBatch, adapter: Adapter | null): Promise<Float32Array> {
    return this.#model(folder).logProbs(batch, adapter);
  }

  /**
   * A trainer that starts from `values`, or goes on from a state.
   * @param reference what is adapted on the checkpoint that the KL term compares with
   * @returns its handle
   */
  async createTrainer(
    folder: string,
    trainable: Trainable,
    from: ReadonlyMap<string, Tensor> | TrainerState,
    reference: AdapterLayout | null = null,
  ): Promise<number> {
    const state = from instanceof Map ? freshState(from) : (from as TrainerState);
    const model = this.#model(folder);
    if (trainable !== 'weights') await model.expectTraining(trainable, reference);
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

  /** Gradients added up so far, by trainable, which the trainer then forgets. */
  takeGradients(handle: number): Map<string, Tensor> {
    return this.#trainer(handle).takeGradients();
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
  readonly #passBytes: number;

  constructor(sessions: ModelSessions, passBytes: number) {
    this.sessions = sessions;
    this.#passBytes = passBytes;
    this.#config = sessions.checkpoint.config;
  }

  async rollout(request: RolloutRequest): Promise<Completion[]> {
    checkRollout(this.#config, request);
    if (!request.prompts.length) return [];
    return this.#sample(singleSampling(request, this.#config.vocabulary), request.adapter?.layout ?? null, null);
  }

  /** Completions of each group, as the group's own request would have them. */
  async rolloutGroups(request: GroupedRolloutRequest): Promise<Completion[][]> {
    const { groups } = request;
    checkGroups(this.#config, request);
    if (!groups.length) return [];
    const completions = await this.#sample(
      groupedSampling(request, this.#config.vocabulary),
      groups[0]!.adapter.layout,
      groups.length,
    );
    return completionsByGroup(request, completions);
  }

  #sample(sampling: Sampling, layout: AdapterLayout | null, adapters: number | null): Promise<Completion[]> {
    const fits = (size: RolloutSize) => rolloutWorkingBytes(this.#config, size) <= this.#passBytes;
    return rolloutInParts(sampling, fits, (part) => this.#samplePart(part, layout, adapters));
  }

  async #samplePart(sampling: Sampling, layout: AdapterLayout | null, adapters: number | null): Promise<Completion[]> {
    const graphs = this.#rolloutGraphs(layout, adapters);
    // Both graphs of a step-by-step rollout are known before the first runs: what it hands on lives as long as its session.
    for (const graph of graphs) await this.sessions.add(graph);
    const [first, next] = graphs.map((graph) => (feeds: Feeds) => this.sessions.run(graph, feeds));
    return next
      ? stepRollout({ prompt: first!, step: next }, sampling, modelWindow(this.#config))
      : loopRollout(first!, sampling);
  }

  /** Have what goes with an update of an adapter compiled with it. */
  async expectTraining(layout: AdapterLayout, reference: AdapterLayout | null): Promise<void> {
    if (!this.sessions.shared) return;
    for (const graph of this.#rolloutGraphs(layout, null)) await this.sessions.add(graph);
    await this.sessions.add(this.#logProbGraph(reference));
  }

  /** The graph of a whole rollout, or where the provider has no Loop that of its prompts and that of a step. */
  #rolloutGraphs(layout: AdapterLayout | null, adapters: number | null): ModelGraph[] {
    const graph = (part: string, emit: typeof emitRollout): ModelGraph => ({
      key: graphKey(part, layout, adapters),
      emit: (g, weights) => emit(g, this.#config, weights(), layout, adapters),
    });
    if (hasLoop(this.sessions.settings.provider)) return [graph('rollout', emitRollout)];
    return [graph('prompt', emitPrompts), graph('step', emitStep)];
  }

  #logProbGraph(layout: AdapterLayout | null, afterPrefix = false): ModelGraph {
    const { headRows } = this.sessions.plan;
    const emitTokens = afterPrefix ? rowsAfterPrefix : undefined;
    return {
      key: graphKey(afterPrefix ? 'logProbs after a prefix' : 'logProbs', layout, null),
      emit: (g, weights) => emitLogProbs(g, this.#config, weights(), layout, headRows, emitTokens),
    };
  }

  /** Layer → [sequences, poolings, width]. */
  async hiddenStates(request: HiddenRequest): Promise<Map<number, Tensor>> {
    const { sequences, layers, poolings, adapter = null } = request;
    checkHidden(this.#config, request);
    const graph: ModelGraph = {
      key: graphKey(`hidden ${layers.join()}`, adapter?.layout ?? null, null),
      emit: (g, weights) => emitHidden(g, this.#config, weights(), layers, adapter?.layout ?? null),
    };
    const { width } = this.#config;
    const row = poolings.length * width;
    const states = new Map(
      layers.map((layer) => [
        layer,
        { shape: [sequences.length, poolings.length, width], data: new Float32Array(sequences.length * row) },
      ]),
    );
    for (const part of this.hiddenBatches(sequences)) {
      const batch = part.map((i) => sequences[i]!);
      const time = largest(batch.map((s) => s.length));
      const out = await this.sessions.run(graph, {
        ids: integers(padRows(batch, time), [batch.length, time]),
        pooling: floats(poolingWeights(batch, time, poolings), [batch.length, poolings.length, time]),
        ...adapterFeeds(adapter),
      });
      for (const [layer, { data }] of states) {
        const pooled = floatData(out[hiddenName(layer)]);
        part.forEach((i, r) => data.set(pooled.subarray(r * row, (r + 1) * row), i * row));
      }
    }
    return states;
  }

  /** Indices of the sequences that share a forward pass for hidden states, pass by pass; those of one pass alone are that pass again. */
  hiddenBatches(sequences: HiddenRequest['sequences']): number[][] {
    const lengths = sequences.map((sequence) => sequence.length);
    const fits = (rows: number, longest: number) => forwardBytes(this.#config, rows, longest) <= this.#passBytes;
    return packByLength(lengths, { ...FORWARD_BATCH, fits });
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

/** A graph's name among its model's: what it does, for adapters of which layout, and for how many at once. */
function graphKey(part: string, layout: AdapterLayout | null, adapters: number | null): string {
  return `${part} ${adapters === null ? '' : `${adapters} × `}${layoutKey(layout)}`;
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
