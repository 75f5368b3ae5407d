/** A training checkpoint: the adapter as a PEFT folder, and beside it the optimiser's state. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeAdapter } from '../lm/adapter.js';
import type { AdapterLayout } from '../lm/adapter.js';
import type { TrainerState } from '../lm/trainer.js';
import { readTrainerState, writeTrainerState } from '../lm/trainer-state.js';

const OPTIMISER_FILE = 'optimizer.safetensors';
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
  writeTrainerState(join(folder, OPTIMISER_FILE), state);
}

/** The optimiser's state. @throws UserError when it is missing or corrupt. */
export function readTrainingCheckpoint(folder: string): TrainerState {
  return readTrainerState(join(folder, OPTIMISER_FILE));
}

/** Free the space of a state that a later checkpoint has replaced; the adapter stays. */
export function dropOptimiserState(folder: string): void {
  rmSync(join(folder, OPTIMISER_FILE), { force: true });
}
