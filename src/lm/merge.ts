/** An adapter merged into its checkpoint: W + (α / r) B A in the place of W, in the very same files. Hu et al. 2021. */
import { chmodSync, closeSync, copyFileSync, fsyncSync, openSync, readSync, realpathSync, writeSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Tensor } from '../onnx/session.js';
import { scaleOf } from './adapter.js';
import type { Adapter } from './adapter.js';
import { narrow } from './narrow.js';
import { readable, toFloat32 } from './safetensors.js';
import type { TensorEntry } from './safetensors.js';
import { openWeightFiles } from './weight-files.js';

/** Owner writes, all read: a cache's files may be for reading only. */
const FILE_MODE = 0o644;

/**
 * Write a checkpoint's weights with an adapter merged into them, in files of the same names, shards as shards, each tensor in the type that
 * it is stored in. A narrower type than float32 rounds the sum once.
 * @returns the paths of the files, in `to`
 */
export function writeMergedWeights(folder: string, adapter: Adapter, to: string): string[] {
  const { paths, tensors } = openWeightFiles(folder);
  return paths.map((path) => {
    const target = join(to, basename(path));
    copyFileSync(path, target);
    chmodSync(target, FILE_MODE);
    const file = basename(realpathSync(path));
    const handle = openSync(target, 'r+');
    try {
      for (const [name, tensor] of tensors) {
        const module = name.replace(/\.weight$/, '');
        const A = adapter.factors.get(`${module}.lora_A`);
        const B = adapter.factors.get(`${module}.lora_B`);
        if (tensor.file === file && A && B)
          mergeTensor(handle, readable(path, name, tensor), A, B, scaleOf(adapter.layout, module));
      }
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    return target;
  });
}

function mergeTensor(handle: number, { type, offset, bytes }: TensorEntry, A: Tensor, B: Tensor, scale: number): void {
  const raw = new Uint8Array(bytes);
  readSync(handle, raw, 0, bytes, offset);
  const weights = toFloat32(raw, type);
  addProduct(weights, A, B, scale);
  writeSync(handle, narrow(weights, type), 0, bytes, offset);
}

/** weights [out, in] += scale · B [out, rank] A [rank, in]; each element is summed in float64 and rounded once. */
function addProduct(weights: Float32Array, A: Tensor, B: Tensor, scale: number): void {
  const [rank, into] = A.shape as readonly [number, number];
  const [out] = B.shape as readonly [number, number];
  const sums = new Float64Array(into);
  for (let row = 0; row < out; row++) {
    sums.fill(0);
    for (let k = 0; k < rank; k++) {
      const b = scale * B.data[row * rank + k]!;
      for (let column = 0; column < into; column++) sums[column]! += b * A.data[k * into + column]!;
    }
    for (let column = 0; column < into; column++) weights[row * into + column]! += sums[column]!;
  }
}
