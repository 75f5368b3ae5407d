/** One CPython: booted to a snapshot, then restored from it for every program. Runs inside a worker. */
import { DEEP_STACK_PAGES, PAGE_BYTES } from './module.js';
import type { Variant } from '../passes.js';
import { Stop, WasiHost } from './host.js';

/** A parked interpreter: its whole linear memory (shared, never written) and the stack pointer. */
export interface Snapshot {
  readonly memory: SharedArrayBuffer;
  readonly stackPointer: number;
  /** Where CPython keeps how many levels of recursion in C are left, as an index of 32-bit words. */
  readonly recursionAt: number;
  readonly variant: Variant;
}

/** How a step of the interpreter ended. `stack`: recursion left its stack. `trap`: the module itself gave up (abort, unreachable). */
export type StepEnd =
  | { readonly kind: 'returned' }
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'output' }
  | { readonly kind: 'stack' }
  | { readonly kind: 'trap'; readonly detail: string };

/**
 * Where the interpreter's C stack lies. `own`: the module's 512 KiB at the bottom of its memory, enough for 50 levels of recursion
 * through C; overflow leaves the memory and traps. `deep`: 32 MiB beyond the heap, more than CPython's own limit of recursion needs.
 */
export type Stack = 'own' | 'deep';

/** The Python functions that the boot script leaves behind, as NUL-ended statements: at the depth of frames that containers have. */
const STEPS = {
  prepare: Buffer.from('with __step: __prepare()\0'),
  execute: Buffer.from('with __step: __execute()\0'),
  emit: Buffer.from('with __step: __emit()\0'),
} as const;

/**
 * Levels of recursion in C, 500 in builds for WASI. While a program is read, as many as elsewhere, by which the compiler says what is
 * nested too deep; while it runs, enough for Python's own limit of 1000 levels, each through `lru_cache`, which takes three. A level
 * takes up to 5 KiB of stack.
 */
const C_RECURSION_LEVELS = { prepare: 1500, execute: 3200, emit: 3200 } as const;
/** The far end of the deep stack, which only recursion without any limit reaches. */
const STACK_GUARD_BYTES = 1 << 20;
const DEEP_STACK_BYTES = DEEP_STACK_PAGES * PAGE_BYTES;

interface PythonExports {
  readonly memory: WebAssembly.Memory;
  readonly _start: () => void;
  readonly run_string: (pointer: number, flags: number) => number;
  readonly __stack_pointer: WebAssembly.Global;
}

/** Boots CPython with `source` as its program, which must park, and copies its state. About half a second. */
export function bootSnapshot(module: WebAssembly.Module, source: string, variant: Variant): Snapshot {
  const host = new WasiHost(variant, ['python', '-S', '-s', '-B', '-c', source]);
  const python = instantiate(module, host);
  try {
    python._start();
    throw new Error('CPython ended instead of parking');
  } catch (error) {
    if (!(error instanceof Stop && error.reason === 'parked')) {
      throw new Error(`CPython did not boot: ${String(error)} ${host.reply.toString('utf8')}`, { cause: error });
    }
  }
  const recursionAt = findRecursionLimit(new Uint32Array(python.memory.buffer));
  const memory = new SharedArrayBuffer(python.memory.buffer.byteLength);
  new Uint8Array(memory).set(new Uint8Array(python.memory.buffer));
  return { memory, stackPointer: Number(python.__stack_pointer.value), recursionAt, variant };
}

/**
 * The place of `c_recursion_remaining` of the only thread state. It lies after `py_recursion_remaining` and `py_recursion_limit` (1000)
 * and before `recursion_headroom` (0).
 */
function findRecursionLimit(words: Uint32Array): number {
  const matches: number[] = [];
  for (let at = words.indexOf(1000); at > 0; at = words.indexOf(1000, at + 1)) {
    const [before = 0, after = 0, headroom = 1] = [words[at - 1], words[at + 1], words[at + 2]];
    if (before > 900 && before <= 1000 && after > 400 && after <= 500 && headroom === 0) matches.push(at + 1);
  }
  const [found] = matches;
  if (found === undefined || matches.length > 1) {
    throw new Error(`found ${matches.length} thread states in CPython's memory instead of one`);
  }
  return found;
}

function instantiate(module: WebAssembly.Module, host: WasiHost): PythonExports {
  const instance = new WebAssembly.Instance(module, host.imports(module));
  const python = instance.exports as unknown as PythonExports;
  host.memory = python.memory;
  return python;
}

/**
 * An instance that returns to one snapshot again and again. Memory and stack pointer are all the state there is: the
 * module has one mutable global, a fixed table and drops no segments.
 */
export class Interpreter {
  readonly host: WasiHost;
  /** Bytes of memories given up so far; they stay allocated until this thread's garbage collector looks at them. */
  discardedBytes = 0;
  readonly #module: WebAssembly.Module;
  readonly #snapshot: Snapshot;
  readonly #image: Uint8Array;
  #python: PythonExports;
  #stack: Stack = 'own';

  constructor(module: WebAssembly.Module, snapshot: Snapshot) {
    this.host = new WasiHost(snapshot.variant);
    this.#module = module;
    this.#snapshot = snapshot;
    this.#image = new Uint8Array(snapshot.memory);
    this.#python = this.#instantiate();
  }

  /** What the interpreter takes now, the deep stack not counted. */
  get memoryBytes(): number {
    return this.#python.memory.buffer.byteLength - DEEP_STACK_BYTES;
  }

  /** The memory that the next program will not get, because this one made it grow; 0 when it did not. */
  get grownBytes(): number {
    return this.memoryBytes === this.#image.length ? 0 : this.memoryBytes;
  }

  /** Back to the snapshot, on the given stack. A memory that has grown cannot shrink, so then the instance is replaced. */
  restore(stack: Stack): void {
    if (this.memoryBytes !== this.#image.length) {
      this.discardedBytes += this.#python.memory.buffer.byteLength;
      this.#python = this.#instantiate();
    } else if (this.#stack === 'deep') {
      // The allocator does not know the deep stack, so nothing else writes there.
      new Uint8Array(this.#python.memory.buffer, this.#image.length).fill(0);
    }
    new Uint8Array(this.#python.memory.buffer).set(this.#image);
    this.#stack = stack;
  }

  /** Runs one of the steps on whatever state the interpreter is in. */
  step(name: keyof typeof STEPS): StepEnd {
    const statement = STEPS[name];
    const top = this.#stack === 'own' ? this.#snapshot.stackPointer : this.#image.length + DEEP_STACK_BYTES;
    // Below everything the parked interpreter has on its stack.
    const pointer = (top - 256) & ~15;
    new Uint32Array(this.#python.memory.buffer)[this.#snapshot.recursionAt] = C_RECURSION_LEVELS[name];
    new Uint8Array(this.#python.memory.buffer, pointer, statement.length).set(statement);
    this.#python.__stack_pointer.value = pointer - 256;
    try {
      this.#python.run_string(pointer, 0);
      return this.#leftDeepStack() ? { kind: 'stack' } : { kind: 'returned' };
    } catch (error) {
      if (this.#leftDeepStack()) return { kind: 'stack' };
      if (error instanceof Stop)
        return error.reason === 'exit' ? { kind: 'exit', code: error.code } : { kind: 'output' };
      const detail = String(error).slice(0, 200);
      return /out of bounds|call stack/.test(detail) ? { kind: 'stack' } : { kind: 'trap', detail };
    }
  }

  /** Nothing traps where the deep stack ends and the heap begins; what lies there tells. */
  #leftDeepStack(): boolean {
    if (this.#stack === 'own') return false;
    const guard = new BigUint64Array(this.#python.memory.buffer, this.#image.length, STACK_GUARD_BYTES / 8);
    return guard.some((word) => word !== 0n);
  }

  #instantiate(): PythonExports {
    const python = instantiate(this.#module, this.host);
    const bytes = this.#image.length + DEEP_STACK_BYTES;
    python.memory.grow((bytes - python.memory.buffer.byteLength) / PAGE_BYTES);
    this.#stack = 'own';
    return python;
  }
}
