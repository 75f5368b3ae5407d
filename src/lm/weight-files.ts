/** Where a checkpoint's tensors lie: in `model.safetensors`, or in the shards that `model.safetensors.index.json` names. */
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { inOneLine, UserError } from '../errors.js';
import { parseFields } from './json-file.js';
import { readTensorEntries } from './safetensors.js';
import type { StoredTensor } from './safetensors.js';

export const WEIGHTS_FILE = 'model.safetensors';
export const WEIGHTS_INDEX = 'model.safetensors.index.json';

/** A tensor's place: `file` is a name in `WeightFiles.folder`, `stored` what the tensor is called there. */
export interface PlacedTensor extends StoredTensor {
  readonly file: string;
  readonly stored: string;
}

export interface WeightFiles {
  /** Where the files truly lie: a cache's snapshot holds links into another folder, out of which ONNX Runtime follows none. */
  readonly folder: string;
  /** Paths in the checkpoint's own folder, in the order of their names. */
  readonly paths: readonly string[];
  /** By their names in a whole model: a checkpoint of a bare decoder calls `layers.0…` what is `model.layers.0…` there. */
  readonly tensors: ReadonlyMap<string, PlacedTensor>;
}

const shardName = z.string().regex(/^[^/\\]+\.safetensors$/, 'is not the name of a safetensors file');
const indexSchema = z.looseObject({ weight_map: z.record(z.string(), shardName) });

/** Read the headers of a checkpoint's weights. @throws UserError naming the file that is missing, corrupt or inconsistent. */
export function openWeightFiles(folder: string): WeightFiles {
  const single = join(folder, WEIGHTS_FILE);
  const index = join(folder, WEIGHTS_INDEX);
  if (existsSync(single) || !existsSync(index)) {
    const entries = readTensorEntries(single);
    return { folder: realFolder([single]), paths: [single], tensors: withPrefix(placed(single, entries)) };
  }
  const shardOf = readWeightMap(index);
  const paths = [...new Set(Object.values(shardOf))].toSorted().map((name) => join(folder, name));
  const there = new Set(readdirSync(folder));
  const missing = paths.filter((path) => !there.has(basename(path)));
  if (missing.length) {
    const names = inOneLine(missing.map((path) => basename(path)).join(', '));
    throw new UserError(`${folder} lacks ${missing.length} of its ${paths.length} shards: ${names}; fetch them`);
  }
  const shards = new Map(paths.map((path) => [basename(path), placed(path, readTensorEntries(path))]));
  const tensors = new Map<string, PlacedTensor>();
  for (const [name, shard] of Object.entries(shardOf)) {
    const tensor = shards.get(shard)!.get(name);
    if (!tensor)
      throw new UserError(
        `${index} places '${inOneLine(name)}' in ${inOneLine(shard)}, which does not hold it: fetch both files again`,
      );
    tensors.set(name, tensor);
  }
  return { folder: realFolder(paths), paths, tensors: withPrefix(tensors) };
}

/** Tensor → shard. @throws UserError when the index is no such map. */
export function readWeightMap(index: string): Record<string, string> {
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(index, 'utf8'));
  } catch (cause) {
    throw new UserError(`${index} cannot be read as JSON: ${inOneLine((cause as Error).message)}`, { cause });
  }
  return parseFields(indexSchema, json, index).weight_map;
}

function placed(path: string, entries: ReadonlyMap<string, StoredTensor>): Map<string, PlacedTensor> {
  const file = basename(realpathSync(path));
  return new Map([...entries].map(([name, entry]) => [name, { ...entry, file, stored: name }]));
}

const PREFIX = 'model.';

function withPrefix(tensors: ReadonlyMap<string, PlacedTensor>): ReadonlyMap<string, PlacedTensor> {
  const names = [...tensors.keys()];
  if (names.some((name) => name.startsWith(PREFIX)) || !names.some((name) => name.startsWith('layers.')))
    return tensors;
  return new Map([...tensors].map(([name, tensor]) => [name === 'lm_head.weight' ? name : PREFIX + name, tensor]));
}

function realFolder(paths: readonly string[]): string {
  const folders = new Set(paths.map((path) => dirname(realpathSync(path))));
  const [folder, another] = folders;
  if (another === undefined) return folder!;
  throw new UserError(`the shards of ${dirname(paths[0]!)} lie in ${folder} and ${another}: put them into one folder`);
}
