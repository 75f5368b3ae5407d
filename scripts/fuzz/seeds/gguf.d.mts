/** A value of the metadata with its type, or with `[type]` a list of such. */
export type GgufValue = readonly [type: string | readonly [string], value: unknown];
export interface GgufTensorData {
  readonly name: string;
  /** Rows first. */
  readonly shape: readonly number[];
  /** The format's number. */
  readonly type: number;
  readonly data: Uint8Array;
  readonly offset?: number | bigint;
}
export function ggufFile(file: {
  readonly metadata: Readonly<Record<string, GgufValue>>;
  readonly tensors: readonly GgufTensorData[];
  readonly version?: number;
  readonly keys?: number | bigint;
  readonly count?: number | bigint;
}): Uint8Array;
export function f32Bytes(values: Float32Array): Uint8Array;
export const PIECES: Readonly<Record<string, GgufValue>>;
export const PIECE_COUNT: number;
export const LLAMA: Readonly<Record<string, GgufValue>>;
export const LLAMA_TENSORS: readonly GgufTensorData[];
