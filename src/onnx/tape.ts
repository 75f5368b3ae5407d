/** The record of a forward pass, and the backward pass over it. */
import { Emitter } from './emitter.js';
import type { Value } from './graph.js';

export interface TapeEntry {
  readonly outputs: readonly Value[];
  readonly operands: readonly (Value | null)[];
  /** Gradients of the outputs (undefined: none flows) → a thunk per operand, called only for those that require one. */
  readonly vjp: (gradients: readonly (Value | undefined)[]) => readonly (() => Value)[];
}

export class Tape extends Emitter {
  #tape: TapeEntry[] = [];

  protected record(
    output: Value,
    operands: readonly (Value | null)[],
    vjp: (gradient: Value) => readonly (() => Value)[],
  ): Value {
    output.requiresGrad = operands.some((v) => v?.requiresGrad);
    if (output.requiresGrad) this.#tape.push({ outputs: [output], operands, vjp: ([g]) => vjp(g!) });
    return output;
  }

  /** Put on record what has several results, marked as requiring a gradient. */
  recordAll(entry: TapeEntry): void {
    this.#tape.push(entry);
  }

  /** What the record depends on with a gradient, besides `x`. */
  leavesBeside(x: Value): Value[] {
    return leavesOf(this.#tape, x);
  }

  /**
   * f(x), keeping x alone for the gradient: the backward pass computes f again (Chen et al. 2016). f may use other values, such as factors.
   */
  recomputed(x: Value, f: (x: Value) => Value): Value {
    const [y, tape] = this.#recorded(() => f(x));
    if (!y.requiresGrad) return y;
    const leaves = leavesOf(tape, x);
    this.#tape.push({
      outputs: [y],
      operands: [x, ...leaves],
      vjp: ([gradient]) => {
        // Tied to the incoming gradient, or ONNX Runtime would compute again at once, and keep everything after all.
        const first = this.emitSlice(gradient!, 0, this.int64([0]), this.int64([1]), 1);
        const tied = this.emitAdd(x, this.emitScale(first, 0));
        tied.requiresGrad = x.requiresGrad;
        const [again, inner] = this.#recorded(() => f(tied));
        const gradients = this.#backward(inner, again, gradient!, [tied, ...leaves]);
        return gradients.map((g) => () => g);
      },
    });
    return y;
  }

  /** What `emit` returns, and what it put on a tape of its own. */
  #recorded<T>(emit: () => T): [result: T, tape: TapeEntry[]] {
    const outer = this.#tape;
    this.#tape = [];
    try {
      return [emit(), this.#tape];
    } finally {
      this.#tape = outer;
    }
  }

  /** Gradients of a scalar with respect to `operands`; zeros where nothing depends on one. */
  gradients(loss: Value, operands: readonly Value[]): Value[] {
    return this.#backward(this.#tape, loss, this.scalar(1), operands);
  }

  #backward(tape: readonly TapeEntry[], result: Value, seed: Value, operands: readonly Value[]): Value[] {
    const gradients = new Map<string, Value>([[result.name, seed]]);
    for (const entry of tape.toReversed()) {
      const incoming = entry.outputs.map((o) => gradients.get(o.name));
      if (incoming.every((g) => !g)) continue;
      const thunks = entry.vjp(incoming);
      entry.operands.forEach((operand, i) => {
        if (!operand?.requiresGrad) return;
        const gradient = thunks[i]!();
        const sofar = gradients.get(operand.name);
        gradients.set(operand.name, sofar ? this.emitAdd(sofar, gradient) : gradient);
      });
      for (const o of entry.outputs) gradients.delete(o.name);
    }
    return operands.map((v) => gradients.get(v.name) ?? this.zeros(v.shape));
  }
}

/** What a tape differentiates with respect to, besides `x`: operands that no entry of it made. */
function leavesOf(tape: readonly TapeEntry[], x: Value): Value[] {
  const made = new Set(tape.flatMap((entry) => entry.outputs.map((o) => o.name))).add(x.name);
  const leaves = new Map<string, Value>();
  for (const { operands } of tape)
    for (const v of operands) if (v?.requiresGrad && !made.has(v.name)) leaves.set(v.name, v);
  return [...leaves.values()];
}
