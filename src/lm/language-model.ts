/** The LanguageModel interface, over checkpoints that live in one engine thread. */
import { SHARE_ENV, Worker } from 'node:worker_threads';
import { availableParallelism } from 'node:os';
import { RunError, UserError } from '../errors.js';
import type { ProviderChoice } from '../onnx/providers.js';
import type { Tensor } from '../onnx/session.js';
import type { Adapter } from './adapter.js';
import type { TokenBatch } from './batch-rows.js';
import { modelHash, readAdapter } from './adapter-folder.js';
import { openCheckpoint } from './checkpoint.js';
import type { DecoderConfig } from './config.js';
import type { Engine, EngineSettings } from './engine.js';
import type { EngineReply } from './engine-worker.js';
import type { Completion, GroupedRolloutRequest, HiddenRequest, RolloutRequest } from './request-checks.js';
import { Tokenizer } from './tokenizer.js';
import type { AdamWSettings, LossReport, LossSettings, PolicyBatch, TrainerState } from './trainer.js';
import type { Trainable } from './update-graph.js';

type Methods = Omit<Engine, 'choice'>;
type Call = <M extends keyof Methods>(
  method: M,
  ...args: Parameters<Methods[M]>
) => Promise<Awaited<ReturnType<Methods[M]>>>;

/** The engine's thread, seen from outside. */
export class EngineThread {
  readonly choice: ProviderChoice;
  readonly #worker: Worker;
  readonly #waiting = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
  #next = 1;
  #closing: Promise<void> | null = null;
  /** Why no call can be answered any more; null while the thread lives. */
  #ended: RunError | null = null;

  private constructor(worker: Worker, choice: ProviderChoice) {
    this.#worker = worker;
    this.choice = choice;
    worker.on('message', (reply: EngineReply) => {
      const waiting = this.#waiting.get(reply.id);
      this.#waiting.delete(reply.id);
      if ('error' in reply) waiting?.reject(revive(reply.error));
      else waiting?.resolve(reply.result as never);
    });
    const fail = (why: string) => {
      this.#ended ??= new RunError(`the engine's thread ended: ${why}; run again to go on`);
      for (const { reject } of this.#waiting.values()) reject(this.#ended);
      this.#waiting.clear();
    };
    worker.on('error', (error) => fail(error.message));
    worker.on('exit', (code) => fail(`exit code ${code}`));
  }

  /** @throws RunError when no execution provider passes its self-test. */
  static async start(settings: Partial<EngineSettings> = {}): Promise<EngineThread> {
    const workerData: EngineSettings = { provider: 'auto', threads: availableParallelism(), ...settings };
    // Threads that share their environment see which of them has WebGPU.
    const worker = new Worker(new URL('./engine-worker.js', import.meta.url), { workerData, env: SHARE_ENV });
    const first = await firstReply(worker);
    if ('error' in first) throw revive(first.error);
    return new EngineThread(worker, first.result as ProviderChoice);
  }

  /** Call a method of the engine in its thread. @throws RunError when the thread has ended; else what the method throws. */
  readonly call: Call = (method, ...args) => {
    if (this.#ended) return Promise.reject(this.#ended);
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, method, args });
    });
  };

  /** Wait for what is running, release every session and end the thread. */
  close(): Promise<void> {
    this.#closing ??= (async () => {
      const exited = new Promise<void>((resolve) => this.#worker.once('exit', () => resolve()));
      await this.call('close');
      await exited;
    })();
    return this.#closing;
  }
}

/** What the thread posts when it has started or could not. @throws when it ends before that. */
function firstReply(worker: Worker): Promise<EngineReply> {
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      worker.off('message', onMessage).off('error', onError).off('exit', onExit);
    };
    const onMessage = (reply: EngineReply): void => {
      settle();
      resolve(reply);
    };
    const onError = (error: Error): void => {
      settle();
      reject(error);
    };
    const onExit = (code: number): void => {
      settle();
      reject(new RunError(`the engine's thread ended before it started: exit code ${code}`));
    };
    worker.on('message', onMessage).on('error', onError).on('exit', onExit);
  });
}

function revive({ name, message, stack }: { name: string; message: string; stack?: string | undefined }): Error {
  const error =
    name === 'UserError' ? new UserError(message) : name === 'RunError' ? new RunError(message) : new Error(message);
  if (stack) error.stack = stack;
  return error;
}

/** What a model's folder says before anything is compiled. */
export interface ModelFiles {
  readonly config: DecoderConfig;
  readonly tokenizer: Tokenizer;
}

/** @throws UserError when a file is missing or corrupt, or the tokenizer belongs to another model. */
export async function openModelFiles(folder: string): Promise<ModelFiles> {
  const { config } = openCheckpoint(folder);
  const tokenizer = await Tokenizer.open(folder);
  if (tokenizer.vocabulary > config.vocabulary) {
    throw new UserError(
      `${folder}: tokenizer.json has ${tokenizer.vocabulary} tokens, config.json says ${config.vocabulary}: the tokenizer belongs to another model`,
    );
  }
  const beyond = tokenizer.ends.find((id) => id >= config.vocabulary);
  if (beyond !== undefined) {
    throw new UserError(`${folder}: eos_token_id ${beyond} is no token of the model's ${config.vocabulary}`);
  }
  return { config, tokenizer };
}

/** A causal language model: a checkpoint in the engine with its tokenizer. Adapters are values passed in, not state. */
export class LanguageModel {
  readonly folder: string;
  readonly config: DecoderConfig;
  readonly tokenizer: Tokenizer;
  readonly #engine: EngineThread;
  /** What is adapted on the checkpoint where nothing else is asked for. */
  readonly adapter: Adapter | null;
  readonly #adapterFolder: string | null;
  #hash: string | null = null;

  private constructor(engine: EngineThread, folder: string, { config, tokenizer }: ModelFiles, adapter: string | null) {
    this.#engine = engine;
    this.folder = folder;
    this.config = config;
    this.tokenizer = tokenizer;
    this.#adapterFolder = adapter;
    this.adapter = adapter === null ? null : readAdapter(adapter, config);
  }

  /**
   * @param adapter the PEFT folder of an adapter that belongs to the model
   * @throws UserError when a file is missing or corrupt, or tokenizer or adapter belong to another model
   */
  static async open(engine: EngineThread, folder: string, adapter: string | null = null): Promise<LanguageModel> {
    return new LanguageModel(engine, folder, await openModelFiles(folder), adapter);
  }

  /** SHA-256 of configuration and weights, the adapter's too. */
  get hash(): string {
    return (this.#hash ??= modelHash(this.folder, this.#adapterFolder));
  }

  /** Completions of each prompt, a prompt's samples adjacent. */
  sample(request: RolloutRequest): Promise<Completion[]> {
    return this.#engine.call('rollout', this.folder, { ...request, adapter: request.adapter ?? this.adapter });
  }

  /** Completions of several adapters in one batch, group by group: what a request of each alone would give. */
  sampleGroups(request: GroupedRolloutRequest): Promise<Completion[][]> {
    return this.#engine.call('rolloutGroups', this.folder, request);
  }

  /** Layer → pooled hidden states [sequences, poolings, width]. */
  hiddenStates(request: HiddenRequest): Promise<Map<number, Tensor>> {
    return this.#engine.call('hiddenStates', this.folder, { ...request, adapter: request.adapter ?? this.adapter });
  }

  /** Indices of the sequences that share a pass for hidden states, pass by pass: asked for pass by pass, their states are the same bits. */
  hiddenBatches(sequences: HiddenRequest['sequences']): Promise<number[][]> {
    return this.#engine.call('hiddenBatches', this.folder, sequences);
  }

  /** log π of each label of a batch, [batch, time]; without an adapter that of the model as it was opened. */
  logProbs(batch: TokenBatch, adapter: Adapter | null): Promise<Float32Array> {
    return this.#engine.call('logProbs', this.folder, batch, adapter ?? this.adapter);
  }

  /** Train this checkpoint's adapter or weights from values, or on from a saved state. */
  async train(trainable: Trainable, from: ReadonlyMap<string, Tensor> | TrainerState): Promise<TrainerThread> {
    const reference = this.adapter?.layout ?? null;
    const handle = await this.#engine.call('createTrainer', this.folder, trainable, from, reference);
    return new TrainerThread(this.#engine, handle);
  }
}

/** A trainer in the engine's thread. */
export class TrainerThread {
  readonly #engine: EngineThread;
  readonly #handle: number;

  constructor(engine: EngineThread, handle: number) {
    this.#engine = engine;
    this.#handle = handle;
  }
  accumulate(batch: PolicyBatch, loss: LossSettings): Promise<LossReport> {
    return this.#engine.call('accumulate', this.#handle, batch, loss);
  }
  step(settings: AdamWSettings): Promise<{ gradientNorm: number }> {
    return this.#engine.call('step', this.#handle, settings);
  }
  state(): Promise<TrainerState> {
    return this.#engine.call('trainerState', this.#handle);
  }
  values(): Promise<Map<string, Tensor>> {
    return this.#engine.call('trainedValues', this.#handle);
  }
  release(): Promise<void> {
    return this.#engine.call('releaseTrainer', this.#handle);
  }
}
