/** A checkpoint: a Hugging Face folder of `config.json`, weights in one file or in shards, and tokenizer files. */
import { createHash } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../errors.js';
import type { ComputeType } from '../onnx/compute-type.js';
import type { Differentiable } from '../onnx/differentiable.js';
import type { Value } from '../onnx/graph.js';
import type { Tensor } from '../onnx/session.js';
import { makeFolder, writeFileAtomic } from '../store/files.js';
import { formatConfig, readConfig, weightShapes } from './config.js';
import type { DecoderConfig } from './config.js';
import { readable, readTensors, writeTensors } from './safetensors.js';
import type { TensorEntry, TensorType } from './safetensors.js';
import { openWeightFiles, WEIGHTS_FILE, WEIGHTS_INDEX } from './weight-files.js';
import type { PlacedTensor } from './weight-files.js';

const EMBEDDING = 'model.embed_tokens.weight';
const HEAD = 'lm_head.weight';
/** Bytes of a file that are looked at at a time. */
const PIECE = 1 << 20;

export interface Checkpoint {
  readonly folder: string;
  readonly config: DecoderConfig;
  /** Where the files of `entries` lie: what a session of its graphs calls the external folder. */
  readonly weightsFolder: string;
  /** The tensors that the configuration calls for; what else the files hold is nobody's. */
  readonly entries: ReadonlyMap<string, CheckpointTensor>;
}

export type CheckpointTensor = TensorEntry & PlacedTensor;

/** Open a checkpoint without reading its weights. @throws UserError when a file is missing, corrupt or does not fit the configuration. */
export function openCheckpoint(folder: string): Checkpoint {
  const named = readConfig(folder);
  const { folder: weightsFolder, paths, tensors } = openWeightFiles(folder);
  const [embedding, head] = [tensors.get(EMBEDDING), tensors.get(HEAD)];
  // As transformers does: a head of its own counts, whatever config.json says of the two.
  const ownHead = named.tiedHead && embedding && head && !isSame(weightsFolder, embedding, head);
  const config = ownHead ? { ...named, tiedHead: false } : named;
  // The file that lists the tensors, for a message.
  const listed = paths.length === 1 ? paths[0]! : join(folder, WEIGHTS_INDEX);
  const entries = new Map<string, CheckpointTensor>();
  for (const [name, shape] of weightShapes(config)) {
    const entry = tensors.get(name) ?? (name === EMBEDDING && config.tiedHead ? head : undefined);
    if (!entry) throw new UserError(`${listed} has no tensor '${name}', which config.json calls for`);
    if (entry.shape.join() !== shape.join()) {
      throw new UserError(
        `${listed}: '${name}' has shape [${entry.shape.join()}], config.json calls for [${shape.join()}]`,
      );
    }
    entries.set(name, { ...entry, ...readable(listed, name, entry) });
  }
  return { folder, config, weightsFolder, entries };
}

/** All weights as float32, in the configuration's order. */
export function readWeights({ folder, entries }: Checkpoint): Map<string, Tensor> {
  const stored = new Set([...entries.values()].map((entry) => entry.stored));
  const tensors = openWeightFiles(folder).paths.map((path) => readTensors(path, (name) => stored.has(name)));
  const find = (name: string): Tensor => tensors.find((shard) => shard.has(name))!.get(name)!;
  return new Map([...entries].map(([name, entry]) => [name, find(entry.stored)]));
}

/** Whether two tensors of a checkpoint hold the same bytes, compared piece by piece. */
function isSame(folder: string, a: PlacedTensor, b: PlacedTensor): boolean {
  if (a.type !== b.type || a.shape.join() !== b.shape.join() || a.bytes !== b.bytes) return false;
  const files = [a, b].map(({ file }) => openSync(join(folder, file), 'r')) as [number, number];
  try {
    const pieces = [Buffer.allocUnsafe(PIECE), Buffer.allocUnsafe(PIECE)] as const;
    for (let at = 0; at < a.bytes; at += PIECE) {
      const size = Math.min(PIECE, a.bytes - at);
      readSync(files[0], pieces[0], 0, size, a.offset + at);
      readSync(files[1], pieces[1], 0, size, b.offset + at);
      if (!pieces[0].subarray(0, size).equals(pieces[1].subarray(0, size))) return false;
    }
    return true;
  } finally {
    files.forEach((file) => closeSync(file));
  }
}

/** Write `config.json` and `model.safetensors`; tokenizer files are the caller's. */
export function writeCheckpoint(
  folder: string,
  config: DecoderConfig,
  weights: ReadonlyMap<string, Tensor>,
  tokens: { bos: number; eos: number; pad: number },
): void {
  makeFolder(folder);
  writeTensors(join(folder, WEIGHTS_FILE), weights);
  writeFileAtomic(join(folder, 'config.json'), formatConfig(config, tokens));
}

/** SHA-256 over configuration and weights: what a probe's card and a run's record call the model. */
export function checkpointHash(folder: string): string {
  const hash = createHash('sha256');
  const piece = Buffer.allocUnsafe(PIECE);
  for (const file of [join(folder, 'config.json'), ...openWeightFiles(folder).paths]) {
    let descriptor: number;
    try {
      descriptor = openSync(file, 'r');
    } catch (cause) {
      throw new UserError(`${file} cannot be read (${(cause as NodeJS.ErrnoException).code})`, { cause });
    }
    try {
      for (let size = readSync(descriptor, piece); size > 0; size = readSync(descriptor, piece)) {
        hash.update(piece.subarray(0, size));
      }
    } finally {
      closeSync(descriptor);
    }
  }
  return hash.digest('hex');
}

const ELEMENT = { F32: 'float32', F16: 'float16', BF16: 'bfloat16' } as const;

/** A weight of a checkpoint by its name. */
export type BoundWeights = (name: string) => Value;

/** The type that a model's linear maps are stored in; float32 where they are not of one. */
export function storedType(checkpoint: Checkpoint): ComputeType {
  return commonType(linearTypes(checkpoint));
}

/** The types that a model's linear maps are stored in, each once. */
export function linearTypes({ config, entries }: Checkpoint): TensorType[] {
  const matrices = [...weightShapes(config)].filter(
    ([name, { length }]) => length === 2 && (name !== EMBEDDING || config.tiedHead),
  );
  return [...new Set(matrices.map(([name]) => entries.get(name)!.type))].toSorted();
}

/** The type of tensors by their types in a file; float32 where they are not of one. */
export function commonType(types: readonly TensorType[]): ComputeType {
  const [type, ...others] = new Set(types);
  return type === undefined || others.length ? 'float32' : ELEMENT[type];
}

/**
 * The weights as constants of a graph, read in place from the file. In a float32 graph all are widened to that where stored narrower; else
 * matrices stay as they are stored, for the products and the embedding to take them.
 */
export function bindWeights(g: Differentiable, checkpoint: Checkpoint): BoundWeights {
  const values = new Map<string, Value>();
  for (const name of weightShapes(checkpoint.config).keys()) {
    const entry = checkpoint.entries.get(name)!;
    const data = { file: entry.file, offset: entry.offset, bytes: entry.bytes };
    const stored = g.initializer(name, entry.shape, ELEMENT[entry.type], data);
    const multiplies = entry.shape.length === 2 && g.dtype !== 'float32';
    values.set(name, multiplies ? stored : g.cast(stored, 'float32'));
  }
  return (name) => values.get(name)!;
}

/** The weights as differentiable inputs of a graph. */
export function weightInputs(g: Differentiable, config: DecoderConfig): Map<string, Value> {
  return new Map([...weightShapes(config)].map(([name, shape]) => [name, g.input(name, shape, 'float32', true)]));
}
