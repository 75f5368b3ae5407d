/** ONNX Runtime sessions with the settings that training needs, and the tensors that go in and out of them. */
import { join } from 'node:path';
import * as ort from 'onnxruntime-node';
import type { DTypeSetting } from './compute-type.js';
import type { Dialect, Graph } from './graph.js';
import { enterWebGpu, leaveWebGpu } from './webgpu-thread.js';

ort.env.logLevel = 'fatal';

/** Where a graph runs. */
export const EXECUTION_PROVIDERS = ['cuda', 'webgpu', 'coreml', 'dml', 'cpu'] as const;
export type ExecutionProvider = (typeof EXECUTION_PROVIDERS)[number];

/** A dense float32 tensor on the host: row-major data and its shape. */
export interface Tensor {
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

export interface SessionSettings {
  readonly provider: ExecutionProvider;
  /** Threads inside an operator (cpu). */
  readonly threads: number;
  /** Type of large products in the graphs that a model is compiled to; auto unless given. */
  readonly dtype?: DTypeSetting | undefined;
  /** Folder of external initializers. */
  readonly externalFolder?: string | undefined;
  /** Let kernels keep their own layout of the weights (default): faster, but a copy, where else the file's pages are all there is. */
  readonly prepack?: boolean | undefined;
  /** Folder to record in where each node runs; written on release, for `readPlacements`. */
  readonly profile?: string | undefined;
}

export type Feeds = Record<string, ort.Tensor>;
export type Fetches = Record<string, ort.Tensor>;

/** Sessions that have recorded where their nodes run. */
let recorded = 0;

/** A compiled graph. One `run` at a time; `release` it from the thread that made it. */
export class Session {
  readonly #session: ort.InferenceSession;
  readonly #settings: SessionSettings;

  private constructor(session: ort.InferenceSession, settings: SessionSettings) {
    this.#session = session;
    this.#settings = settings;
  }

  /** @throws RunError for webgpu when another thread of the process has it. */
  static async create(graph: Graph, settings: SessionSettings): Promise<Session> {
    const onWebGpu = settings.provider === 'webgpu';
    if (onWebGpu) enterWebGpu();
    try {
      return await Session.#compile(graph, settings);
    } catch (error) {
      if (onWebGpu) leaveWebGpu();
      throw error;
    }
  }

  static async #compile(graph: Graph, settings: SessionSettings): Promise<Session> {
    const session: Record<string, string> = {};
    if (settings.externalFolder) session['model_external_initializers_file_folder_path'] = settings.externalFolder;
    if (settings.prepack === false) session['disable_prepacking'] = '1';
    const onDevice = settings.provider === 'webgpu' ? graph.deviceOutputs : [];
    return new Session(
      await ort.InferenceSession.create(graph.encode(), {
        executionProviders: [settings.provider],
        intraOpNumThreads: settings.threads,
        interOpNumThreads: 1,
        // Plans of one run do not fit the next when shapes differ, and double the peak memory when they do.
        enableMemPattern: false,
        enableCpuMemArena: true,
        // Errors are thrown; ONNX Runtime need not print them too.
        logSeverityLevel: 4,
        // Idle threads sleep instead of spinning: sandboxes and other models share the cores.
        extra: { session: { ...session, intra_op: { allow_spinning: '0' }, set_denormal_as_zero: '1' } },
        ...(onDevice.length && {
          preferredOutputLocation: Object.fromEntries(
            graph.outputs.map(({ name }) => [name, onDevice.includes(name) ? 'gpu-buffer' : 'cpu'] as const),
          ),
        }),
        ...(settings.profile && {
          enableProfiling: true,
          profileFilePrefix: join(settings.profile, `session-${recorded++}`),
        }),
      }),
      settings,
    );
  }

  /** All outputs, or those asked for. */
  run(feeds: Feeds, outputs?: readonly string[]): Promise<Fetches> {
    return outputs ? this.#session.run(feeds, outputs) : this.#session.run(feeds);
  }

  async release(): Promise<void> {
    if (this.#settings.profile) this.#session.endProfiling();
    await this.#session.release();
    if (this.#settings.provider === 'webgpu') leaveWebGpu();
  }
}

/** Let go of a tensor that lies on a device; the host's are left to the garbage collector. */
export function dispose(tensor: ort.Tensor): void {
  if (tensor.location === 'gpu-buffer') tensor.dispose();
}

export function floats(data: Float32Array, shape: readonly number[]): ort.Tensor {
  return new ort.Tensor('float32', data, shape);
}

export function scalar(value: number): ort.Tensor {
  return new ort.Tensor('float32', Float32Array.of(value), []);
}

export function integers(data: BigInt64Array, shape: readonly number[]): ort.Tensor {
  return new ort.Tensor('int64', data, shape);
}

export function bool(value: boolean): ort.Tensor {
  return new ort.Tensor('bool', Uint8Array.of(value ? 1 : 0), []);
}

/** The operators a provider is right with: ONNX Runtime's contributed ones where it has kernels for them whose every output is right. */
export function dialectOf(provider: ExecutionProvider): Dialect {
  return provider === 'cpu' || provider === 'cuda' ? 'fused' : 'standard';
}

/** Whether a provider has a kernel for Loop; one that has none decodes token by token, its outputs kept on the device from run to run. */
export function hasLoop(provider: ExecutionProvider): boolean {
  return provider !== 'webgpu';
}

/** A float32 result's data. */
export function floatData(tensor: ort.Tensor | undefined): Float32Array {
  return tensor!.data as Float32Array;
}
