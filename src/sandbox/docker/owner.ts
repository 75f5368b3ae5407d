/** Whose containers are whose: labels that tell ours from others', and those of a living process from what a dead one left. */
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { describeFault, isGone, within, type Docker } from './daemon.js';

/** On every container and image of ours; the value is the variant of the image. */
export const LABEL = 'propel.sandbox';
const OWNER_LABEL = 'propel.owner';
const CALL_TIMEOUT_MS = 30_000;

/** Host, process and its start: a process id alone is given again. */
function ownerOf(pid: number): string {
  return `${hostname()}/${bootId()}/${pid}/${startOf(pid) ?? ''}`;
}

export function labels(variant: string): Record<string, string> {
  return { [LABEL]: variant, [OWNER_LABEL]: ownerOf(process.pid) };
}

export interface OwnContainer {
  readonly id: string;
  readonly variant: string;
  readonly image: string;
  /** `running`, `created`, `exited`, … */
  readonly state: string;
  readonly ageSeconds: number;
  readonly pid: number;
  /** Its owner's process is on another machine, alive, or gone. */
  readonly owner: 'elsewhere' | 'alive' | 'gone';
}

/** Every container of ours, whoever started it. */
export async function listContainers(docker: Docker): Promise<OwnContainer[]> {
  const filters = { label: [LABEL] };
  const found = await within(CALL_TIMEOUT_MS, 'the Docker daemon', docker.listContainers({ all: true, filters }));
  return found.map(({ Id, Image, State, Created, Labels }) => {
    const owner = Labels[OWNER_LABEL] ?? '';
    return {
      id: Id,
      variant: Labels[LABEL] ?? '',
      image: Image,
      state: State,
      ageSeconds: Math.max(0, Math.round(Date.now() / 1000 - Created)),
      pid: Number(owner.split('/')[2] ?? 0),
      owner: stateOf(owner),
    };
  });
}

/** Removes containers whose owner has ended without doing so. */
export async function sweepOrphans(docker: Docker): Promise<number> {
  const orphans = (await listContainers(docker)).filter(({ owner }) => owner === 'gone');
  await Promise.all(orphans.map(({ id }) => removeContainer(docker, id)));
  return orphans.length;
}

/** Also one that runs, or that is gone already. */
export async function removeContainer(docker: Docker, id: string): Promise<void> {
  try {
    await within(CALL_TIMEOUT_MS, 'the Docker daemon', docker.getContainer(id).remove({ force: true }));
  } catch (error) {
    if (!isGone(error))
      throw new Error(`container ${id.slice(0, 12)} stays: ${describeFault(error)}`, { cause: error });
  }
}

/** Every image of ours. */
export async function listImages(docker: Docker): Promise<{ readonly id: string; readonly tags: readonly string[] }[]> {
  const filters = JSON.stringify({ label: [LABEL] });
  const found = await within(CALL_TIMEOUT_MS, 'the Docker daemon', docker.listImages({ filters }));
  return found.map(({ Id, RepoTags }) => ({ id: Id, tags: RepoTags ?? [] }));
}

/** @returns whether it is gone; one that a container uses stays */
export async function removeImage(docker: Docker, id: string): Promise<boolean> {
  try {
    await within(CALL_TIMEOUT_MS, 'the Docker daemon', docker.getImage(id).remove({ force: true }));
    return true;
  } catch {
    return false;
  }
}

function stateOf(owner: string): OwnContainer['owner'] {
  const [host, boot, pid, start] = owner.split('/');
  if (host !== hostname() || boot !== bootId()) return 'elsewhere';
  return startOf(Number(pid)) === start ? 'alive' : 'gone';
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return 'unknown';
  }
}

/** When a process of this machine started, in the kernel's own count; where there is no such count, whether it lives; null if not. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The 22nd field; the second is in brackets and may hold spaces.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  } catch {
    if (process.platform === 'linux') return null;
  }
  try {
    process.kill(pid, 0);
    return '';
  } catch {
    return null;
  }
}
