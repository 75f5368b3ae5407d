/** The container sandbox looked after, and both sandboxes put to the test: the phases behind `propel sandbox`. */
import { RunError } from '../errors.js';
import { CASES, type Case } from '../sandbox/cases.js';
import { DIFFERENCES, differenceCases } from '../sandbox/differences.js';
import { findDaemon, type Daemon } from '../sandbox/docker/daemon.js';
import { createDockerSandbox } from '../sandbox/docker/docker-sandbox.js';
import { buildImage, findImage, imageTag, type ImageBase, type ImageVariant } from '../sandbox/docker/image.js';
import {
  listContainers,
  listImages,
  removeContainer,
  removeImage,
  type OwnContainer,
} from '../sandbox/docker/owner.js';
import { ESCAPE_CASES, WITNESS } from '../sandbox/escape-cases.js';
import { EXHAUSTION_CASES } from '../sandbox/exhaustion-cases.js';
import { HOST_CASES } from '../sandbox/host-cases.js';
import { IMPORT_CASES } from '../sandbox/import-cases.js';
import { ISOLATION_CASES } from '../sandbox/isolation-cases.js';
import { LIBRARY_CASES } from '../sandbox/module-cases.js';
import type { Sandbox } from '../sandbox/sandbox.js';
import { selfTest, type SelfTestResult } from '../sandbox/self-test.js';
import { createWasmSandbox } from '../sandbox/wasm/wasm-sandbox.js';
import { IMAGE_NAMES } from './open-sandbox.js';
import type { ProgressFactory } from './progress.js';

export interface BuiltImage {
  readonly variant: ImageVariant;
  readonly tag: string;
  readonly id: string;
  readonly base: string;
}

/** Builds the image, whether or not it is there. @throws RunError on why it cannot be built */
export async function buildSandboxImage(
  variant: ImageVariant,
  base: ImageBase | undefined,
  say: (line: string) => void,
): Promise<BuiltImage> {
  const { docker } = await daemon();
  try {
    return { variant, ...(await buildImage(docker, variant, say, base)) };
  } catch (cause) {
    throw new RunError((cause as Error).message, { cause });
  }
}

export interface SandboxStatus {
  /** Engine's version; null when no daemon answers. */
  readonly engine: string | null;
  /** Why not; empty when one does. */
  readonly fault: string;
  readonly images: readonly { readonly variant: string; readonly tag: string; readonly state: string }[];
  /** Of every process on this daemon. Containers of one process are one pool. */
  readonly containers: readonly OwnContainer[];
}

export async function sandboxStatus(): Promise<SandboxStatus> {
  let found: Daemon;
  try {
    found = await findDaemon();
  } catch (error) {
    return { engine: null, fault: (error as Error).message, images: [], containers: [] };
  }
  const images = await Promise.all(
    IMAGE_NAMES.map(async (variant) => {
      const image = await findImage(found.docker, variant);
      const state = image === null ? 'not built' : `built on ${image.base}`;
      return { variant, tag: await imageTag(variant), state };
    }),
  );
  return { engine: found.version, fault: '', images, containers: await listContainers(found.docker) };
}

export interface Pruned {
  readonly containers: number;
  readonly images: number;
  /** Containers left alone, since their process lives or is on another machine. */
  readonly kept: number;
}

/**
 * Removes containers whose process has ended, and images of other versions.
 * @param all also containers in use, and the images of this version
 */
export async function pruneSandbox(all: boolean): Promise<Pruned> {
  const { docker } = await daemon();
  const containers = await listContainers(docker);
  const removed = containers.filter(({ owner }) => all || owner === 'gone');
  await Promise.all(removed.map(({ id }) => removeContainer(docker, id)));
  const current = new Set(await Promise.all(IMAGE_NAMES.map((variant) => imageTag(variant))));
  let images = 0;
  for (const { id, tags } of await listImages(docker)) {
    if (!all && tags.some((tag) => current.has(tag))) continue;
    if (await removeImage(docker, id)) images++;
  }
  return { containers: removed.length, images, kept: containers.length - removed.length };
}

export interface TestRow {
  readonly suite: 'conformance' | 'attack' | 'difference';
  readonly name: string;
  /** By sandbox. */
  readonly results: Readonly<Record<string, SelfTestResult>>;
}

export interface SandboxTest {
  readonly passed: boolean;
  readonly sandboxes: readonly { readonly name: string; readonly versions: Readonly<Record<string, string>> }[];
  /** Sandboxes that did not start, and why. */
  readonly notRun: Readonly<Record<string, string>>;
  readonly rows: readonly TestRow[];
}

/** Small, so that attacks on memory end soon. */
const TEST_LIMITS = { memoryMiB: 128 } as const;

/** Every case on every sandbox asked for; after an attack, a program that shows whether the next one is affected. */
export async function testSandboxes(
  kinds: readonly ('wasm' | 'docker')[],
  progress: ProgressFactory,
): Promise<SandboxTest> {
  const sandboxes: Sandbox[] = [];
  const notRun: Record<string, string> = {};
  try {
    for (const kind of kinds) {
      try {
        sandboxes.push(
          await (kind === 'wasm' ? createWasmSandbox : createDockerSandbox)({ size: 1, limits: TEST_LIMITS }),
        );
      } catch (error) {
        notRun[kind] = (error as Error).message;
      }
    }
    const ordinary = [...CASES, ...LIBRARY_CASES];
    const attacks = [...EXHAUSTION_CASES, ...ESCAPE_CASES, ...IMPORT_CASES, ...ISOLATION_CASES, ...HOST_CASES];
    const rows: TestRow[] = [];
    const reported = progress('test');
    const total = ordinary.length + attacks.length + DIFFERENCES.length;
    const run = async (
      suite: TestRow['suite'],
      of: (sandbox: Sandbox) => readonly Case[],
      index: number,
    ): Promise<void> => {
      const results: Record<string, SelfTestResult> = {};
      let name = '';
      for (const sandbox of sandboxes) {
        const [each] = of(sandbox).slice(index, index + 1);
        if (each === undefined) continue;
        name = each.name;
        results[sandbox.name] = await runCase(sandbox, each, suite === 'attack');
      }
      rows.push({ suite, name, results });
      reported.update(rows.length, total);
    };
    for (let index = 0; index < ordinary.length; index++) await run('conformance', () => ordinary, index);
    for (let index = 0; index < attacks.length; index++) await run('attack', () => attacks, index);
    for (let index = 0; index < DIFFERENCES.length; index++) await run('difference', differenceCases, index);
    const failed = rows.filter(({ results }) => Object.values(results).some(({ ok }) => !ok)).length;
    reported.done(`${total - failed} of ${total} cases as they must be`);
    return {
      passed: failed === 0 && sandboxes.length > 0,
      sandboxes: sandboxes.map(({ name, versions }) => ({ name, versions })),
      notRun,
      rows,
    };
  } finally {
    await Promise.all(sandboxes.map((sandbox) => sandbox.close()));
  }
}

async function runCase(sandbox: Sandbox, each: Case, isAttack: boolean): Promise<SelfTestResult> {
  const [result] = (await selfTest(sandbox, [each])) as [SelfTestResult];
  if (!isAttack || !result.ok) return result;
  const [witness] = (await selfTest(sandbox, [WITNESS])) as [SelfTestResult];
  return witness.ok ? result : { ...result, ok: false, detail: `the next program was affected: ${witness.detail}` };
}

async function daemon(): Promise<Daemon> {
  try {
    return await findDaemon();
  } catch (cause) {
    throw new RunError(`${(cause as Error).message}; start Docker, or name its socket in DOCKER_HOST`, { cause });
  }
}
