/** Operators with shape inference and no gradients: what forward and backward passes are both written in. */
import type { Dim, Shape, Value } from './graph.js';
import { Graph } from './graph.js';
import { DATA_TYPE } from './proto.js';
import type { DType } from './proto.js';

/** Additive bias that removes a position from a softmax. */
export const MASKED = -1e9;

/** NumPy's broadcasting of two shapes; a symbol meets only itself or 1. */
export function broadcastShapes(a: Shape, b: Shape): Dim[] {
  const rank = Math.max(a.length, b.length);
  return Array.from({ length: rank }, (_, i) => {
    const x = a[a.length - rank + i] ?? 1;
    const y = b[b.length - rank + i] ?? 1;
    if (x !== y && x !== 1 && y !== 1) throw new Error(`shapes [${a.join()}] and [${b.join()}] do not broadcast`);
    return x === 1 ? y : x;
  });
}

export function sameShape(a: Shape, b: Shape): boolean {
  return a.length === b.length && a.every((d, i) => d === b[i]);
}

/** Number of elements, or null when a dimension is a symbol. */
function knownSize(shape: Shape): number | null {
  return shape.reduce<number | null>((n, d) => (n === null || typeof d === 'string' ? null : n * d), 1);
}

/** Inner dimensions of a product must be one. */
function checkInner(a: Shape, b: Shape, inner: Dim | undefined, other: Dim | undefined): void {
  if (inner !== other)
    throw new Error(`matrices [${a.join()}] and [${b.join()}] do not multiply: ${inner} against ${other}`);
}

interface MatMulOptions {
  readonly transA?: boolean;
  readonly transB?: boolean;
  readonly alpha?: number;
}

export class Emitter extends Graph {
  // Elementwise

  emitBinary(type: string, a: Value, b: Value, dtype: DType = a.dtype): Value {
    return this.op(type, [a, b], {}, broadcastShapes(a.shape, b.shape), dtype);
  }
  emitUnary(type: string, a: Value): Value {
    return this.op(type, [a], {}, a.shape, a.dtype);
  }
  emitAdd(a: Value, b: Value): Value {
    return this.emitBinary('Add', a, b);
  }
  emitSub(a: Value, b: Value): Value {
    return this.emitBinary('Sub', a, b);
  }
  emitMul(a: Value, b: Value): Value {
    return this.emitBinary('Mul', a, b);
  }
  emitDiv(a: Value, b: Value): Value {
    return this.emitBinary('Div', a, b);
  }
  emitNeg(a: Value): Value {
    return this.emitUnary('Neg', a);
  }
  emitScale(a: Value, factor: number): Value {
    return factor === 1 ? a : this.emitMul(a, this.scalar(factor));
  }
  emitWhere(condition: Value, a: Value, b: Value): Value {
    const shape = broadcastShapes(condition.shape, broadcastShapes(a.shape, b.shape));
    return this.op('Where', [condition, a, b], {}, shape, a.dtype);
  }
  cast(a: Value, dtype: DType): Value {
    return a.dtype === dtype ? a : this.op('Cast', [a], { to: DATA_TYPE[dtype] }, a.shape, dtype);
  }

  // Shape

  /** Reshape; sizes known only at run time are copied from the same axis, inferred when single, or computed. */
  emitReshape(a: Value, shape: Shape): Value {
    if (sameShape(a.shape, shape)) return a;
    const [before, after] = [knownSize(a.shape), knownSize(shape)];
    if (before !== null && after !== null && before !== after) {
      throw new Error(`[${a.shape.join()}] does not reshape to [${shape.join()}]`);
    }
    const inferred: Dim[] = shape.map((d, i) => (typeof d === 'string' && a.shape[i] === d ? 0 : d));
    const open = inferred.flatMap((d, i) => (typeof d === 'string' ? [i] : []));
    if (open.length) inferred[open[open.length - 1]!] = -1;
    const target =
      open.length <= 1
        ? this.int64(inferred as number[])
        : this.op(
            'Concat',
            inferred.map((d) => this.dim(d)),
            { axis: 0 },
            [shape.length],
            'int64',
          );
    return this.op('Reshape', [a, target], {}, shape, a.dtype);
  }
  emitTranspose(a: Value, perm: readonly number[]): Value {
    return this.op(
      'Transpose',
      [a],
      { perm },
      perm.map((p) => a.shape[p]!),
      a.dtype,
    );
  }
  emitConcat(parts: readonly Value[], axis: number, size: Dim): Value {
    return this.op(
      'Concat',
      parts,
      { axis },
      parts[0]!.shape.map((d, i) => (i === axis ? size : d)),
      parts[0]!.dtype,
    );
  }
  emitSplit(a: Value, axis: number, sizes: readonly number[]): Value[] {
    return this.ops(
      'Split',
      [a, this.int64(sizes)],
      { axis },
      sizes.map((s) => ({ shape: a.shape.map((d, i) => (i === axis ? s : d)), dtype: a.dtype })),
    );
  }
  /** Elements [from, to) along an axis; `size` is the result's dimension. */
  emitSlice(a: Value, axis: number, from: Value, to: Value, size: Dim): Value {
    const shape = a.shape.map((d, i) => (i === axis ? size : d));
    return this.op('Slice', [a, from, to, this.int64([axis])], {}, shape, a.dtype);
  }
  emitExpand(a: Value, shape: Shape): Value {
    return this.op('Expand', [a, this.shapeVector(shape)], {}, shape, a.dtype);
  }
  zeros(shape: Shape): Value {
    if (this.dialect === 'fused') return this.op('ConstantOfShape', [this.shapeVector(shape)], {}, shape);
    return this.emitExpand(this.scalar(0), shape);
  }
  /** 0, 1, …, n − 1 as int32, n known at run time. */
  emitRange(n: Dim): Value {
    const limit = this.cast(this.op('Squeeze', [this.dim(n)], {}, [], 'int64'), 'int32');
    return this.op('Range', [this.int32Scalar(0), limit, this.int32Scalar(1)], {}, [n], 'int32');
  }
  /** Rows of `a` along axis 0. */
  emitGather(a: Value, index: Value): Value {
    return this.op('Gather', [a, index], { axis: 0 }, [...index.shape, ...a.shape.slice(1)], a.dtype);
  }

  // Reductions

  emitReduce(
    type: 'ReduceSum' | 'ReduceMean' | 'ReduceMax' | 'ReduceMin',
    a: Value,
    axes: readonly number[],
    keep: boolean,
  ): Value {
    const drop = new Set(axes.map((x) => (x < 0 ? a.shape.length + x : x)));
    const shape = keep ? a.shape.map((d, i) => (drop.has(i) ? 1 : d)) : a.shape.filter((_, i) => !drop.has(i));
    const attributes = { keepdims: keep ? 1 : 0 };
    // Of opset 18's reductions all take their axes as an input.
    return this.op(type, [a, this.int64([...drop])], attributes, shape, a.dtype);
  }
  /** The largest magnitude, a scalar. */
  emitLargest(a: Value): Value {
    return this.op('ReduceMax', [this.emitUnary('Abs', a)], { keepdims: 0 }, [], a.dtype);
  }
  emitSumAll(a: Value): Value {
    return this.op('ReduceSum', [a], { keepdims: 0 }, [], a.dtype);
  }
  /** Sum a gradient down to the shape of the operand that was broadcast. */
  emitUnbroadcast(gradient: Value, shape: Shape): Value {
    if (sameShape(gradient.shape, shape)) return gradient;
    const lead = gradient.shape.length - shape.length;
    const axes = gradient.shape.flatMap((d, i) => (i < lead || (shape[i - lead] === 1 && d !== 1) ? [i] : []));
    const kept = this.emitReduce('ReduceSum', gradient, axes, true);
    return lead ? this.emitReshape(kept, shape) : kept;
  }

  // Linear algebra

  /** alpha · op(a) op(b) over equal leading dimensions. */
  emitMatMul(a: Value, b: Value, { transA = false, transB = false, alpha = 1 }: MatMulOptions = {}): Value {
    const rank = a.shape.length;
    checkInner(a.shape, b.shape, a.shape.at(transA ? -2 : -1), b.shape.at(transB ? -1 : -2));
    const rows = a.shape[transA ? rank - 1 : rank - 2]!;
    const columns = b.shape[b.shape.length - (transB ? 2 : 1)]!;
    const shape = [...a.shape.slice(0, -2), rows, columns];
    if (this.dialect === 'fused' && (transA || transB || alpha !== 1)) {
      return this.op('FusedMatMul', [a, b], { transA: +transA, transB: +transB, alpha: { float: alpha } }, shape);
    }
    const swap = (x: Value) => {
      const axes = x.shape.map((_, i) => i);
      return this.emitTranspose(x, [...axes.slice(0, -2), ...axes.slice(-2).reverse()]);
    };
    return this.emitScale(this.op('MatMul', [transA ? swap(a) : a, transB ? swap(b) : b], {}, shape), alpha);
  }
  /** alpha · op(a) op(b) + c on matrices. */
  emitGemm(
    a: Value,
    b: Value,
    c: Value | null,
    { transA = false, transB = false, alpha = 1 }: MatMulOptions = {},
  ): Value {
    checkInner(a.shape, b.shape, a.shape[transA ? 0 : 1], b.shape[transB ? 1 : 0]);
    const shape = [a.shape[transA ? 1 : 0]!, b.shape[transB ? 0 : 1]!];
    const attributes = { transA: +transA, transB: +transB, alpha: { float: alpha } };
    return this.op('Gemm', c ? [a, b, c] : [a, b], attributes, shape, a.dtype);
  }
  emitSoftmax(a: Value): Value {
    return this.op('Softmax', [a], { axis: -1 }, a.shape);
  }
  /** a − max − log Σ exp(a − max) over the last axis. */
  emitLogSoftmax(a: Value): Value {
    if (this.dialect === 'fused') return this.op('LogSoftmax', [a], { axis: -1 }, a.shape);
    const shifted = this.emitSub(a, this.emitReduce('ReduceMax', a, [-1], true));
    const total = this.emitReduce('ReduceSum', this.emitUnary('Exp', shifted), [-1], true);
    return this.emitSub(shifted, this.emitUnary('Log', total));
  }
  /** Clamp to [low, high], scalars. */
  emitClip(a: Value, low: Value, high: Value): Value {
    if (this.dialect === 'fused') return this.op('Clip', [a, low, high], {}, a.shape);
    // Clip reads its bounds on the host, which would wait for the device when they are computed there.
    return this.emitBinary('Min', this.emitBinary('Max', a, low), high);
  }
}
