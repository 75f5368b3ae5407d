/** What the pool and its workers say to each other. */
import type { PassReply as Pass } from '../passes.js';
import type { Snapshot } from './interpreter.js';

/** One pass of one program over one interpreter. */
export interface PassRequest {
  readonly kind: 'pass';
  readonly code: string;
  readonly calls: readonly string[];
  /** Make the calls last to first. */
  readonly reverse: boolean;
  readonly oppositeIds: boolean;
  readonly facts: boolean;
  readonly outputBytes: number;
  readonly resultBytes: number;
}

/** Texts to read as literal call arguments; nothing is executed. */
export interface LiteralsRequest {
  readonly kind: 'literals';
  readonly texts: readonly string[];
}

export type Request = PassRequest | LiteralsRequest;

export interface PassReply extends Pass {
  readonly kind: 'pass';
}

export interface LiteralsReply {
  readonly kind: 'literals';
  /** Null when the interpreter gave up on one of them. */
  readonly literals: readonly (string | null)[] | null;
  readonly milliseconds: number;
}

export type Reply = PassReply | LiteralsReply;

/** Where a request runs: which snapshot, and in a module of which memory maximum. Both sides cache by these keys. */
export interface Place {
  readonly variant: number;
  readonly memoryPages: number;
}

export interface ToWorker {
  readonly id: number;
  readonly request: Request;
  readonly place: Place;
  /** Sent once each to a worker that has not seen them. */
  readonly module?: WebAssembly.Module;
  readonly snapshot?: Snapshot;
}

export type FromWorker =
  /** `thread` is its name for `threadMilliseconds`; `began`, in shared memory, what that said as the latest program began. */
  | { readonly kind: 'ready'; readonly thread: string | null; readonly began: Float64Array }
  /** `worn`: the worker holds memory that only its end frees. */
  | { readonly kind: 'reply'; readonly id: number; readonly reply: Reply; readonly worn: boolean };

export type WorkerJob =
  | {
      readonly job: 'boot';
      readonly module: WebAssembly.Module;
      readonly source: string;
      readonly variant: Snapshot['variant'];
    }
  | { readonly job: 'serve' };
