/** A GGUF file, as people have models on their disks, made into a checkpoint folder that every command opens. */
import { basename, resolve } from 'node:path';
import { importGguf } from '../lm/gguf/import.js';
import type { ImportedGguf, ImportType } from '../lm/gguf/import.js';
import type { ProgressFactory } from './progress.js';

export interface ImportOptions {
  /** Where the checkpoint goes; by default a folder of the file's name, without its ending, in the working folder. */
  readonly out?: string | undefined;
  readonly dtype: ImportType;
}

const MEGABYTE = 1e6;

/** @throws UserError for what the file or the folder is not; RunError where there is no room */
export async function importModel(
  file: string,
  { out, dtype }: ImportOptions,
  progress: ProgressFactory,
): Promise<ImportedGguf> {
  const folder = resolve(out ?? basename(file).replace(/\.gguf$/i, ''));
  const line = progress(`MB of ${basename(folder)}`);
  const imported = await importGguf(file, {
    folder,
    dtype,
    onBytes: (bytes, total, tensor) => line.update(Math.round(bytes / MEGABYTE), Math.ceil(total / MEGABYTE), tensor),
  });
  line.done(`${(imported.bytes / MEGABYTE).toFixed(1)} MB of weights in ${dtype}`);
  return imported;
}
