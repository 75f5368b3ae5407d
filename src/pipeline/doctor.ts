/** Tries each part that a run stands on, and says what to do where one does not work: the phase behind `propel doctor`. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as z from 'zod';
import { checkpointHash, openCheckpoint } from '../lm/checkpoint.js';
import { providersHere } from '../onnx/availability.js';
import type { ExecutionProvider } from '../onnx/session.js';
import { findDaemon } from '../sandbox/docker/daemon.js';
import { createDockerSandbox } from '../sandbox/docker/docker-sandbox.js';
import { findImage } from '../sandbox/docker/image.js';
import type { Sandbox } from '../sandbox/sandbox.js';
import { selfTest } from '../sandbox/self-test.js';
import { createWasmSandbox } from '../sandbox/wasm/wasm-sandbox.js';
import { RunStore } from '../store/store.js';
import { packageRoot } from './paths.js';
import { proveProviderApart } from './provider-proof.js';
import { versions, type Versions } from './versions.js';

export type PartStatus = 'ok' | 'not available' | 'failed';

export interface Part {
  readonly kind: 'provider' | 'sandbox' | 'store' | 'model';
  readonly name: string;
  readonly status: PartStatus;
  /** Whether the embedded default run needs it. */
  readonly needed: boolean;
  readonly detail: string;
  /** What to do; empty when there is nothing. */
  readonly advice: string;
  /** Of a provider that ran a model: how many nodes ran where. */
  readonly nodes?: Readonly<Record<string, number>> | null;
  /** Of a provider: operators that ran on the CPU and should not have, with how many nodes of each. */
  readonly unexpected?: Readonly<Record<string, number>>;
}

export interface Diagnosis {
  /** Whether the embedded default run can work. */
  readonly ready: boolean;
  readonly versions: Versions;
  readonly parts: readonly Part[];
  /** The store of a run folder that was asked for; null without one. */
  readonly run: Part | null;
}

/**
 * Never rejects for a part that does not work: that is what it reports.
 * @param runFolder a run whose store is looked at too, every page and row of it
 */
export async function diagnose(runFolder?: string): Promise<Diagnosis> {
  const parts: Part[] = [];
  for (const provider of providersHere().toSorted(cpuFirst)) parts.push(await diagnoseProvider(provider));
  parts.push(
    await diagnoseWasm(),
    await diagnoseDocker(),
    diagnoseStore(),
    diagnoseModel('generator'),
    diagnoseModel('solver'),
  );
  const ready = parts.every(({ needed, status }) => !needed || status === 'ok');
  return { ready, versions: versions(), parts, run: runFolder === undefined ? null : diagnoseRun(runFolder) };
}

function cpuFirst(a: ExecutionProvider, b: ExecutionProvider): number {
  return Number(b === 'cpu') - Number(a === 'cpu');
}

const PROVIDER_ADVICE: Readonly<Record<ExecutionProvider, string>> = {
  cpu: 'install again: npm ci',
  cuda: 'needs an NVIDIA GPU with its driver, on Linux or Windows',
  coreml: 'needs macOS',
  dml: 'needs Windows with a Direct3D 12 driver',
  webgpu: 'needs a GPU with a Vulkan, Metal or Direct3D 12 driver',
};

async function diagnoseProvider(provider: ExecutionProvider): Promise<Part> {
  const needed = provider === 'cpu';
  const proof = await proveProviderApart(provider, modelToProve());
  const { detail, nodes, unexpected } = proof;
  const status = needed && proof.status === 'not available' ? 'failed' : proof.status;
  const part = { kind: 'provider', name: provider, needed, status, detail, nodes, unexpected } as const;
  const fallen = Object.entries(unexpected).map(([operator, count]) => `${operator} × ${count}`);
  if (status === 'ok' && fallen.length > 0) {
    return { ...part, advice: `slower than it could be: on the CPU and not on ${provider} run ${fallen.join(', ')}` };
  }
  return { ...part, advice: status === 'ok' ? '' : PROVIDER_ADVICE[provider] };
}

/** A model that ships, to prove providers on; null where it is missing, which is a part's failure of its own. */
function modelToProve(): string | null {
  const folder = microWorldFolder('generator');
  return existsSync(join(folder, 'model.safetensors')) ? folder : null;
}

async function diagnoseWasm(): Promise<Part> {
  const part = { kind: 'sandbox', name: 'wasm', needed: true } as const;
  return diagnoseSandbox(part, 'install again: npm ci', () => createWasmSandbox({ size: 1 }));
}

/** An image that is not there yet is not built for this. */
async function diagnoseDocker(): Promise<Part> {
  const part = { kind: 'sandbox', name: 'docker', needed: false } as const;
  try {
    const { docker, version } = await findDaemon();
    if ((await findImage(docker, 'plain')) === null) {
      const detail = `engine ${version} answers; its image is not built`;
      return { ...part, status: 'not available', detail, advice: 'propel sandbox build' };
    }
  } catch (error) {
    const advice = 'start Docker, or name its socket in DOCKER_HOST; without it programs run in the embedded sandbox';
    return { ...part, status: 'not available', detail: (error as Error).message, advice };
  }
  return diagnoseSandbox(part, 'propel sandbox test shows more', () => createDockerSandbox({ size: 1 }));
}

async function diagnoseSandbox(
  part: Pick<Part, 'kind' | 'name' | 'needed'>,
  advice: string,
  open: () => Promise<Sandbox>,
): Promise<Part> {
  try {
    const opening = performance.now();
    const sandbox = await open();
    const startup = performance.now() - opening;
    try {
      const results = await selfTest(sandbox);
      const wrong = results.filter(({ ok }) => !ok);
      const [first] = wrong;
      if (first !== undefined) {
        const detail = `${wrong.length} of ${results.length} cases differ; ${first.name}: ${first.detail}`;
        return { ...part, status: 'failed', detail, advice };
      }
      const detail = `CPython ${sandbox.versions['python']}, started in ${startup.toFixed(0)} ms, ${results.length} cases agree`;
      return { ...part, status: 'ok', detail, advice: '' };
    } finally {
      await sandbox.close();
    }
  } catch (error) {
    return { ...part, status: 'failed', detail: (error as Error).message, advice };
  }
}

function diagnoseStore(): Part {
  const part = { kind: 'store', name: 'SQLite', needed: true } as const;
  const folder = mkdtempSync(join(tmpdir(), 'propel-doctor-'));
  try {
    RunStore.open(folder).close();
    return { ...part, status: 'ok', detail: 'a run folder can be made', advice: '' };
  } catch (error) {
    const advice = 'build the binding again: npm rebuild better-sqlite3 (needs a C++ toolchain)';
    return { ...part, status: 'failed', detail: (error as Error).message, advice };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function diagnoseRun(folder: string): Part {
  const part = { kind: 'store', name: folder, needed: false } as const;
  try {
    RunStore.check(folder);
    return { ...part, status: 'ok', detail: 'every page and row is as it was written', advice: '' };
  } catch (error) {
    return { ...part, status: 'failed', detail: (error as Error).message, advice: '' };
  }
}

function microWorldFolder(name: 'generator' | 'solver'): string {
  return join(packageRoot(), 'data', 'micro-world', name);
}

/** What a model's card must say for its files to be told from others. */
const cardSchema = z.object({ sha256: z.string() });

function diagnoseModel(name: 'generator' | 'solver'): Part {
  const part = { kind: 'model', name: `micro-world ${name}`, needed: true } as const;
  const folder = microWorldFolder(name);
  const card = join(folder, 'card.json');
  const advice = 'fetch the package again, or train the models: npm run build:micro-world';
  if (!existsSync(join(folder, 'model.safetensors'))) {
    return { ...part, status: 'not available', detail: `${folder} holds no weights`, advice };
  }
  try {
    openCheckpoint(folder);
    const hash = checkpointHash(folder);
    const found = `sha256 ${hash.slice(0, 12)}…`;
    if (!existsSync(card))
      return { ...part, status: 'ok', detail: `${found}; it has no card to compare with`, advice: '' };
    const { sha256 } = cardSchema.parse(JSON.parse(readFileSync(card, 'utf8')));
    return hash === sha256
      ? { ...part, status: 'ok', detail: `${found}, as its card says`, advice: '' }
      : { ...part, status: 'failed', detail: `sha256 ${hash}, but its card says ${sha256}`, advice };
  } catch (error) {
    return { ...part, status: 'failed', detail: (error as Error).message, advice };
  }
}
