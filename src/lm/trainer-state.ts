/** A trainer's state as a safetensors file: values, moments and the step count. */
import { UserError } from '../errors.js';
import { readTensors, writeTensors } from './safetensors.js';
import type { TrainerState } from './trainer.js';

export function writeTrainerState(file: string, state: TrainerState): void {
  writeTensors(file, new Map([...state.tensors, ['step', { shape: [1], data: Float32Array.of(state.step) }]]));
}

/** @throws UserError when the file is missing, corrupt or of another kind. */
export function readTrainerState(file: string): TrainerState {
  const tensors = readTensors(file);
  const step = tensors.get('step');
  if (!step) throw new UserError(`${file} is not a trainer's state: it has no tensor 'step'`);
  tensors.delete('step');
  return { step: step.data[0]!, tensors };
}
