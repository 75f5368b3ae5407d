/** The probes of an arm, and what they say of tasks. */
import { join } from 'node:path';
import { UserError } from '../errors.js';
import { smallest } from '../metrics/extremes.js';
import { PooledStates, tokenSequences } from '../probe/features.js';
import { standardise } from '../probe/matrix.js';
import { bandLogitsOfTexts } from '../probe/probe.js';
import type { Probe } from '../probe/probe.js';
import { loadProbe, readProbeNumbers } from '../probe/probe-file.js';
import type { ProbeCard } from '../probe/probe-file.js';
import { sigmoid } from '../reward/band-logit.js';
import { unitVector } from '../reward/crowding.js';
import { sha256OfFile } from '../store/files.js';
import type { Workspace } from './workspace.js';

export interface ArmProbe {
  readonly name: string;
  readonly probe: Probe;
}

/** A member of the run's ensemble. */
export interface MemberProbe extends ArmProbe {
  readonly card: ProbeCard;
}

/**
 * The probes whose minimum rewards an arm: its members of the ensemble and, once it has mined, its latest auxiliary probe. None for an arm
 * whose reward is not a probe's.
 * @throws UserError when a file is missing, corrupt, or another model's.
 */
export async function openArmProbes(workspace: Workspace, arm: string): Promise<ArmProbe[]> {
  const members = await openMembers(workspace, arm);
  const [first] = members;
  const mining = workspace.store.minings(arm).at(-1);
  if (!first || !mining) return members;
  const file = join(workspace.store.folder, mining.path);
  const probe = readProbeNumbers(file, first.card);
  requireDigest(file, mining.sha256);
  return [...members, { name: `auxiliary-${mining.step}`, probe }];
}

/** The arm's members of the run's ensemble, as many as are trained. */
export async function openMembers(workspace: Workspace, arm: string): Promise<MemberProbe[]> {
  const { config, store } = workspace;
  const settings = config.arms[arm]!;
  if (settings.reward !== 'probe') return [];
  const reference = await workspace.reference();
  const rows = store.probes().slice(0, settings.probes);
  if (rows.length && rows.length < settings.probes) {
    throw new UserError(
      `arm ${arm} needs ${settings.probes} probes, the run has ${rows.length}: run 'propel train-probe --fresh'`,
    );
  }
  return rows.map(({ name, path, sha256 }) => {
    const file = join(store.folder, path);
    const { probe, card } = loadProbe(file, reference);
    requireDigest(file, sha256);
    return { name, probe, card };
  });
}

function requireDigest(file: string, sha256: string): void {
  if (sha256OfFile(file) === sha256) return;
  throw new UserError(`${file} is not the probe that the run trained; put that back, or start over with --fresh`);
}

export interface TaskScores {
  /** One list a task: its band logit by each probe. */
  readonly logits: readonly (readonly number[])[];
  /** Probability of the band a task, by the least sure probe. */
  readonly claimed: readonly number[];
}

/** The probability of the band that an ensemble claims of a task, from its logit by each probe: that of the least sure. */
export function claimedInBand(logits: readonly number[]): number {
  return sigmoid(smallest(logits));
}

/** Score rendered tasks. The reference model reads nothing but their text. */
export async function scoreTasks(
  workspace: Workspace,
  probes: readonly ArmProbe[],
  texts: readonly string[],
): Promise<TaskScores> {
  const logits = await bandLogitsOfTexts(
    await workspace.reference(),
    probes.map(({ probe }) => probe),
    texts,
  );
  return { logits, claimed: logits.map(claimedInBand) };
}

/** The features that a probe reads of rendered tasks, standardised as its head does and scaled to length 1, one vector a task. */
export async function taskActivations(
  workspace: Workspace,
  { spec, head }: Probe,
  texts: readonly string[],
): Promise<Float64Array[]> {
  if (!texts.length) return [];
  const reference = await workspace.reference();
  const states = await PooledStates.extract(reference, tokenSequences(reference, texts), [spec]);
  const { data, columns } = standardise(states.matrix(spec), head.standardisation);
  return texts.map((_, row) => unitVector(data.subarray(row * columns, (row + 1) * columns)));
}
