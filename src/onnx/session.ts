/** ONNX Runtime sessions with the settings that training needs, and the tensors that go in and out of them. */
import * as ort from 'onnxruntime-node';
import type { Dialect, Graph } from './graph.js';

ort.env.logLevel = 'fatal';

/** Where a graph runs. */
export type ExecutionProvider = 'cuda' | 'webgpu' | 'cpu';

/** A dense float32 tensor on the host: row-major data and its shape. */
export interface Tensor {
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

export interface SessionSettings {
  readonly provider: ExecutionProvider;
  /** Threads inside an operator (cpu). */
  readonly threads: number;
  /** Folder of external initializers. */
  readonly externalFolder?: string | undefined;
  /** Let kernels keep their own layout of the weights (default): faster, but a copy, where else the file's pages are all there is. */
  readonly prepack?: boolean | undefined;
}

export type Feeds = Record<string, ort.Tensor>;
export type Fetches = Record<string, ort.Tensor>;

/** A compiled graph. One `run` at a time; `release` it from the thread that made it. */
export class Session {
  readonly #session: ort.InferenceSession;

  private constructor(session: ort.InferenceSession) {
    this.#session = session;
  }

  static async create(graph: Graph, settings: SessionSettings): Promise<Session> {
    const session: Record<string, string> = {};
    if (settings.externalFolder) session['model_external_initializers_file_folder_path'] = settings.externalFolder;
    if (settings.prepack === false) session['disable_prepacking'] = '1';
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
      }),
    );
  }

  /** All outputs, or those asked for. */
  run(feeds: Feeds, outputs?: readonly string[]): Promise<Fetches> {
    return outputs ? this.#session.run(feeds, outputs) : this.#session.run(feeds);
  }

  release(): Promise<void> {
    return this.#session.release();
  }
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

/** The operators a provider is right with: ONNX Runtime's contributed ones only where their every output was checked. */
export function dialectOf(provider: ExecutionProvider): Dialect {
  return provider === 'cpu' ? 'fused' : 'standard';
}

/** A float32 result's data. */
export function floatData(tensor: ort.Tensor | undefined): Float32Array {
  return tensor!.data as Float32Array;
}
