/**
 * The engine: every model, session and trainer, in one thread, because ONNX Runtime's `run` blocks the thread that calls it. Its methods
 * are what the worker serves; all arguments and results can be posted between threads.
 */
import { chooseProvider } from '../onnx/providers.js';
import type { ProviderChoice, ProviderSetting } from '../onnx/providers.js';
import { decodesStepwise, dialectOf, floatData, floats, integers, scalar, Session } from '../onnx/session.js';
import type { Differentiable } from '../onnx/differentiable.js';
import type { Feeds, SessionSettings, Tensor } from '../onnx/session.js';
import { seededRandom } from '../metrics/random.js';
import type { Adapter, AdapterLayout } from './adapter.js';
import { openCheckpoint } from './checkpoint.js';
import type { Checkpoint } from './checkpoint.js';
import { hiddenGraph, hiddenName } from './hidden-graph.js';
import { padRows } from './padding.js';
import { checkHidden, checkLength, checkRollout } from './request-checks.js';
import type { Completion, HiddenRequest, Pooling, RolloutRequest } from './request-checks.js';
import { rolloutGraph } from './rollout-graph.js';
import { promptGraph, stepGraph } from './step-graphs.js';
import { stepRollout } from './step-rollout.js';
import { freshState, Trainer } from './trainer.js';
import type { AdamWSettings, LossReport, LossSettings, PolicyBatch, TokenBatch, TrainerState } from './trainer.js';
import { logProbGraph } from './update-graph.js';
import type { Trainable } from './update-graph.js';

export interface EngineSettings {
  readonly provider: ProviderSetting;
  readonly threads: number;
  /** Checkpoint folder of the model whose step `auto` tries on each provider; without it `auto` takes the first that works. */
  readonly model?: string | undefined;
  /** Folder to record in where each node runs, as sessions are released. */
  readonly profile?: string | undefined;
}

/** Sequences in one forward pass. */
const FORWARD_BATCH = 64;
/** Stands for no stop: the graph's reductions need one to compare with. */
const NO_TOKEN = -1;
/** Compiled graphs kept per model. */
const KEPT_SESSIONS = 8;

export class Engine {
  readonly #settings: SessionSettings;
  readonly choice: ProviderChoice;
  readonly #models = new Map<string, Model>();
  readonly #trainers = new Map<number, Trainer>();
  #nextTrainer = 1;

  private constructor(choice: ProviderChoice, { threads, profile }: EngineSettings) {
    this.choice = choice;
    this.#settings = { provider: choice.provider, threads, profile };
  }

  /** `choice` is the provider, where it has been chosen already. */
  static async create(settings: EngineSettings, choice?: ProviderChoice): Promise<Engine> {
    return new Engine(choice ?? (await chooseProvider(settings.provider)), settings);
  }

  #model(folder: string): Model {
    let model = this.#models.get(folder);
    if (!model) this.#models.set(folder, (model = new Model(openCheckpoint(folder), this.#settings)));
    return model;
  }

  rollout(folder: string, request: RolloutRequest): Promise<Completion[]> {
    return this.#model(folder).rollout(request);
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
    const trainer = await Trainer.create(this.#model(folder).checkpoint, trainable, state, this.#settings);
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

/** One checkpoint's sessions, compiled when first needed. */
class Model {
  readonly checkpoint: Checkpoint;
  readonly #settings: SessionSettings;
  readonly #sessions = new Map<string, Session>();

  constructor(checkpoint: Checkpoint, settings: SessionSettings) {
    this.checkpoint = checkpoint;
    this.#settings = { ...settings, externalFolder: checkpoint.weightsFolder };
  }

  async #session(key: string, graph: () => Differentiable): Promise<Session> {
    let session = this.#sessions.get(key);
    if (session) this.#sessions.delete(key);
    else {
      if (this.#sessions.size >= KEPT_SESSIONS) {
        const [oldest, evicted] = this.#sessions.entries().next().value!;
        this.#sessions.delete(oldest);
        await evicted.release();
      }
      session = await Session.create(graph(), this.#settings);
    }
    this.#sessions.set(key, session);
    return session;
  }

  async rollout(request: RolloutRequest): Promise<Completion[]> {
    const { prompts, perPrompt, maxNewTokens, adapter } = request;
    checkRollout(this.checkpoint.config, request);
    if (!prompts.length) return [];
    const layout = adapter?.layout ?? null;
    if (decodesStepwise(this.#settings.provider)) return this.#stepRollout(request, layout);
    const session = await this.#session(`rollout ${layoutKey(layout)}`, () =>
      rolloutGraph(this.checkpoint, layout, dialectOf(this.#settings.provider)),
    );
    const samples = prompts.length * perPrompt;
    const stopIds = (request.stops.length ? request.stops : [NO_TOKEN]).map(BigInt);
    const promptTime = Math.max(...prompts.map((p) => p.length));
    const random = seededRandom(request.seed);
    const feeds: Feeds = {
      prompts: integers(padRows(prompts, promptTime), [prompts.length, promptTime]),
      promptLengths: integers(
        BigInt64Array.from(prompts, (p) => BigInt(p.length)),
        [prompts.length],
      ),
      uniforms: floats(Float32Array.from({ length: maxNewTokens * samples }, random), [maxNewTokens, samples]),
      stops: integers(BigInt64Array.from(stopIds), [stopIds.length]),
      temperature: scalar(request.temperature),
      ...adapterFeeds(adapter),
    };
    const out = await session.run(feeds);
    const tokens = out['tokens']!.data as BigInt64Array;
    const logProbs = floatData(out['logProbs']);
    const steps = tokens.length / samples;
    const stops = new Set(stopIds);
    return Array.from({ length: samples }, (_, sample) => {
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
    });
  }

  async #stepRollout(request: RolloutRequest, layout: AdapterLayout | null): Promise<Completion[]> {
    const [checkpoint, dialect] = [this.checkpoint, dialectOf(this.#settings.provider)];
    const key = layoutKey(layout);
    const prompt = await this.#session(`prompt ${key}`, () => promptGraph(checkpoint, layout, dialect));
    const step = await this.#session(`step ${key}`, () => stepGraph(checkpoint, layout, dialect));
    return stepRollout({ prompt, step }, request, adapterFeeds(request.adapter));
  }

  /** Layer → [sequences, poolings, width]. */
  async hiddenStates(request: HiddenRequest): Promise<Map<number, Tensor>> {
    const { sequences, layers, poolings } = request;
    checkHidden(this.checkpoint.config, request);
    const session = await this.#session(`hidden ${layers.join()}`, () =>
      hiddenGraph(this.checkpoint, layers, dialectOf(this.#settings.provider)),
    );
    const { width } = this.checkpoint.config;
    const row = poolings.length * width;
    const states = new Map(
      layers.map((layer) => [
        layer,
        { shape: [sequences.length, poolings.length, width], data: new Float32Array(sequences.length * row) },
      ]),
    );
    // Sequences of like length share a pass; the order depends on nothing but the request.
    const order = sequences.map((_, i) => i).sort((a, b) => sequences[a]!.length - sequences[b]!.length || a - b);
    for (let at = 0; at < order.length; at += FORWARD_BATCH) {
      const part = order.slice(at, at + FORWARD_BATCH);
      const batch = part.map((i) => sequences[i]!);
      const time = Math.max(...batch.map((s) => s.length));
      const out = await session.run({
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
    checkLength(this.checkpoint.config, batch.time);
    const layout = adapter?.layout ?? null;
    const session = await this.#session(`logProbs ${layoutKey(layout)}`, () =>
      logProbGraph(this.checkpoint, layout, dialectOf(this.#settings.provider)),
    );
    const shape = [batch.batch, batch.time];
    const out = await session.run({
      ids: integers(batch.ids, shape),
      labels: integers(batch.labels, shape),
      ...adapterFeeds(adapter),
    });
    return floatData(out['logProbs']);
  }

  async release(): Promise<void> {
    for (const session of this.#sessions.values()) await session.release();
    this.#sessions.clear();
  }
}

function layoutKey(layout: AdapterLayout | null): string {
  return layout ? `${layout.rank} ${layout.alpha} ${layout.targets.join()}` : 'base';
}

function adapterFeeds(adapter: Adapter | null): Feeds {
  return Object.fromEntries([...(adapter?.factors ?? [])].map(([name, t]) => [name, floats(t.data, t.shape)]));
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
