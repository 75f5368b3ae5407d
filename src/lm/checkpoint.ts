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
import { nameWeights } from './weight-names.js';
import { openWeightFiles, WEIGHTS_FILE, WEIGHTS_INDEX } from './weight-files.js';
import type { PlacedTensor } from './weight-files.js';

export interface Checkpoint {
  readonly folder: string;
  readonly config: DecoderConfig;
  /** Where the files of `entries` lie: what a session of its graphs calls the external folder. */
  readonly weightsFolder: string;
  /** The tensors that the configuration calls for; what else the files hold is nobody's. */
  readonly entries: ReadonlyMap<string, CheckpointTensor>;
}

export interface CheckpointTensor extends TensorEntry, PlacedTensor {
  readonly type: TensorType;
  /** What its file calls it. */
  readonly name: string;
}

/** Open a checkpoint without reading its weights. @throws UserError when a file is missing, corrupt or does not fit the configuration. */
export function openCheckpoint(folder: string): Checkpoint {
  const declared = readConfig(folder);
  const files = openWeightFiles(folder);
  const { folder: weightsFolder, paths, tensors } = files;
  // The file that lists the tensors, for a message.
  const listed = paths.length === 1 ? paths[0]! : join(folder, WEIGHTS_INDEX);
  const { config, names } = nameWeights(declared, files, listed);
  const entries = new Map<string, CheckpointTensor>();
  for (const [name, shape] of weightShapes(config)) {
    const stored = names.get(name);
    const entry = stored === undefined ? undefined : tensors.get(stored);
    if (!entry) throw new UserError(`${listed} has no tensor '${name}', which config.json calls for`);
    if (entry.shape.join() !== shape.join()) {
      throw new UserError(
        `${listed}: '${name}' has shape [${entry.shape.join()}], config.json calls for [${shape.join()}]`,
      );
    }
    entries.set(name, { ...entry, ...readable(listed, name, entry), name: stored! });
  }
  return { folder, config, weightsFolder, entries };
}

/** All weights as float32, in the configuration's order. */
export function readWeights({ weightsFolder, entries }: Checkpoint): Map<string, Tensor> {
  const files = new Map<string, Set<string>>();
  for (const { file, name } of entries.values()) files.set(file, (files.get(file) ?? new Set()).add(name));
  const tensors = new Map(
    [...files].map(([file, names]) => [file, readTensors(join(weightsFolder, file), (name) => names.has(name))]),
  );
  return new Map([...entries].map(([weight, { file, name }]) => [weight, tensors.get(file)!.get(name)!]));
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
  const piece = Buffer.allocUnsafe(1 << 20);
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

const EMBEDDING = 'model.embed_tokens.weight';

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
