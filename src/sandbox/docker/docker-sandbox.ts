/**
 * The container sandbox: full CPython in a pool of locked-down containers, a confined child for each pass of each program.
 * What each layer stops and what it does not: sandbox/README.md.
 */
import { availableParallelism, constants } from 'node:os';
import * as z from 'zod';
import { failedPass, runPasses, VARIANTS, type PassKind, type PassReply } from '../passes.js';
import { blameMemory, failure, frameLimit, parseFrame, type Prepared } from '../results.js';
import {
  DEFAULT_LIMITS,
  SandboxError,
  type CallResult,
  type Limits,
  type Program,
  type ProgramResult,
  type RunOptions,
  type Sandbox,
} from '../sandbox.js';
import { Container, type ContainerLimits } from './container.js';
import { describeFault, findDaemon, type Daemon } from './daemon.js';
import type { Frame } from './frames.js';
import { buildImage, findImage, IMAGE_VARIANTS, type ImageVariant, type SandboxImage } from './image.js';
import { sweepOrphans } from './owner.js';
import { ContainerPool, type JobEnd, type PoolOptions, type PoolStatistics } from './pool.js';

export interface DockerSandboxOptions {
  /** Containers, each of which runs one program at a time. Default: one a core, at least 2. */
  readonly size?: number;
  /** Replace single defaults of `DEFAULT_LIMITS` for all runs. */
  readonly limits?: Partial<Limits>;
  readonly image?: ImageVariant;
  /** Replace single defaults of `DEFAULT_CONTAINER`. */
  readonly container?: Partial<Omit<ContainerLimits, 'memoryMiB'>>;
  /** Largest file that a program may write, in bytes. There is nowhere to write one, so this is a second lock. Default 0. */
  readonly fileBytes?: number;
  readonly pool?: Partial<Pick<PoolOptions, 'recycleAfter' | 'pauses' | 'pingEveryMs' | 'pongWithinMs' | 'graceMs'>>;
  /** Told what is being built, line by line, where the image is not there yet. */
  readonly say?: (line: string) => void;
}

export const DEFAULT_CONTAINER = { cpus: 1, processes: 64 } as const;

/** Least memory in which CPython is of use, as in the embedded sandbox. */
const MIN_MEMORY_MIB = 32;
/** A program may ask for this much whatever the default is. */
const LEAST_CEILING_MIB = 512;
/** Supervisor, interpreters and the pages that programs share with them. */
const OWN_MEMORY_MIB = 256;
/** What a supervisor can hold besides: no request is larger, and results of all calls together are not. */
const MAX_REQUEST_BYTES = 24 << 20;
const MAX_REPLY_BYTES = 96 << 20;
const LITERALS_TIMEOUT_MS = 5000;
const LITERALS_REPLY_BYTES = 1 << 16;

export interface DockerSandbox extends Sandbox {
  readonly statistics: PoolStatistics;
}

/**
 * Finds the daemon and the image (builds it if it is not there), removes containers that dead processes left, starts the first container.
 * Throws `SandboxError` with one line on what does not work.
 */
export async function createDockerSandbox(options: DockerSandboxOptions = {}): Promise<DockerSandbox> {
  const size = options.size ?? Math.max(2, availableParallelism());
  if (!Number.isInteger(size) || size < 1) throw new Error(`sandbox size must be a whole number from 1, not ${size}`);
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const variant = options.image ?? 'plain';
  try {
    const daemon = await findDaemon();
    const image = (await findImage(daemon.docker, variant)) ?? (await buildImage(daemon.docker, variant, options.say));
    await sweepOrphans(daemon.docker);
    const sandbox = new ContainerSandbox(size, limits, daemon, image, variant, options);
    await sandbox.warmUp();
    return sandbox;
  } catch (cause) {
    throw new SandboxError(describeFault(cause), { cause });
  }
}

const doneSchema = z.object({
  end: z.enum(['returned', 'output', 'damaged', 'memory', 'stack', 'signal', 'exit']),
  code: z.int().optional(),
  signal: z.int().optional(),
  milliseconds: z.number(),
  /** Bytes of the body that were prepared before the program ran; null: it did not come so far. */
  prepared: z.int().nullable(),
});
type Done = z.infer<typeof doneSchema>;

/** A request that is not even sent. */
interface Refused {
  readonly kind: 'refused';
  readonly detail: string;
}

class ContainerSandbox implements DockerSandbox {
  readonly name = 'docker';
  readonly size: number;
  readonly #limits: Limits;
  readonly #ceilingMiB: number;
  readonly #fileBytes: number;
  readonly #pool: ContainerPool;
  #versions: Readonly<Record<string, string>>;

  constructor(
    size: number,
    limits: Limits,
    daemon: Daemon,
    image: SandboxImage,
    variant: ImageVariant,
    options: DockerSandboxOptions,
  ) {
    this.size = size;
    this.#limits = limits;
    this.#ceilingMiB = Math.max(limits.memoryMiB, LEAST_CEILING_MIB);
    this.#fileBytes = options.fileBytes ?? 0;
    this.#versions = { image: image.id, base: image.base, engine: daemon.version };
    const spec = {
      ...DEFAULT_CONTAINER,
      ...options.container,
      memoryMiB: this.#ceilingMiB + OWN_MEMORY_MIB,
      image: image.id,
      imageVariant: variant,
      variants: VARIANTS.map((each) => ({ ...each, packages: IMAGE_VARIANTS[variant] })),
    };
    this.#pool = new ContainerPool({ ...options.pool, size, start: () => Container.start(daemon.docker, spec) });
  }

  get versions(): Readonly<Record<string, string>> {
    return this.#versions;
  }

  get statistics(): PoolStatistics {
    return this.#pool.statistics;
  }

  async warmUp(): Promise<void> {
    try {
      const { python } = await this.#pool.warmUp();
      this.#versions = { python, ...this.#versions };
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  async run(program: Program, options: RunOptions = {}): Promise<ProgramResult> {
    const limits = { ...this.#limits, ...options.limits };
    const { memoryMiB } = limits;
    if (!(memoryMiB >= MIN_MEMORY_MIB && memoryMiB <= this.#ceilingMiB)) {
      throw new Error(
        `memoryMiB must lie between ${MIN_MEMORY_MIB} and the containers' ${this.#ceilingMiB}, not ${memoryMiB}`,
      );
    }
    return runPasses(program, options, (kind) => this.#pass(program, limits, kind));
  }

  async literals(texts: readonly string[]): Promise<(string | null)[]> {
    const wellFormed = texts.map((text) => (text.isWellFormed() ? text : ')'));
    const limits = { ...this.#limits, timeoutMs: LITERALS_TIMEOUT_MS };
    const end = await this.#submit({ literals: wellFormed }, limits, 0, LITERALS_REPLY_BYTES, false);
    if (end.kind === 'unavailable') throw new SandboxError(end.detail);
    if (end.kind === 'done') {
      const { prepared } = doneSchema.parse(end.frame.header);
      const said = readPrepared(end.frame, prepared) as { literals: (string | null)[] } | null;
      if (said !== null) return said.literals;
    }
    if (texts.length <= 1) return texts.map(() => null);
    // One of them brought the interpreter down: it must not take the others with it.
    return (await Promise.all(texts.map((text) => this.literals([text])))).flat();
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  async #pass(program: Program, limits: Limits, { variant, ...kind }: PassKind): Promise<PassReply> {
    const { code, calls } = program;
    const { resultBytes, timeoutMs } = limits;
    const request = { code, calls, ...kind, resultBytes };
    const end = await this.#submit(request, limits, variant, frameLimit(calls.length, resultBytes), calls.length > 0);
    switch (end.kind) {
      case 'done':
        return readPass(program, end.frame, resultBytes);
      case 'timeout':
        return failedPass(program, 'timeout', `ran longer than ${timeoutMs} ms, twice`, timeoutMs);
      case 'died':
        return this.#blame(program, end.detail);
      case 'unavailable':
        return failedPass(program, 'sandbox_failure', end.detail);
      case 'refused':
        return failedPass(program, 'memory', end.detail);
    }
  }

  /** Supervisors gave up under a program. If a harmless one runs well now, it was the program's doing. */
  async #blame(program: Program, detail: string): Promise<PassReply> {
    const [healthy] = await this.literals(['1']).catch(() => [null]);
    if (healthy !== '1') return failedPass(program, 'sandbox_failure', `containers died: ${detail}`);
    return failedPass(program, 'runtime_error', `the program ended every container it ran in: ${detail}`);
  }

  #submit(
    request: object,
    limits: Limits,
    variant: number,
    replyBytes: number,
    execute: boolean,
  ): Promise<JobEnd | Refused> {
    const { timeoutMs, memoryMiB, outputBytes } = limits;
    const body = Buffer.from(JSON.stringify(request));
    if (body.length > MAX_REQUEST_BYTES) {
      return Promise.resolve({
        kind: 'refused',
        detail: `a program of ${body.length} bytes is larger than a container takes`,
      });
    }
    const reply = Math.min(replyBytes, MAX_REPLY_BYTES);
    const header = {
      variant,
      timeoutMs,
      memoryMiB,
      outputBytes,
      replyBytes: reply,
      execute,
      fileBytes: this.#fileBytes,
    };
    return this.#pool.submit({ header, body });
  }
}

function readPrepared({ body }: Frame, bytes: number | null): unknown {
  return bytes === null ? null : JSON.parse(body.toString('utf8', 0, bytes));
}

/** Before the results: whether memory ran out, and two counts of 8 digits: uses of the clock and of entropy. */
const REPLY_HEAD = /^[fr]\d{16}$/;
const REPLY_HEAD_BYTES = 17;

function readPass(program: Program, frame: Frame, resultBytes: number): PassReply {
  const done = doneSchema.parse(frame.header);
  const { milliseconds } = done;
  const unrun = { facts: null, usesHash: false, usesId: false, clockCalls: 0, entropyCalls: 0, milliseconds };
  const prepared = readPrepared(frame, done.prepared) as Prepared | null;
  if (prepared === null) {
    // No code of the program has run: the parser ran out of stack or memory.
    const stopped = describeEnd(done);
    return {
      ...unrun,
      calls: program.calls.map(() => ({
        ...stopped,
        outcome: stopped.outcome === 'memory' ? 'memory' : 'syntax_error',
      })),
    };
  }
  if (prepared.error !== null) return failedPass(program, 'syntax_error', prepared.error, milliseconds);
  if (program.calls.length === 0) return { ...unrun, calls: [], facts: prepared.facts };

  const reply = frame.body.subarray(done.prepared ?? 0);
  const head = reply.toString('latin1', 0, REPLY_HEAD_BYTES);
  const isFull = head.startsWith('f');
  const results =
    done.end === 'returned' && REPLY_HEAD.test(head)
      ? parseFrame(reply.subarray(REPLY_HEAD_BYTES), program.calls.length, resultBytes)
      : null;
  const whole = done.end === 'returned' ? describeEnd({ ...done, end: 'damaged' }) : describeEnd(done);
  return {
    calls: program.calls.map((_, index): CallResult => {
      const syntaxError = prepared.callErrors[index];
      if (typeof syntaxError === 'string') return failure('syntax_error', syntaxError);
      return blameMemory(results?.[index] ?? whole, isFull);
    }),
    facts: prepared.facts,
    usesHash: prepared.hashed,
    usesId: prepared.ids,
    clockCalls: results === null ? 0 : Number(head.slice(1, 9)),
    entropyCalls: results === null ? 0 : Number(head.slice(9)),
    milliseconds,
  };
}

/** `SIGABRT` of 6, by the numbers that Linux gives. */
function signalName(number: number | undefined): string {
  const [name] = Object.entries(constants.signals).find(([, each]) => each === number) ?? [`signal ${number}`];
  return name;
}

/** What a child that handed in nothing is told to have done. */
function describeEnd({ end, code, signal }: Done): CallResult {
  switch (end) {
    case 'exit':
      return failure(
        'runtime_error',
        `the program ended its interpreter with exit code ${code} before giving a result`,
      );
    case 'output':
      return failure('output_limit', 'the program printed more than it may');
    case 'memory':
      return failure('memory', 'no memory was left for the program');
    case 'stack':
      return failure('runtime_error', 'RecursionError: the interpreter ran out of stack');
    case 'signal':
      return failure('runtime_error', `the interpreter gave up: ${signalName(signal)}`);
    case 'damaged':
    case 'returned':
      return failure('runtime_error', 'the program damaged its interpreter: it gave no valid result');
  }
}
