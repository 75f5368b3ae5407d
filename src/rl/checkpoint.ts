/** A training checkpoint: the adapter as a PEFT folder, and beside it the optimiser's state. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../errors.js';
import { writeAdapter } from '../lm/adapter-folder.js';
import type { AdapterLayout } from '../lm/adapter.js';
import type { TrainerState } from '../lm/trainer.js';
import { readTrainerState, writeTrainerState } from '../lm/trainer-state.js';
import { sha256OfFile, writeFileAtomic } from '../store/files.js';

const OPTIMISER_FILE = 'optimizer.safetensors';
/** The optimiser file's digest: what goes on from a damaged state would not be the same run. */
const OPTIMISER_SEAL = 'optimizer.sha256';
/** The file whose digest stands for the checkpoint. */
export const ADAPTER_FILE = 'adapter_model.safetensors';

/** Write both; each file appears whole or not at all. */
export function writeTrainingCheckpoint(
  folder: string,
  state: TrainerState,
  layout: AdapterLayout,
  base: string,
): void {
  const factors = new Map(
    [...state.tensors].filter(([name]) => /\.lora_[AB]$/.test(name) && name.startsWith('model.')),
  );
  writeAdapter(folder, { layout, factors }, base);
  const file = join(folder, OPTIMISER_FILE);
  writeTrainerState(file, state);
  writeFileAtomic(join(folder, OPTIMISER_SEAL), `${sha256OfFile(file)}\n`);
}

/** The optimiser's state. @throws UserError when it is missing, corrupt, or not the one that was written. */
export function readTrainingCheckpoint(folder: string): TrainerState {
  const file = join(folder, OPTIMISER_FILE);
  const state = readTrainerState(file);
  if (sha256OfFile(file) !== seal(join(folder, OPTIMISER_SEAL))) {
    throw new UserError(`${file} is not the file that the run wrote`);
  }
  return state;
}

function seal(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (cause) {
    throw new UserError(`${path} cannot be read (${(cause as NodeJS.ErrnoException).code})`, { cause });
  }
}

/** Free the space of a state that a later checkpoint has replaced; the adapter stays. */
export function dropOptimiserState(folder: string): void {
  for (const file of [OPTIMISER_FILE, OPTIMISER_SEAL]) rmSync(join(folder, file), { force: true });
}
