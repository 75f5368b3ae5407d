/** The probes of an arm, and what they say of tasks. */
import { join } from 'node:path';
import { UserError } from '../errors.js';
import type { Probe } from '../probe/probe.js';
import { scoreTexts } from '../probe/probe.js';
import { loadProbe } from '../probe/probe-file.js';
import { sigmoid } from '../reward/band-logit.js';
import { sha256OfFile } from '../store/files.js';
import type { Workspace } from './workspace.js';

export interface ArmProbe {
  readonly name: string;
  readonly probe: Probe;
}

/** The probes whose minimum rewards an arm, as many as are trained. @throws UserError when a file is missing, corrupt, or another model's. */
export async function openArmProbes(workspace: Workspace, arm: string): Promise<ArmProbe[]> {
  const { config, store } = workspace;
  const { reward, probes } = config.arms[arm]!;
  if (reward === 'none') return [];
  const reference = await workspace.reference();
  const rows = store.probes().slice(0, probes);
  if (rows.length && rows.length < probes) {
    throw new UserError(
      `arm ${arm} needs ${probes} probes, the run has ${rows.length}: run 'propel train-probe --fresh'`,
    );
  }
  return rows.map(({ name, path, sha256 }) => {
    const file = join(store.folder, path);
    const { probe } = loadProbe(file, reference);
    if (sha256OfFile(file) !== sha256) {
      throw new UserError(`${file} is not the probe that the run trained; put that back, or start over with --fresh`);
    }
    return { name, probe };
  });
}

export interface TaskScores {
  /** One list a task: its band logit by each probe. */
  readonly logits: readonly (readonly number[])[];
  /** Probability of the band a task, by the least sure probe. */
  readonly claimed: readonly number[];
}

/** Score rendered tasks. The reference model reads nothing but their text. */
export async function scoreTasks(
  workspace: Workspace,
  probes: readonly ArmProbe[],
  texts: readonly string[],
): Promise<TaskScores> {
  const scored = await scoreTexts(
    await workspace.reference(),
    probes.map(({ probe }) => probe),
    texts,
  );
  const logits = texts.map((_, i) => scored.map((own) => own[i]!));
  return { logits, claimed: logits.map((own) => sigmoid(Math.min(...own))) };
}
