/** The sandbox's image: what goes into it, the tag that follows from that, and how it is built with and without a registry. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { SHARED_SOURCES } from '../python-sources.js';
import { describeFault, within, type Docker } from './daemon.js';
import { LABEL } from './owner.js';

/** Packages of each named variant; a program may import them besides the allowed part of the standard library. */
export const IMAGE_VARIANTS = { plain: [], numpy: ['numpy'] } as const satisfies Record<string, readonly string[]>;
export type ImageVariant = keyof typeof IMAGE_VARIANTS;

/** Where the root file system comes from. Programs have the same outcomes on either, but for the listed differences of versions. */
export type ImageBase = 'registry' | 'packages';

export interface SandboxImage {
  readonly id: string;
  readonly tag: string;
  readonly base: string;
}

const REGISTRY_IMAGE = 'python:3.12-slim';
const BASE_LABEL = 'propel.base';
const CALL_TIMEOUT_MS = 30_000;
const PULL_TIMEOUT_MS = 300_000;
const BUILD_TIMEOUT_MS = 600_000;

const runFile = promisify(execFile);
const sandboxFolder = fileURLToPath(new URL('../../../sandbox', import.meta.url));
const sharedFolder = fileURLToPath(new URL('../python', import.meta.url));

/** `propel-sandbox:plain-<hash of all that goes into it>`: a changed source is another image. */
export async function imageTag(variant: ImageVariant): Promise<string> {
  const hash = createHash('sha256');
  for (const path of await inputs())
    hash
      .update(`${basename(path)}\0`)
      .update(await readFile(path))
      .update('\0');
  hash.update(variant);
  return `propel-sandbox:${variant}-${hash.digest('hex').slice(0, 12)}`;
}

/** The image if the daemon has it. */
export async function findImage(docker: Docker, variant: ImageVariant): Promise<SandboxImage | null> {
  const tag = await imageTag(variant);
  try {
    const { Id, Config } = await within(CALL_TIMEOUT_MS, 'the Docker daemon', docker.getImage(tag).inspect());
    return { id: Id, tag, base: Config.Labels?.[BASE_LABEL] ?? 'unknown' };
  } catch (error) {
    if ((error as { statusCode?: number }).statusCode === 404) return null;
    throw error;
  }
}

/**
 * Builds the image, from the registry's Python if one answers, else from Debian's packages.
 * @param base one of the two; undefined: whichever works
 * @throws with one line on why neither does
 */
export async function buildImage(
  docker: Docker,
  variant: ImageVariant,
  say: (line: string) => void = () => {},
  base?: ImageBase,
): Promise<SandboxImage> {
  const faults: string[] = [];
  for (const each of base === undefined ? (['registry', 'packages'] as const) : [base]) {
    const folder = await mkdtemp(join(tmpdir(), 'propel-image-'));
    try {
      say(each === 'registry' ? `building on ${REGISTRY_IMAGE}` : "building on Debian's packages");
      await (each === 'registry' ? prepareRegistry(docker, folder) : preparePackages(folder, variant));
      await build(docker, folder, variant, each, say);
      const image = await findImage(docker, variant);
      if (image !== null) return image;
      faults.push(`${each}: the daemon built no image`);
    } catch (error) {
      faults.push(`${each}: ${describeFault(error)}`);
      say(faults.at(-1) as string);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
  throw new Error(`the sandbox image cannot be built (${faults.join('; ')})`);
}

async function inputs(): Promise<string[]> {
  const runner = (await readdir(join(sandboxFolder, 'runner'))).filter((name) => /\.(py|c)$/.test(name)).sort();
  return [
    ...['Dockerfile', 'Dockerfile.offline', 'rootfs.sh'].map((name) => join(sandboxFolder, name)),
    ...runner.map((name) => join(sandboxFolder, 'runner', name)),
    ...SHARED_SOURCES.map((name) => join(sharedFolder, name)),
  ];
}

/** Fails early where no registry answers. */
async function prepareRegistry(docker: Docker, folder: string): Promise<void> {
  const stream = await within(PULL_TIMEOUT_MS, 'the registry', docker.pull(REGISTRY_IMAGE));
  await within(
    PULL_TIMEOUT_MS,
    'the registry',
    follow(docker, stream, () => {}),
  );
  await cp(join(sandboxFolder, 'Dockerfile'), join(folder, 'Dockerfile'));
}

async function preparePackages(folder: string, variant: ImageVariant): Promise<void> {
  await cp(join(sandboxFolder, 'Dockerfile.offline'), join(folder, 'Dockerfile'));
  const script = join(sandboxFolder, 'rootfs.sh');
  try {
    await runFile('bash', [script, join(folder, 'rootfs.tar'), variant], { timeout: BUILD_TIMEOUT_MS });
  } catch (cause) {
    const { stderr, message } = cause as { stderr?: string; message: string };
    const [why] = (stderr?.trim() || message).split('\n').slice(-1);
    throw new Error(`rootfs.sh failed: ${why}`, { cause });
  }
}

async function build(
  docker: Docker,
  folder: string,
  variant: ImageVariant,
  base: ImageBase,
  say: (line: string) => void,
): Promise<void> {
  const runner = join(folder, 'opt', 'propel');
  await mkdir(runner, { recursive: true });
  for (const path of await inputs()) if (/\.(py|c)$/.test(path)) await cp(path, join(runner, basename(path)));
  // Everything in the folder goes to the daemon.
  await writeFile(join(folder, '.dockerignore'), '');
  const packages = IMAGE_VARIANTS[variant].join(' ');
  const stream = await docker.buildImage(
    { context: folder, src: await readdir(folder) },
    {
      t: await imageTag(variant),
      rm: true,
      forcerm: true,
      labels: { [LABEL]: variant, [BASE_LABEL]: base === 'registry' ? REGISTRY_IMAGE : 'debian packages' },
      ...(base === 'registry' ? { buildargs: { PACKAGES: packages } } : {}),
      ...(base === 'packages' ? { networkmode: 'none' } : {}),
    },
  );
  await within(BUILD_TIMEOUT_MS, 'the build', follow(docker, stream, say));
}

/** Until the stream of a build or pull has ended; rejects with the error that it carries. */
function follow(docker: Docker, stream: NodeJS.ReadableStream, say: (line: string) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    let fault: string | null = null;
    docker.modem.followProgress(
      stream,
      (error) => {
        const why = error?.message ?? fault;
        if (why === null) resolve();
        else reject(new Error(why));
      },
      ({ stream: line, error }: { stream?: string; error?: string }) => {
        if (error !== undefined) fault = error;
        const text = line?.trim() ?? '';
        if (text !== '') say(text);
      },
    );
  });
}
