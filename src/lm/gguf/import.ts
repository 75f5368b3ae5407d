/**
 * A GGUF file as a Hugging Face checkpoint. All that the file says is checked against what the decoder calls for before anything is written; then
 * the folder is made beside its place, opened as a run would open it, and renamed.
 */
import { existsSync, readdirSync, renameSync, rmdirSync, rmSync, statfsSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { RunError, UserError } from '../../errors.js';
import { makeFolder, syncFolder, writeFileAtomic } from '../../store/files.js';
import { withStoreErrors } from '../../store/sqlite-errors.js';
import { openCheckpoint } from '../checkpoint.js';
import { parameterCount, parseConfig, weightShapes } from '../config.js';
import type { DecoderConfig } from '../config.js';
import { narrow } from '../narrow.js';
import { TensorWriter } from '../safetensors.js';
import type { TensorType } from '../safetensors.js';
import { Tokenizer } from '../tokenizer.js';
import { WEIGHTS_FILE } from '../weight-files.js';
import { readModel } from './architecture.js';
import type { ImportedModel, ImportedWeight } from './architecture.js';
import { readGguf } from './reader.js';
import type { GgufFile } from './reader.js';
import { readTokenizer } from './tokenizer.js';
import { weightParts } from './weights.js';

/** The types that weights can be written in: float32 holds every quantised weight exactly, bfloat16 takes half the disk. */
export const IMPORT_TYPES = ['bf16', 'f32'] as const;
export type ImportType = (typeof IMPORT_TYPES)[number];
const STORED = { bf16: { tensor: 'BF16', torch: 'bfloat16' }, f32: { tensor: 'F32', torch: 'float32' } } as const;

export interface ImportedGguf {
  readonly file: string;
  /** The checkpoint. */
  readonly folder: string;
  readonly family: string;
  readonly parameters: number;
  /** How many tensors the file has of each of its types. */
  readonly quantised: Readonly<Record<string, number>>;
  readonly dtype: ImportType;
  /** Of the weights that were written. */
  readonly bytes: number;
  readonly hasChat: boolean;
}

export interface ImportSettings {
  readonly folder: string;
  readonly dtype: ImportType;
  /** Told of bytes of weights that are written, of all, and of the tensor in hand. */
  readonly onBytes?: (bytes: number, total: number, tensor: string) => void;
}

/** @throws UserError for what the file or the folder is not; RunError where there is no room */
export async function importGguf(path: string, { folder, dtype, onBytes }: ImportSettings): Promise<ImportedGguf> {
  const target = resolve(folder);
  const file = readGguf(path);
  checkFree(target);
  const model = readModel(file);
  const config = parseConfig(JSON.stringify(model.config), path);
  const weights = inOrder(path, model, config);
  const tokenizer = readTokenizer(file.metadata, config);
  const shapes = new Map([...weights].map(([name, weight]) => [name, weight.tensor.shape]));
  const work = join(dirname(target), `.${basename(target)}.import`);
  try {
    withStoreErrors(target, () => {
      // What a killed import has left.
      rmSync(work, { recursive: true, force: true });
      makeFolder(work);
    });
    const { tensor, torch } = STORED[dtype];
    const writeJson = (name: string, value: unknown) =>
      writeFileAtomic(join(work, name), `${JSON.stringify(value, null, 1)}\n`);
    writeJson('config.json', { ...model.config, ...tokenizer.ids, torch_dtype: torch });
    writeJson('generation_config.json', tokenizer.ids);
    writeJson('tokenizer.json', tokenizer.tokenizer);
    writeJson('tokenizer_config.json', { ...tokenizer.config, model_max_length: config.maxPositions });
    await openTokenizer(work, path);
    const bytes = writeWeights(join(work, WEIGHTS_FILE), { file, weights, shapes, type: tensor, onBytes });
    openCheckpoint(work);
    withStoreErrors(target, () => {
      if (existsSync(target)) rmdirSync(target);
      renameSync(work, target);
      syncFolder(dirname(target));
    });
    return {
      file: path,
      folder: target,
      family: config.family,
      parameters: parameterCount(config),
      quantised: countTypes(weights),
      dtype,
      bytes,
      hasChat: tokenizer.hasChat,
    };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

interface WeightsToWrite {
  readonly file: GgufFile;
  readonly weights: ReadonlyMap<string, ImportedWeight>;
  readonly shapes: ReadonlyMap<string, readonly number[]>;
  readonly type: TensorType;
  readonly onBytes: ImportSettings['onBytes'];
}

/** @returns bytes of all weights */
function writeWeights(path: string, { file, weights, shapes, type, onBytes }: WeightsToWrite): number {
  const writer = TensorWriter.create(path, shapes, type);
  try {
    checkRoom(dirname(dirname(path)), writer.bytes);
    for (const [name, { tensor, order }] of weights) {
      for (const part of weightParts(file, tensor, order)) {
        writer.write(narrow(part, type));
        onBytes?.(writer.written, writer.bytes, name);
      }
    }
    writer.finish();
    return writer.bytes;
  } finally {
    writer.close();
  }
}

/** Whether the tokenizer that is written in a folder can be used. @throws UserError in words for the file that it was read from */
async function openTokenizer(folder: string, path: string): Promise<void> {
  try {
    await Tokenizer.open(folder);
  } catch (cause) {
    if (!(cause instanceof UserError)) throw cause;
    throw new UserError(`${path}: its tokenizer cannot be used: ${cause.message.replaceAll(`${folder}/`, '')}`, {
      cause,
    });
  }
}

/** An import neither mixes with files that are there nor takes their place. */
function checkFree(target: string): void {
  if (!existsSync(target)) return;
  let files: string[];
  try {
    files = readdirSync(target);
  } catch (cause) {
    throw new UserError(`${target} is no folder; give another --out`, { cause });
  }
  if (files.length > 0) throw new UserError(`${target} is not empty; give another --out`);
}

function checkRoom(folder: string, needed: number): void {
  const { bavail, bsize } = statfsSync(folder);
  if (needed <= bavail * bsize) return;
  const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;
  throw new RunError(
    `the weights take ${gigabytes(needed)} and ${folder} has ${gigabytes(bavail * bsize)} left; free some, or give another --out`,
  );
}

/** The weights that the decoder calls for, in its order. @throws UserError naming one that is missing, has another shape, or is not called for */
function inOrder(path: string, { weights }: ImportedModel, config: DecoderConfig): Map<string, ImportedWeight> {
  const shapes = weightShapes(config);
  for (const [name, { tensor }] of weights) {
    const shape = shapes.get(name);
    if (shape === undefined)
      throw new UserError(`${path}: tensor ${tensor.name} is ${name}, which a ${config.family} model does not have`);
    if (shape.join() !== tensor.shape.join()) {
      throw new UserError(
        `${path}: tensor ${tensor.name} has the shape [${tensor.shape.join()}], its settings call for [${shape.join()}]`,
      );
    }
  }
  return new Map(
    [...shapes.keys()].map((name) => {
      const weight = weights.get(name);
      if (weight === undefined) throw new UserError(`${path}: it has no tensor for ${name}`);
      return [name, weight];
    }),
  );
}

function countTypes(weights: ReadonlyMap<string, ImportedWeight>): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { tensor } of weights.values()) counts[tensor.type] = (counts[tensor.type] ?? 0) + 1;
  return counts;
}
