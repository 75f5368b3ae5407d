/** Where a run keeps its training checkpoints, and what an arm's generator is once trained. */
import { join } from 'node:path';
import { UserError } from '../errors.js';
import { readAdapter } from '../lm/adapter-folder.js';
import type { Adapter } from '../lm/adapter.js';
import type { TrainerState } from '../lm/trainer.js';
import { ADAPTER_FILE, readTrainingCheckpoint } from '../rl/checkpoint.js';
import { sha256OfFile } from '../store/files.js';
import type { CheckpointRow } from '../store/rows.js';
import { evaluatedCheckpoint } from './training-end.js';
import type { Workspace } from './workspace.js';

/** Folder of a checkpoint, relative to the run folder. */
export const checkpointPath = (arm: string, step: number): string =>
  `checkpoints/${arm}/step-${String(step).padStart(6, '0')}`;

/** An adversarial arm's auxiliary probe, fitted after a step; relative to the run folder, among the files of the arm's training. */
export const auxiliaryProbePath = (arm: string, step: number): string =>
  `checkpoints/${arm}/auxiliary-${String(step).padStart(6, '0')}.safetensors`;

/** The checkpoint's folder, its adapter's digest checked. @throws UserError when the file is not the one that was written. */
export function verifiedCheckpoint({ store }: Pick<Workspace, 'store'>, row: CheckpointRow): string {
  const folder = join(store.folder, row.path);
  const file = join(folder, ADAPTER_FILE);
  let digest: string;
  try {
    digest = sha256OfFile(file);
  } catch (cause) {
    throw new UserError(
      `${file}, which the run's store names, cannot be read; put it back, or start over with --fresh`,
      {
        cause,
      },
    );
  }
  if (digest !== row.sha256) {
    throw new UserError(`${file} is not the file that the run wrote; put that back, or start over with --fresh`);
  }
  return folder;
}

/** What training goes on from. @throws UserError when a file of the checkpoint is missing, corrupt or not the one that was written. */
export function checkpointedState(workspace: Pick<Workspace, 'store'>, row: CheckpointRow): TrainerState {
  const folder = verifiedCheckpoint(workspace, row);
  try {
    return readTrainingCheckpoint(folder);
  } catch (cause) {
    if (!(cause instanceof UserError)) throw cause;
    throw new UserError(`${cause.message}; put the run's own file back, or start over with --fresh`, { cause });
  }
}

/** @throws UserError when the arm's training, where it has one, is not done. */
export function requireTrained({ config, store }: Pick<Workspace, 'config' | 'store'>, arm: string): void {
  if (config.arms[arm]!.reward === 'none' || store.phaseFinished('train-generator', arm)) return;
  throw new UserError(`arm ${arm} is not trained yet: run 'propel train-generator' first`);
}

/**
 * The adapter of an arm that is measured and sampled: the last, or of a collapsed training the one that `evaluate.checkpoint` names; null for
 * the generator as it is without one. @throws UserError when training is not done.
 */
export async function trainedAdapter(workspace: Workspace, arm: string): Promise<Adapter | null> {
  requireTrained(workspace, arm);
  const checkpoint = evaluatedCheckpoint(workspace, arm);
  if (!checkpoint) return null;
  return readAdapter(verifiedCheckpoint(workspace, checkpoint), (await workspace.policy(arm)).config);
}
