/** Optimisation of one model's trainables: gradients of micro-batches, added up, then an AdamW step. Runs in the thread that owns the sessions. */
import { UserError } from '../errors.js';
import { bool, dialectOf, floatData, floats, integers, scalar, Session } from '../onnx/session.js';
import type { Feeds, Fetches, SessionSettings, Tensor } from '../onnx/session.js';
import { accumulateGraph, adamWGraph, firstMoment, nextName, secondMoment } from './adamw-graph.js';
import type { Checkpoint } from './checkpoint.js';
import { layoutKey } from './adapter.js';
import { batchRows } from './batch-rows.js';
import type { TokenBatch } from './batch-rows.js';
import { ModelSessions } from './model-sessions.js';
import type { ModelGraph } from './model-sessions.js';
import { rowsAfterPrefix } from './prefix-graph.js';
import { checkLength } from './request-checks.js';
import { emitUpdate, gradientName, trainableShapes } from './update-graph.js';
import type { Trainable } from './update-graph.js';

export interface PolicyBatch extends TokenBatch {
  readonly advantages: Float32Array;
  /** log π_old of the rollout; null takes π itself, as supervised training and a first on-policy step do. */
  readonly oldLogProbs: Float32Array | null;
  /** log π_ref; null where no KL is asked for. */
  readonly referenceLogProbs: Float32Array | null;
}

export interface LossSettings {
  /** Divisor of the summed loss: the token count of the whole batch, over all its micro-batches. */
  readonly tokens: number;
  /** ε of the clipped ratio. */
  readonly clip: number;
  /** β, coefficient of the KL to the reference. */
  readonly kl: number;
  /** c, coefficient of the entropy bonus. */
  readonly entropy: number;
}

export interface LossReport {
  readonly loss: number;
  /** Σ over tokens of log π − log π_ref, nats; 0 without a reference. */
  readonly klSum: number;
  readonly entropySum: number;
  /** Tokens whose ratio the clip moved. */
  readonly clipped: number;
  /** log π of each label, [batch, time]. */
  readonly logProbs: Float32Array;
}

export interface AdamWSettings {
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  readonly weightDecay: number;
  /** Global gradient norm above which gradients are scaled down. */
  readonly maxNorm: number;
}

/** Everything a resumed run needs to go on as if it had not stopped: values and both moments, by name, and the step count. */
export interface TrainerState {
  readonly step: number;
  readonly tensors: ReadonlyMap<string, Tensor>;
}

export class Trainer {
  readonly #sessions: ModelSessions;
  /** Whether the sessions are this trainer's alone. */
  readonly #owned: boolean;
  readonly #update: ModelGraph;
  /** The same after a common prefix; compiled when a batch first has one. */
  readonly #updateAfterPrefix: ModelGraph;
  readonly #adamW: Session;
  readonly #accumulate: Session;
  readonly #shapes: ReadonlyMap<string, readonly number[]>;
  /** Values and both moments, as ONNX Runtime holds them. */
  #tensors: Fetches;
  #gradients: Fetches | null = null;
  #step: number;

  private constructor(
    [sessions, owned]: readonly [ModelSessions, boolean],
    [update, updateAfterPrefix]: readonly [ModelGraph, ModelGraph],
    [adamW, accumulate]: readonly [Session, Session],
    shapes: ReadonlyMap<string, readonly number[]>,
    state: TrainerState,
  ) {
    this.#sessions = sessions;
    this.#owned = owned;
    [this.#update, this.#updateAfterPrefix] = [update, updateAfterPrefix];
    [this.#adamW, this.#accumulate] = [adamW, accumulate];
    this.#shapes = shapes;
    this.#step = state.step;
    this.#tensors = Object.fromEntries([...state.tensors].map(([name, t]) => [name, floats(t.data, t.shape)]));
  }

  /**
   * Train `trainable` of a checkpoint from `state`: a fresh one is `freshState(values)`. Over sessions that are given, it shares a
   * model's weights with its other graphs.
   */
  static async create(
    model: Checkpoint | ModelSessions,
    trainable: Trainable,
    state: TrainerState,
    settings: SessionSettings,
  ): Promise<Trainer> {
    const owned = !(model instanceof ModelSessions);
    const sessions = owned ? new ModelSessions(model, settings) : model;
    const { config } = sessions.checkpoint;
    const shapes = trainableShapes(config, trainable);
    checkState(shapes, state);
    const key = `update ${trainable === 'weights' ? trainable : layoutKey(trainable)}`;
    const update: ModelGraph = {
      key,
      emit: (g, weights) => emitUpdate(g, config, weights, trainable, sessions.plan),
    };
    const updateAfterPrefix: ModelGraph = {
      key: `${key} after a prefix`,
      emit: (g, weights) => emitUpdate(g, config, weights, trainable, sessions.plan, rowsAfterPrefix),
    };
    await sessions.add(update);
    // Gradients and moments lie in the host's memory, so the optimizer works there: a device would have them sent to and fro.
    const host = { provider: 'cpu', threads: settings.threads } as const;
    const adamW = await Session.create(adamWGraph(shapes, dialectOf('cpu')), host);
    const accumulate = await Session.create(accumulateGraph(shapes, dialectOf('cpu')), host);
    return new Trainer([sessions, owned], [update, updateAfterPrefix], [adamW, accumulate], shapes, state);
  }

  /**
   * Add a micro-batch's gradients. @returns its share of the loss and the log-probabilities it computed.
   * @throws RangeError when a KL is asked for without a reference's log-probabilities
   */
  async accumulate(batch: PolicyBatch, loss: LossSettings): Promise<LossReport> {
    const { config } = this.#sessions.checkpoint;
    checkLength(config, (batch.prefix?.length ?? 0) + batch.time);
    // Zeros in their place would pull every token's probability towards 1.
    if (batch.referenceLogProbs === null && loss.kl !== 0) {
      throw new RangeError(`a KL of weight ${loss.kl} needs the reference's log-probabilities`);
    }
    const rows = batchRows(batch, config.heads / config.kvHeads);
    const zeros = new Float32Array(batch.batch * batch.time);
    const given = (values: Float32Array | null) => floats(rows.pack(values ?? zeros), rows.shape);
    const feeds: Feeds = {
      ...rows.feeds,
      labels: integers(rows.pack(batch.labels), rows.shape),
      mask: given(batch.mask),
      advantages: given(batch.advantages),
      oldLogProbs: given(batch.oldLogProbs),
      referenceLogProbs: given(batch.referenceLogProbs),
      onPolicy: bool(batch.oldLogProbs === null),
      tokens: scalar(loss.tokens),
      clip: scalar(loss.clip),
      kl: scalar(loss.kl),
      entropy: scalar(loss.entropy),
    };
    for (const name of this.#shapes.keys()) feeds[name] = this.#tensors[name]!;
    const out = await this.#sessions.run(batch.prefix ? this.#updateAfterPrefix : this.#update, feeds);
    await this.#add(out);
    const value = (name: string) => floatData(out[name])[0]!;
    return {
      loss: value('loss'),
      klSum: batch.referenceLogProbs ? value('klSum') : 0,
      entropySum: value('entropySum'),
      clipped: value('clipped'),
      logProbs: rows.unpack(floatData(out['logProbs'])),
    };
  }

  async #add(out: Fetches): Promise<void> {
    if (!this.#gradients) {
      this.#gradients = Object.fromEntries([...this.#shapes.keys()].map((name) => [name, out[gradientName(name)]!]));
      return;
    }
    const feeds: Feeds = {};
    for (const name of this.#shapes.keys()) {
      feeds[`a.${name}`] = this.#gradients[name]!;
      feeds[`b.${name}`] = out[gradientName(name)]!;
    }
    this.#gradients = await this.#accumulate.run(feeds);
  }

  /** Gradients added so far, by trainable. */
  gradients(): Map<string, Tensor> {
    return new Map(
      [...this.#shapes].map(([name, shape]) => [name, { shape, data: floatData(this.#gradients?.[name]) }]),
    );
  }

  /** Gradients added so far, which are then forgotten. */
  takeGradients(): Map<string, Tensor> {
    const gradients = this.gradients();
    this.#gradients = null;
    return gradients;
  }

  /** Apply the gathered gradients and forget them. @returns their global norm before clipping. */
  async step(settings: AdamWSettings): Promise<{ gradientNorm: number }> {
    if (!this.#gradients) throw new Error('step() before any accumulate()');
    this.#step++;
    const feeds: Feeds = {
      learningRate: scalar(settings.learningRate),
      beta1: scalar(settings.beta1),
      beta2: scalar(settings.beta2),
      epsilon: scalar(settings.epsilon),
      weightDecay: scalar(settings.weightDecay),
      maxNorm: scalar(settings.maxNorm),
      correction1: scalar(1 / (1 - settings.beta1 ** this.#step)),
      correction2: scalar(1 / (1 - settings.beta2 ** this.#step)),
    };
    const names = [...this.#shapes.keys()].flatMap((name) => [name, firstMoment(name), secondMoment(name)]);
    for (const name of names) feeds[name] = this.#tensors[name]!;
    for (const name of this.#shapes.keys()) feeds[gradientName(name)] = this.#gradients[name]!;
    const out = await this.#adamW.run(feeds);
    this.#tensors = Object.fromEntries(names.map((name) => [name, out[nextName(name)]!]));
    this.#gradients = null;
    return { gradientNorm: floatData(out['gradientNorm'])[0]! };
  }

  /** The trainables' current values. */
  values(): Map<string, Tensor> {
    return new Map([...this.#shapes].map(([name, shape]) => [name, { shape, data: floatData(this.#tensors[name]) }]));
  }

  /** Everything that `create` needs to go on from here. */
  state(): TrainerState {
    const tensors = Object.entries(this.#tensors).map(
      ([name, t]) => [name, { shape: t.dims, data: floatData(t) }] as const,
    );
    return { step: this.#step, tensors: new Map(tensors) };
  }

  async release(): Promise<void> {
    if (this.#owned) await this.#sessions.release();
    else for (const { key } of [this.#update, this.#updateAfterPrefix]) await this.#sessions.drop(key);
    await this.#adamW.release();
    await this.#accumulate.release();
  }
}

/** State of training that has not begun: zero moments. */
export function freshState(values: ReadonlyMap<string, Tensor>): TrainerState {
  const tensors = new Map<string, Tensor>();
  for (const [name, { shape, data }] of values) {
    tensors.set(name, { shape, data });
    tensors.set(firstMoment(name), { shape, data: new Float32Array(data.length) });
    tensors.set(secondMoment(name), { shape, data: new Float32Array(data.length) });
  }
  return { step: 0, tensors };
}

/** @throws UserError when a state is not one of these trainables. */
function checkState(shapes: ReadonlyMap<string, readonly number[]>, { tensors }: TrainerState): void {
  for (const [trainable, shape] of shapes) {
    for (const name of [trainable, firstMoment(trainable), secondMoment(trainable)]) {
      const found = tensors.get(name)?.shape.join();
      if (found === shape.join()) continue;
      const what = found === undefined ? 'is missing' : `has shape [${found}], not [${shape.join()}]`;
      throw new UserError(`the training state belongs to another model or adapter: '${name}' ${what}`);
    }
  }
}
