/** Starts the sandbox of a command: the one asked for, or with `auto` the container sandbox where it works and else the embedded one. */
import * as z from 'zod';
import { RunError } from '../errors.js';
import { createDockerSandbox, DEFAULT_CONTAINER } from '../sandbox/docker/docker-sandbox.js';
import { IMAGE_VARIANTS, type ImageVariant } from '../sandbox/docker/image.js';
import type { Limits, Sandbox } from '../sandbox/sandbox.js';
import { createWasmSandbox } from '../sandbox/wasm/wasm-sandbox.js';
import type { ProgressFactory } from './progress.js';

export const SANDBOX_KINDS = ['auto', 'docker', 'wasm'] as const;
export type SandboxKind = (typeof SANDBOX_KINDS)[number];

export const IMAGE_NAMES = Object.keys(IMAGE_VARIANTS) as [ImageVariant, ...ImageVariant[]];

export const dockerSchema = z
  .strictObject({
    image: z
      .enum(IMAGE_NAMES)
      .default('plain')
      .describe('plain: CPython alone; numpy: with that package, which programs may import.'),
    cpus: z.number().positive().default(DEFAULT_CONTAINER.cpus).describe('Processors of one container.'),
    processes: z.int().min(16).default(DEFAULT_CONTAINER.processes).describe('Processes of one container.'),
    fileBytes: z.int().min(0).default(0).describe('Largest file a program may write; it finds no folder to write to.'),
    recycleAfter: z.int().positive().default(5000).describe('Programs after which a container is replaced.'),
  })
  .describe('Containers of the docker sandbox. A program’s time, memory and output are the domain’s limits.');

export interface SandboxSettings {
  readonly kind: SandboxKind;
  /** Programs at once; undefined: one a core. */
  readonly workers: number | undefined;
  readonly docker?: z.infer<typeof dockerSchema> | undefined;
  /** Of the programs to come: containers are made large enough for them, and the embedded CPython is compiled for their memory. */
  readonly limits?: Partial<Limits>;
}

/** @throws RunError when it cannot start */
export async function openSandbox(settings: SandboxSettings, progress: ProgressFactory): Promise<Sandbox> {
  const { kind } = settings;
  if (kind === 'wasm') return openWasm(settings);
  const opened = progress('sandbox');
  try {
    const sandbox = await openDocker(settings);
    const { python, base, engine } = sandbox.versions;
    opened.done(`docker, ${sandbox.size} containers with CPython ${python} (${base}) on engine ${engine}`);
    return sandbox;
  } catch (cause) {
    const why = (cause as Error).message;
    if (kind === 'docker') {
      const advice = "start Docker and see 'propel sandbox status', or take --sandbox wasm";
      throw new RunError(`the docker sandbox cannot start: ${why}; ${advice}`, { cause });
    }
    const sandbox = await openWasm(settings);
    opened.done(`wasm, the embedded CPython ${sandbox.versions['python']}, because docker cannot start: ${why}`);
    return sandbox;
  }
}

function openDocker({ workers, docker, limits }: SandboxSettings): Promise<Sandbox> {
  const { image, cpus, processes, fileBytes, recycleAfter } = docker ?? dockerSchema.parse({});
  return createDockerSandbox({
    ...(workers === undefined ? {} : { size: workers }),
    ...(limits === undefined ? {} : { limits }),
    image,
    fileBytes,
    container: { cpus, processes },
    pool: { recycleAfter },
  });
}

async function openWasm({ workers, limits }: SandboxSettings): Promise<Sandbox> {
  try {
    return await createWasmSandbox({
      ...(workers === undefined ? {} : { size: workers }),
      ...(limits === undefined ? {} : { limits }),
    });
  } catch (cause) {
    const [why] = (cause as Error).message.split('\n');
    throw new RunError(`the sandbox cannot start: ${why}; install propel again, and see 'propel doctor'`, { cause });
  }
}
