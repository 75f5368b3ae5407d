/**
 * What CPython sees of the world: a WASI host that denies by default and keeps no state a program could leave behind.
 * There are three descriptors, no files, no sockets; clock and entropy are virtual, and every use of them is counted.
 */
import type { Variant } from '../passes.js';

const ERRNO = { success: 0, badFile: 8, invalid: 28, notSupported: 52, illegalSeek: 70, notCapable: 76 } as const;
const CHARACTER_DEVICE = 2;
const RIGHTS = { read: 2n, write: 64n } as const;
const MAX_VECTORS = 1024;

export type StopReason = 'parked' | 'exit' | 'output';

/** Thrown through the interpreter to end it; its state is then given up. */
export class Stop extends Error {
  readonly reason: StopReason;
  readonly code: number;
  constructor(reason: StopReason, code = 0) {
    super(`interpreter stopped: ${reason}`);
    this.reason = reason;
    this.code = code;
  }
}

/**
 * Who may write where. `boot`: output is kept, for error messages. `exchange`: no code of a program has run yet, or it has
 * ended for good; descriptor 1 is the reply. `program`: both outputs are only counted.
 */
export type Phase = 'boot' | 'exchange' | 'program';

export class WasiHost {
  memory!: WebAssembly.Memory;
  /** Uses of the clock and of entropy since the phase began. */
  clockCalls = 0;
  entropyCalls = 0;

  readonly #variant: Variant;
  readonly #arguments: readonly string[];
  readonly #environment: readonly string[];
  #phase: Phase = 'boot';
  #input: Uint8Array = new Uint8Array(0);
  #inputAt = 0;
  #reply = Buffer.alloc(1 << 16);
  #replyLength = 0;
  #replyLimit = 1 << 20;
  #outputLeft = 0;
  #clockTicks = 0n;
  #entropyState: number;

  constructor(variant: Variant, args: readonly string[] = []) {
    this.#variant = variant;
    this.#arguments = args;
    this.#environment = [`PYTHONHASHSEED=${variant.hashSeed}`, 'PYTHONUTF8=1', `ADDRESS_SHIFT=${variant.addressShift}`];
    this.#entropyState = variant.entropySeed >>> 0;
  }

  /** The interpreter will read `input` and its writes to descriptor 1 are the reply, of at most `replyLimit` bytes. */
  beginExchange(input: Uint8Array, replyLimit: number): void {
    this.#phase = 'exchange';
    this.#input = input;
    this.#inputAt = 0;
    this.#replyLength = 0;
    this.#replyLimit = replyLimit;
  }

  /** The program's own code runs next: no input, a fresh virtual clock and entropy, `outputBytes` to print. */
  beginProgram(outputBytes: number): void {
    this.#phase = 'program';
    this.#input = new Uint8Array(0);
    this.#inputAt = 0;
    this.#outputLeft = outputBytes;
    this.#clockTicks = 0n;
    this.#entropyState = this.#variant.entropySeed >>> 0;
    this.clockCalls = 0;
    this.entropyCalls = 0;
  }

  /** What was written to descriptor 1 in an exchange, or to either while booting; valid until the next phase. */
  get reply(): Buffer {
    return this.#reply.subarray(0, this.#replyLength);
  }

  /** The import object of a module; every function that is not lent answers "not capable". */
  imports(module: WebAssembly.Module): WebAssembly.Imports {
    const lent = this.#lent();
    const functions: Record<string, (...values: never[]) => number> = {};
    for (const { module: namespace, name, kind } of WebAssembly.Module.imports(module)) {
      if (namespace !== 'wasi_snapshot_preview1' || kind !== 'function') {
        throw new Error(`python.wasm wants an import that no sandbox gives: ${namespace}.${name}`);
      }
      functions[name] = lent[name] ?? (() => (name.startsWith('fd_') ? ERRNO.badFile : ERRNO.notCapable));
    }
    return { wasi_snapshot_preview1: functions };
  }

  #lent(): Record<string, (...values: never[]) => number> {
    const standard = (fd: number): boolean => fd >= 0 && fd <= 2;
    const args = this.#stringList(this.#arguments);
    const environment = this.#stringList(this.#environment);
    return {
      args_sizes_get: args.sizes,
      args_get: args.get,
      environ_sizes_get: environment.sizes,
      environ_get: environment.get,
      clock_res_get: (_clock: number, result: number) => {
        this.#view().setBigUint64(result >>> 0, 1000n, true);
        return ERRNO.success;
      },
      clock_time_get: (_clock: number, _precision: bigint, result: number) => {
        // The boot script announces with its only write that its next look at the clock is where to park.
        if (this.#phase === 'boot' && this.#replyLength > 0) throw new Stop('parked');
        this.clockCalls++;
        this.#clockTicks += 1000n;
        this.#view().setBigUint64(result >>> 0, this.#epoch() + this.#clockTicks, true);
        return ERRNO.success;
      },
      random_get: (pointer: number, length: number) => {
        this.entropyCalls++;
        const bytes = this.#bytes(pointer, length);
        for (let index = 0; index < bytes.length; index++) {
          this.#entropyState = (Math.imul(this.#entropyState, 1664525) + 1013904223) >>> 0;
          bytes[index] = this.#entropyState >>> 24;
        }
        return ERRNO.success;
      },
      fd_read: (fd: number, vectors: number, count: number, result: number) => this.#read(fd, vectors, count, result),
      fd_write: (fd: number, vectors: number, count: number, result: number) => this.#write(fd, vectors, count, result),
      // Closing changes nothing here, so a program cannot take a descriptor from the next one.
      fd_close: (fd: number) => (standard(fd) ? ERRNO.success : ERRNO.badFile),
      fd_seek: (fd: number) => (standard(fd) ? ERRNO.illegalSeek : ERRNO.badFile),
      fd_tell: (fd: number) => (standard(fd) ? ERRNO.illegalSeek : ERRNO.badFile),
      fd_fdstat_get: (fd: number, result: number) => {
        if (!standard(fd)) return ERRNO.badFile;
        const bytes = this.#bytes(result, 24).fill(0);
        bytes[0] = CHARACTER_DEVICE;
        this.#view().setBigUint64((result >>> 0) + 8, fd === 0 ? RIGHTS.read : RIGHTS.write, true);
        return ERRNO.success;
      },
      fd_filestat_get: (fd: number, result: number) => {
        if (!standard(fd)) return ERRNO.badFile;
        const bytes = this.#bytes(result, 64).fill(0);
        bytes[16] = CHARACTER_DEVICE;
        return ERRNO.success;
      },
      fd_prestat_get: () => ERRNO.badFile,
      fd_prestat_dir_name: () => ERRNO.badFile,
      poll_oneoff: (input: number, output: number, count: number, result: number) =>
        this.#sleep(input >>> 0, output >>> 0, count, result >>> 0),
      sched_yield: () => ERRNO.success,
      proc_exit: (code: number) => {
        throw new Stop('exit', code | 0);
      },
    };
  }

  #epoch(): bigint {
    return BigInt(this.#variant.epochMs) * 1_000_000n;
  }

  /** Throws a RangeError when it reaches outside the memory. */
  #bytes(pointer: number, length: number): Uint8Array {
    return new Uint8Array(this.memory.buffer, pointer >>> 0, length >>> 0);
  }

  #view(): DataView {
    return new DataView(this.memory.buffer);
  }

  /** The pieces of an iovec array; null when there are absurdly many. */
  #vectors(pointer: number, count: number): Uint8Array[] | null {
    if (count < 0 || count > MAX_VECTORS) return null;
    const view = this.#view();
    const at = pointer >>> 0;
    return Array.from({ length: count }, (_, index) =>
      this.#bytes(view.getUint32(at + 8 * index, true), view.getUint32(at + 8 * index + 4, true)),
    );
  }

  #read(fd: number, pointer: number, count: number, result: number): number {
    if (fd !== 0) return ERRNO.badFile;
    const vectors = this.#vectors(pointer, count);
    if (vectors === null) return ERRNO.invalid;
    let total = 0;
    for (const vector of vectors) {
      const piece = this.#input.subarray(this.#inputAt, this.#inputAt + vector.length);
      vector.set(piece);
      this.#inputAt += piece.length;
      total += piece.length;
    }
    this.#view().setUint32(result >>> 0, total, true);
    return ERRNO.success;
  }

  #write(fd: number, pointer: number, count: number, result: number): number {
    if (fd !== 1 && fd !== 2) return ERRNO.badFile;
    const vectors = this.#vectors(pointer, count);
    if (vectors === null) return ERRNO.invalid;
    let total = 0;
    for (const vector of vectors) {
      total += vector.length;
      if (this.#phase === 'boot' || (this.#phase === 'exchange' && fd === 1)) this.#keep(vector);
    }
    if (this.#phase === 'program') {
      this.#outputLeft -= total;
      if (this.#outputLeft < 0) throw new Stop('output');
    }
    this.#view().setUint32(result >>> 0, total, true);
    return ERRNO.success;
  }

  #keep(bytes: Uint8Array): void {
    const length = this.#replyLength + bytes.length;
    if (length > this.#replyLimit) throw new Stop('output');
    if (length > this.#reply.length) {
      const larger = Buffer.alloc(Math.min(Math.max(length, 2 * this.#reply.length), this.#replyLimit));
      this.#reply.copy(larger, 0, 0, this.#replyLength);
      this.#reply = larger;
    }
    this.#reply.set(bytes, this.#replyLength);
    this.#replyLength = length;
  }

  /** Sleeping moves only the virtual clock. One subscription, to a clock, is all that is lent. */
  #sleep(input: number, output: number, count: number, result: number): number {
    const view = this.#view();
    if (count !== 1 || view.getUint8(input + 8) !== 0) return ERRNO.notSupported;
    const duration = view.getBigUint64(input + 24, true);
    const absolute = (view.getUint16(input + 40, true) & 1) === 1;
    if (!absolute) this.#clockTicks += duration;
    else if (duration > this.#epoch()) this.#clockTicks = duration - this.#epoch();
    const userData = view.getBigUint64(input, true);
    this.#bytes(output, 32).fill(0);
    view.setBigUint64(output, userData, true);
    view.setUint32(result, 1, true);
    return ERRNO.success;
  }

  #stringList(list: readonly string[]): {
    sizes: (count: number, size: number) => number;
    get: (pointers: number, text: number) => number;
  } {
    const encoded = list.map((text) => Buffer.from(`${text}\0`));
    return {
      sizes: (count, size) => {
        this.#view().setUint32(count >>> 0, encoded.length, true);
        this.#view().setUint32(size >>> 0, Buffer.concat(encoded).length, true);
        return ERRNO.success;
      },
      get: (pointers, text) => {
        let pointerAt = pointers >>> 0;
        let textAt = text >>> 0;
        for (const bytes of encoded) {
          this.#view().setUint32(pointerAt, textAt, true);
          this.#bytes(textAt, bytes.length).set(bytes);
          pointerAt += 4;
          textAt += bytes.length;
        }
        return ERRNO.success;
      },
    };
  }
}
