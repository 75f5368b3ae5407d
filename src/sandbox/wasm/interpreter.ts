/** One CPython: booted to a snapshot, then restored from it for every program. Runs inside a worker. */
import { PAGE_BYTES } from './module.js';
import { Stop, WasiHost, type Variant } from './host.js';

/** A parked interpreter: its whole linear memory (shared, never written) and the stack pointer. */
export interface Snapshot {
  readonly memory: SharedArrayBuffer;
  readonly stackPointer: number;
  readonly variant: Variant;
}

/** How a step of the interpreter ended. `trap`: the module itself gave up (abort, stack overflow, unreachable). */
export type StepEnd =
  | { readonly kind: 'returned' }
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'output' }
  | { readonly kind: 'trap'; readonly detail: string };

/** The Python functions that the boot script leaves behind, as NUL-ended statements. */
const STEPS = {
  prepare: Buffer.from('__prepare()\0'),
  execute: Buffer.from('__execute()\0'),
  emit: Buffer.from('__emit()\0'),
} as const;

interface PythonExports {
  readonly memory: WebAssembly.Memory;
  readonly _start: () => void;
  readonly run_string: (pointer: number, flags: number) => number;
  readonly __stack_pointer: WebAssembly.Global;
}

/** Boots CPython with `source` as its program, which must park, and copies its state. About 300 ms. */
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
  const memory = new SharedArrayBuffer(python.memory.buffer.byteLength);
  new Uint8Array(memory).set(new Uint8Array(python.memory.buffer));
  return { memory, stackPointer: Number(python.__stack_pointer.value), variant };
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
  readonly #module: WebAssembly.Module;
  readonly #snapshot: Snapshot;
  readonly #image: Uint8Array;
  #python: PythonExports;

  constructor(module: WebAssembly.Module, snapshot: Snapshot) {
    this.host = new WasiHost(snapshot.variant);
    this.#module = module;
    this.#snapshot = snapshot;
    this.#image = new Uint8Array(snapshot.memory);
    this.#python = this.#instantiate();
  }

  get memoryBytes(): number {
    return this.#python.memory.buffer.byteLength;
  }

  /** Back to the snapshot. A memory that has grown cannot shrink, so then the instance is replaced. */
  restore(): void {
    if (this.memoryBytes !== this.#image.length) this.#python = this.#instantiate();
    new Uint8Array(this.#python.memory.buffer).set(this.#image);
  }

  /** Runs one of the steps on whatever state the interpreter is in. */
  step(name: keyof typeof STEPS): StepEnd {
    const statement = STEPS[name];
    // Below everything the parked interpreter has on its stack.
    const pointer = (this.#snapshot.stackPointer - 256) & ~15;
    new Uint8Array(this.#python.memory.buffer, pointer, statement.length).set(statement);
    this.#python.__stack_pointer.value = pointer - 256;
    try {
      this.#python.run_string(pointer, 0);
      return { kind: 'returned' };
    } catch (error) {
      if (!(error instanceof Stop)) return { kind: 'trap', detail: String(error).slice(0, 200) };
      return error.reason === 'exit' ? { kind: 'exit', code: error.code } : { kind: 'output' };
    }
  }

  #instantiate(): PythonExports {
    const python = instantiate(this.#module, this.host);
    const missing = (this.#image.length - python.memory.buffer.byteLength) / PAGE_BYTES;
    if (missing > 0) python.memory.grow(missing);
    return python;
  }
}
