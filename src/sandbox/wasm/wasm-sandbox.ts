/**
 * The embedded sandbox: CPython 3.12 as a WASM module, booted once, restored from a snapshot for every program. A program
 * cannot leave anything behind. What it does not cover: workers share the process, so a hole in V8 itself would open it.
 */
import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { failedPass, runPasses, VARIANTS, type PassKind, type PassReply } from '../passes.js';
import { SHARED_SOURCES } from '../python-sources.js';
import {
  DEFAULT_LIMITS,
  SandboxError,
  type Limits,
  type Program,
  type ProgramResult,
  type RunOptions,
  type Sandbox,
} from '../sandbox.js';
import type { Snapshot } from './interpreter.js';
import { compilePythonModule, loadPythonModule, PAGE_BYTES } from './module.js';
import { bootInWorker, WorkerPool, type JobEnd } from './pool.js';
import type { Request } from './protocol.js';

export interface WasmSandboxOptions {
  /** Worker threads, 25 MB each and as much as a program takes. Default: one a core, at least 2. */
  readonly size?: number;
  /** Replace single defaults of `DEFAULT_LIMITS` for all runs. */
  readonly limits?: Partial<Limits>;
}

const PYTHON_SOURCES = [...SHARED_SOURCES, 'wasm_boot.py'];
const OWN_IMPORT = /^from (?:syntax|operations|dependence) import .*\n/gm;
/** Below this CPython itself does not boot. */
const MIN_MEMORY_MIB = 32;
const MAX_MEMORY_MIB = 4096;
const BOOT_ATTEMPTS = 2;
const LITERALS_TIMEOUT_MS = 5000;

/** Compiles CPython, boots the first snapshot and resolves when programs can run: about 1 s. Throws `SandboxError` when they cannot. */
export async function createWasmSandbox(options: WasmSandboxOptions = {}): Promise<Sandbox> {
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const size = options.size ?? Math.max(2, availableParallelism());
  if (!Number.isInteger(size) || size < 1) throw new Error(`sandbox size must be a whole number from 1, not ${size}`);
  const { bytes, sha256 } = await loadPythonModule();
  const module = await compilePythonModule(bytes, memoryPages(limits.memoryMiB));
  const sandbox = new WasmSandbox(size, limits, sha256, module, await readPythonSource());
  await sandbox.warmUp();
  return sandbox;
}

class WasmSandbox implements Sandbox {
  readonly name = 'wasm';
  readonly size: number;
  readonly versions: Readonly<Record<string, string>>;
  readonly #limits: Limits;
  readonly #source: string;
  readonly #pool: WorkerPool;
  readonly #modules = new Map<number, Promise<WebAssembly.Module>>();
  readonly #snapshots = new Map<number, Promise<Snapshot>>();

  constructor(size: number, limits: Limits, sha256: string, module: WebAssembly.Module, source: string) {
    this.size = size;
    this.versions = { python: '3.12.0', wasm: `sha256:${sha256}` };
    this.#limits = limits;
    this.#source = source;
    this.#pool = new WorkerPool(size);
    this.#modules.set(memoryPages(limits.memoryMiB), Promise.resolve(module));
  }

  /** Boots the snapshots that every program needs, the second in the background, and starts one worker. */
  async warmUp(): Promise<void> {
    void this.#snapshot(1).catch(() => {});
    const [end] = await this.literals(['1']);
    if (end !== '1') throw new SandboxError('the sandbox does not answer after booting');
  }

  async run(program: Program, options: RunOptions = {}): Promise<ProgramResult> {
    const limits = { ...this.#limits, ...options.limits };
    return runPasses(program, options, (kind) => this.#pass(program, limits, kind));
  }

  async literals(texts: readonly string[]): Promise<(string | null)[]> {
    const wellFormed = texts.map((text) => (text.isWellFormed() ? text : ')'));
    const request = { kind: 'literals', texts: wellFormed } as const;
    const end = await this.#submit(request, { ...this.#limits, timeoutMs: LITERALS_TIMEOUT_MS }, 0);
    if (end.kind === 'unavailable') throw new SandboxError(end.detail);
    if (end.kind === 'reply' && end.reply.kind === 'literals' && end.reply.literals !== null)
      return [...end.reply.literals];
    if (texts.length <= 1) return texts.map(() => null);
    // One of them brought the interpreter down: it must not take the others with it.
    return (await Promise.all(texts.map((text) => this.literals([text])))).flat();
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  async #pass(program: Program, limits: Limits, { variant, ...kind }: PassKind): Promise<PassReply> {
    const { code, calls } = program;
    const { outputBytes, resultBytes } = limits;
    const request = { ...kind, kind: 'pass', code, calls, outputBytes, resultBytes } as const;
    const end = await this.#submit(request, limits, variant);
    switch (end.kind) {
      case 'reply':
        if (end.reply.kind === 'pass') return end.reply;
        return failedPass(program, 'sandbox_failure', 'a worker answered another request');
      case 'timeout':
        return failedPass(program, 'timeout', `ran longer than ${limits.timeoutMs} ms, twice`, limits.timeoutMs);
      case 'died':
        return this.#blame(program, end.detail);
      case 'unavailable':
        return failedPass(program, 'sandbox_failure', end.detail);
    }
  }

  /** Workers died under a program. If a harmless one runs well now, it was the program's doing, unless this machine is short of memory. */
  async #blame(program: Program, detail: string): Promise<PassReply> {
    const [healthy] = await this.literals(['1']).catch(() => [null]);
    if (healthy !== '1' || detail.includes('allocate')) {
      return failedPass(program, 'sandbox_failure', `workers died: ${detail}`);
    }
    const outcome = detail.includes('heap') ? 'memory' : 'runtime_error';
    return failedPass(program, outcome, `the program ended every worker it ran in: ${detail}`);
  }

  async #submit(request: Request, limits: Limits, variant: number): Promise<JobEnd> {
    const pages = memoryPages(limits.memoryMiB);
    try {
      const module = await this.#module(pages);
      const snapshot = await this.#snapshot(variant);
      const place = { variant, memoryPages: pages };
      return await this.#pool.submit({ request, place, module, snapshot, timeoutMs: limits.timeoutMs });
    } catch (error) {
      return { kind: 'unavailable', detail: (error as Error).message };
    }
  }

  #module(pages: number): Promise<WebAssembly.Module> {
    return remember(this.#modules, pages, async () => compilePythonModule((await loadPythonModule()).bytes, pages));
  }

  #snapshot(variant: number): Promise<Snapshot> {
    return remember(this.#snapshots, variant, async () => {
      const module = await this.#module(memoryPages(this.#limits.memoryMiB));
      const description = VARIANTS[variant];
      if (description === undefined) throw new Error(`there is no interpreter variant ${variant}`);
      for (let attempt = 1; ; attempt++) {
        try {
          return await bootInWorker({ job: 'boot', module, source: this.#source, variant: description });
        } catch (error) {
          if (attempt === BOOT_ATTEMPTS) throw error;
        }
      }
    });
  }
}

/** The value under `key`, made once; a failure is not remembered. */
function remember<Key, Value>(cache: Map<Key, Promise<Value>>, key: Key, make: () => Promise<Value>): Promise<Value> {
  const known = cache.get(key);
  if (known !== undefined) return known;
  const made = make();
  cache.set(key, made);
  made.catch(() => cache.delete(key));
  return made;
}

function memoryPages(memoryMiB: number): number {
  if (!(memoryMiB >= MIN_MEMORY_MIB && memoryMiB <= MAX_MEMORY_MIB)) {
    throw new Error(`memoryMiB must lie between ${MIN_MEMORY_MIB} and ${MAX_MEMORY_MIB}, not ${memoryMiB}`);
  }
  return Math.min(Math.floor((memoryMiB * (1 << 20)) / PAGE_BYTES), 65_535);
}

async function readPythonSource(): Promise<string> {
  const files = PYTHON_SOURCES.map((name) => readFile(new URL(`../python/${name}`, import.meta.url), 'utf8'));
  return (await Promise.all(files)).join('\n').replaceAll(OWN_IMPORT, '');
}
