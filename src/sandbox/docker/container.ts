/** One sandbox container: created, attached, started, checked, spoken to in frames, removed. */
import type { Duplex } from 'node:stream';
import type { Socket } from 'node:net';
import * as z from 'zod';
import { describeFault, within, type Docker } from './daemon.js';
import { encodeFrame, FrameReader, PREAMBLE, STANDARD_OUTPUT, StreamSplitter, type Frame } from './frames.js';
import { labels, removeContainer } from './owner.js';
import type { Variant } from '../passes.js';

/** What a container may take, all of its programs' limits apart. */
export interface ContainerLimits {
  /** Of the whole container; a program's own limit lies below. */
  readonly memoryMiB: number;
  readonly cpus: number;
  readonly processes: number;
}

export interface ContainerSpec extends ContainerLimits {
  /** Id of the image. */
  readonly image: string;
  /** Named variant of the image: `plain`, `numpy`. */
  readonly imageVariant: string;
  /** Interpreters, and the packages that each imports before any program. */
  readonly variants: readonly (Variant & { readonly packages: readonly string[] })[];
}

const CALL_TIMEOUT_MS = 30_000;
const HELLO_TIMEOUT_MS = 60_000;
/** A reply holds at most this; the supervisor keeps to the limits that each request states. */
const MAX_FRAME_BYTES = 1 << 30;
/** Interpreters that are there when the container is ready; others start when first asked for. */
const READY_INTERPRETERS = 2;
const PROTOCOL = 1;
const TAIL_CHARACTERS = 2000;
const UNPRIVILEGED = '65532:65532';

/** What the supervisor must have found of its own container; see `confinement` in supervisor.py. */
const REQUIRED_CHECKS = [
  'firstProcess',
  'unprivileged',
  'noCapabilities',
  'noNewPrivileges',
  'noNetwork',
  'nothingWritable',
  'memoryLimited',
  'systemCallsFiltered',
];

const helloSchema = z.object({
  protocol: z.literal(PROTOCOL),
  python: z.string(),
  checks: z.record(z.string(), z.boolean()),
});

export interface Hello {
  readonly python: string;
}

/** How a container may be set up so that nothing in it reaches out. The supervisor checks from inside that it came to pass. */
function hostConfig(limits: ContainerLimits): object {
  const memory = limits.memoryMiB * 2 ** 20;
  return {
    AutoRemove: true,
    NetworkMode: 'none',
    IpcMode: 'none',
    CgroupnsMode: 'private',
    ReadonlyRootfs: true,
    CapDrop: ['ALL'],
    SecurityOpt: ['no-new-privileges:true'],
    Memory: memory,
    MemorySwap: memory,
    OomScoreAdj: 500,
    PidsLimit: limits.processes,
    NanoCpus: Math.round(limits.cpus * 1e9),
    Ulimits: [
      { Name: 'core', Soft: 0, Hard: 0 },
      { Name: 'nofile', Soft: 256, Hard: 256 },
    ],
    LogConfig: { Type: 'none', Config: {} },
  };
}

export class Container {
  readonly id: string;
  /** Called for each frame after the hello. */
  onFrame: (frame: Frame) => void = () => {};
  /** Called once, when the container or its stream has ended; `why` is its supervisor's own word, or null when it said none. */
  onEnd: (why: string | null) => void = () => {};
  /** Called when the stream takes more again. */
  onDrain: () => void = () => {};
  readonly #docker: Docker;
  readonly #stream: Duplex;
  readonly #splitter = new StreamSplitter();
  readonly #reader = new FrameReader(MAX_FRAME_BYTES);
  #tail = '';
  #why: string | null = null;
  #ended = false;

  private constructor(docker: Docker, id: string, stream: Duplex) {
    this.#docker = docker;
    this.id = id;
    this.#stream = stream;
    stream.on('data', (chunk: Buffer) => this.#receive(chunk));
    for (const event of ['end', 'close', 'error']) stream.once(event, () => this.#end());
    stream.on('error', () => {});
    stream.on('drain', () => this.onDrain());
  }

  /** A container that is ready for programs: about half a second. Rejects when it does not start or is not as locked as it must be. */
  static async start(docker: Docker, spec: ContainerSpec): Promise<{ container: Container; hello: Hello }> {
    const created = await within(
      CALL_TIMEOUT_MS,
      'the Docker daemon',
      docker.createContainer({
        Image: spec.image,
        Labels: labels(spec.imageVariant),
        User: UNPRIVILEGED,
        OpenStdin: true,
        StdinOnce: true,
        AttachStdin: true,
        AttachStdout: true,
        AttachStderr: true,
        Tty: false,
        NetworkDisabled: true,
        HostConfig: hostConfig(spec),
      }),
    );
    let container: Container | null = null;
    try {
      // Before the start, so that nothing is lost.
      const options = { stream: true, stdin: true, stdout: true, stderr: true, hijack: true };
      const stream = (await within(CALL_TIMEOUT_MS, 'attaching', created.attach(options))) as unknown as Duplex;
      container = new Container(docker, created.id, stream);
      await within(CALL_TIMEOUT_MS, 'starting a container', created.start());
      return { container, hello: await container.#greet(spec) };
    } catch (error) {
      const tail = container === null ? '' : container.#tail.trim();
      if (container !== null) container.#stream.destroy();
      await removeContainer(docker, created.id).catch(() => {});
      throw new Error(`${describeFault(error)}${tail === '' ? '' : `; it said: ${tail}`}`, { cause: error });
    }
  }

  /** @returns whether the stream takes more at once; if not, wait for `onDrain` */
  send(kind: string, header: Readonly<Record<string, unknown>>, body?: Buffer): boolean {
    return this.#stream.writable && this.#stream.write(encodeFrame(kind, header, body));
  }

  /** Whether this container keeps the process alive. */
  hold(isHeld: boolean): void {
    const socket = this.#stream as Socket;
    if (isHeld) socket.ref();
    else socket.unref();
  }

  /** Hangs up, upon which the supervisor ends, and removes the container whatever it does. */
  async remove(): Promise<void> {
    this.onFrame = () => {};
    this.onEnd = () => {};
    this.#ended = true;
    this.#stream.destroy();
    await removeContainer(this.#docker, this.id);
  }

  async #greet(spec: ContainerSpec): Promise<Hello> {
    const frame = new Promise<Frame>((resolve, reject) => {
      this.onFrame = resolve;
      this.onEnd = (why) =>
        reject(new Error(`the container ended before it was ready${why === null ? '' : `: ${why}`}`));
    });
    this.#stream.write(PREAMBLE);
    this.send('setup', { variants: spec.variants, ready: Math.min(READY_INTERPRETERS, spec.variants.length) });
    const { kind, header } = await within(HELLO_TIMEOUT_MS, 'the supervisor', frame);
    const hello = helloSchema.safeParse(header);
    if (kind !== 'hello' || !hello.success)
      throw new Error('the container does not speak the protocol of this version');
    const { python, checks } = hello.data;
    const missing = REQUIRED_CHECKS.filter((name) => checks[name] !== true);
    if (missing.length > 0) throw new Error(`the container is not locked down: not ${missing.join(', ')}`);
    this.onFrame = () => {};
    this.onEnd = () => {};
    return { python };
  }

  #receive(chunk: Buffer): void {
    try {
      for (const { stream, data } of this.#splitter.push(chunk)) {
        if (stream === STANDARD_OUTPUT) for (const frame of this.#reader.push(data)) this.#hear(frame);
        else this.#tail = (this.#tail + data.toString('utf8')).slice(-TAIL_CHARACTERS);
      }
    } catch (error) {
      this.#why = `the stream is damaged: ${(error as Error).message}`;
      this.#stream.destroy();
    }
  }

  #hear(frame: Frame): void {
    if (frame.kind === 'bye') this.#why = String(frame.header['why']);
    else this.onFrame(frame);
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.onEnd(this.#why);
  }
}
