/**
 * Reverse-mode automatic differentiation by vector–Jacobian products. Each method emits the forward operators and, when an operand
 * requires a gradient, records how to turn the gradient of its result into gradients of its operands. Normalisation, attention, rotary
 * embedding and log-probability carry hand-written gradients, which are shorter and faster than their primitives'.
 */
import { broadcastShapes, MASKED, sameShape } from './emitter.js';
import type { Dim, Shape, Value } from './graph.js';
import { Tape } from './tape.js';

/** Rotary tables: cos, sin and −sin, each [positions, half the part of a head that is rotated], and the positions of this call, [batch, time]. */
export interface Rotary {
  readonly cos: Value;
  readonly sin: Value;
  readonly negativeSin: Value;
  readonly positions: Value;
}

/** What gradients of nothing but zeros are divided by. */
const LEAST_GRADIENT = 1e-30;

export class Differentiable extends Tape {
  // Elementwise

  add(a: Value, b: Value): Value {
    return this.record(this.emitAdd(a, b), [a, b], (g) => [
      () => this.emitUnbroadcast(g, a.shape),
      () => this.emitUnbroadcast(g, b.shape),
    ]);
  }
  sub(a: Value, b: Value): Value {
    return this.record(this.emitSub(a, b), [a, b], (g) => [
      () => this.emitUnbroadcast(g, a.shape),
      () => this.emitUnbroadcast(this.emitNeg(g), b.shape),
    ]);
  }
  mul(a: Value, b: Value): Value {
    return this.record(this.emitMul(a, b), [a, b], (g) => [
      () => this.emitUnbroadcast(this.emitMul(g, b), a.shape),
      () => this.emitUnbroadcast(this.emitMul(g, a), b.shape),
    ]);
  }
  exp(a: Value): Value {
    const y = this.emitUnary('Exp', a);
    return this.record(y, [a], (g) => [() => this.emitMul(g, y)]);
  }
  min(a: Value, b: Value): Value {
    const first = this.emitBinary('Less', a, b, 'bool');
    const zero = this.scalar(0);
    return this.record(this.emitWhere(first, a, b), [a, b], (g) => [
      () => this.emitUnbroadcast(this.emitWhere(first, g, zero), a.shape),
      () => this.emitUnbroadcast(this.emitWhere(first, zero, g), b.shape),
    ]);
  }
  /** Clamp to [low, high], scalars; the gradient is zero outside. */
  clip(a: Value, low: Value, high: Value): Value {
    const y = this.emitClip(a, low, high);
    return this.record(y, [a], (g) => [
      () => this.emitWhere(this.emitBinary('Equal', a, y, 'bool'), g, this.scalar(0)),
    ]);
  }
  sumAll(a: Value): Value {
    return this.record(this.emitSumAll(a), [a], (g) => [() => this.emitExpand(g, a.shape)]);
  }

  // Shape

  reshape(a: Value, shape: Shape): Value {
    if (sameShape(a.shape, shape)) return a;
    return this.record(this.emitReshape(a, shape), [a], (g) => [() => this.emitReshape(g, a.shape)]);
  }
  transpose(a: Value, perm: readonly number[]): Value {
    const inverse = perm.map((_, i) => perm.indexOf(i));
    return this.record(this.emitTranspose(a, perm), [a], (g) => [() => this.emitTranspose(g, inverse)]);
  }
  /** Parts of `a` along an axis. */
  split(a: Value, axis: number, sizes: readonly number[]): Value[] {
    const parts = this.emitSplit(a, axis, sizes);
    if (!a.requiresGrad) return parts;
    for (const part of parts) part.requiresGrad = true;
    this.recordAll({
      outputs: parts,
      operands: [a],
      vjp: (gradients) => [
        () => {
          const known = gradients.map((g, i) => g ?? this.zeros(parts[i]!.shape));
          return this.emitConcat(known, axis, a.shape[axis]!);
        },
      ],
    });
    return parts;
  }

  // Layers

  /**
   * x Wᵀ + c in the graph's type, with x [rows, in], W [out, in], a constant or an input, and c [rows, out] or [out]. x, the result and all
   * gradients are float32, c is added in it, and the gradient of W is computed in it.
   */
  linear(x: Value, W: Value, c: Value | null = null): Value {
    if (this.dtype === 'float32') return this.exactLinear(x, W, c);
    const narrow = this.castOutsideLoops(W, this.dtype);
    const product = this.cast(this.emitGemm(this.cast(x, this.dtype), narrow, null, { transB: true }), 'float32');
    return this.record(c ? this.emitAdd(product, c) : product, [x, W, c], (g) => [
      () => this.#emitThrough(g, narrow),
      () => this.emitGemm(g, x, null, { transA: true }),
      () => this.emitUnbroadcast(g, c!.shape),
    ]);
  }
  /** g W in the type of W, g and the result float32. float16 has no room for gradients as they come: it gets them divided by the largest. */
  #emitThrough(g: Value, W: Value): Value {
    const product = (x: Value) => this.cast(this.emitGemm(this.cast(x, W.dtype), W, null), 'float32');
    if (W.dtype !== 'float16') return product(g);
    const largest = this.emitBinary('Max', this.emitLargest(g), this.scalar(LEAST_GRADIENT));
    return this.emitMul(product(this.emitDiv(g, largest)), largest);
  }

  /** alpha · x Wᵀ + c in float32 whatever the graph's type. A LoRA branch rides along as c. */
  exactLinear(x: Value, W: Value, c: Value | null = null, alpha = 1): Value {
    const y = this.emitGemm(x, W, c, { transB: true, alpha });
    return this.record(y, [x, W, c], (g) => [
      () => this.emitGemm(g, W, null, { alpha }),
      () => this.emitGemm(g, x, null, { transA: true, alpha }),
      () => this.emitUnbroadcast(g, c!.shape),
    ]);
  }

  /** Root-mean-square normalisation over the last axis, x […, d] and w [d]. Zhang & Sennrich 2019. */
  rmsNorm(x: Value, w: Value, epsilon: number): Value {
    const perRow = [...x.shape.slice(0, -1), 1];
    let y: Value;
    let inverse: Value;
    if (this.dialect === 'fused') {
      [y, inverse] = this.ops('SimplifiedLayerNormalization', [x, w], { axis: -1, epsilon: { float: epsilon } }, [
        { shape: x.shape },
        { shape: perRow },
      ]) as [Value, Value];
    } else {
      const meanSquare = this.emitReduce('ReduceMean', this.emitMul(x, x), [-1], true);
      inverse = this.emitUnary('Reciprocal', this.emitUnary('Sqrt', this.emitAdd(meanSquare, this.scalar(epsilon))));
      y = this.emitMul(this.emitMul(x, inverse), w);
    }
    return this.record(y, [x, w], (g) => {
      let normalised: Value | undefined;
      const xHat = () => (normalised ??= this.emitMul(x, inverse));
      return [
        () => {
          const gw = this.emitMul(g, w);
          const mean = this.emitReduce('ReduceMean', this.emitMul(gw, xHat()), [-1], true);
          return this.emitMul(this.emitSub(gw, this.emitMul(xHat(), mean)), inverse);
        },
        () => this.emitUnbroadcast(this.emitMul(g, xHat()), w.shape),
      ];
    });
  }

  /**
   * Rotary position embedding of x [batch, heads, time, headDim], of as much of each head as the tables are wide; its gradient is the
   * rotation by −θ. Su et al. 2021.
   */
  rotate(x: Value, rotary: Rotary): Value {
    return this.record(this.#emitRotate(x, rotary, false), [x], (g) => [() => this.#emitRotate(g, rotary, true)]);
  }
  #emitRotate(x: Value, rotary: Rotary, inverse: boolean): Value {
    const sin = inverse ? rotary.negativeSin : rotary.sin;
    const [rotated, whole] = [2 * (rotary.cos.shape[1] as number), x.shape[3] as number];
    if (rotated < whole) {
      const [turned, rest] = this.emitSplit(x, 3, [rotated, whole - rotated]) as [Value, Value];
      return this.emitConcat([this.#emitRotate(turned, rotary, inverse), rest], 3, whole);
    }
    if (this.dialect === 'fused') {
      return this.op('RotaryEmbedding', [x, rotary.positions, rotary.cos, sin], {}, x.shape);
    }
    const [batch, , time, headDim] = x.shape as [Dim, Dim, Dim, number];
    const half = headDim / 2;
    const at = (table: Value) => this.emitReshape(this.emitGather(table, rotary.positions), [batch, 1, time, half]);
    const [c, s] = [at(rotary.cos), at(sin)];
    const [a, b] = this.emitSplit(x, 3, [half, half]) as [Value, Value];
    const first = this.emitSub(this.emitMul(a, c), this.emitMul(b, s));
    const second = this.emitAdd(this.emitMul(b, c), this.emitMul(a, s));
    return this.emitConcat([first, second], 3, headDim);
  }

  /**
   * Causal self-attention with grouped queries folded into rows: q [batch, kv, group · time, headDim], k and v
   * [batch, kv, time, headDim], bias [time, time] added to the scores.
   */
  causalAttention(q: Value, k: Value, v: Value, bias: Value, group: number, time: Dim): Value {
    const [batch, kv, , headDim] = q.shape as [Dim, number, Dim, number];
    const alpha = 1 / Math.sqrt(headDim);
    const scores = this.emitMatMul(q, k, { transB: true, alpha });
    const grouped = this.emitReshape(scores, [batch, kv * group, time, time]);
    const p = this.emitReshape(this.emitSoftmax(this.emitAdd(grouped, bias)), scores.shape);
    const o = this.emitMatMul(p, v);
    return this.record(o, [q, k, v], (g) => {
      let scoreGradient: Value | undefined;
      // dS = P ∘ (dP − rowsum(dO ∘ O)): Dao et al. 2022, appendix B.
      const dS = () => {
        if (scoreGradient) return scoreGradient;
        const dP = this.emitMatMul(g, v, { transB: true });
        const rowSum = this.emitReduce('ReduceSum', this.emitMul(g, o), [-1], true);
        return (scoreGradient = this.emitMul(p, this.emitSub(dP, rowSum)));
      };
      return [
        () => this.emitMatMul(dS(), k, { alpha }),
        () => this.emitMatMul(dS(), q, { transA: true, alpha }),
        () => this.emitMatMul(p, g, { transA: true }),
      ];
    });
  }

  /** SwiGLU: silu(a) ∘ b. Shazeer 2020. */
  swiGlu(a: Value, b: Value): Value {
    const s = this.emitUnary('Sigmoid', a);
    const silu = this.emitMul(a, s);
    return this.record(this.emitMul(silu, b), [a, b], (g) => [
      () => {
        // silu′ = σ + silu·(1 − σ) = σ + silu − silu·σ
        const slope = this.emitAdd(s, this.emitSub(silu, this.emitMul(silu, s)));
        return this.emitMul(this.emitMul(g, b), slope);
      },
      () => this.emitMul(g, silu),
    ]);
  }

  /** GeGLU: gelu(a) ∘ b, with gelu(a) = a (1 + tanh u) / 2 = a σ(2u), u = √(2/π) (a + 0.044715 a³). Hendrycks & Gimpel 2016; Shazeer 2020. */
  geGlu(a: Value, b: Value): Value {
    const [linear, cubic] = [2 * Math.sqrt(2 / Math.PI), 2 * Math.sqrt(2 / Math.PI) * 0.044715];
    const square = this.emitMul(a, a);
    const twoU = this.emitMul(a, this.emitAdd(this.emitScale(square, cubic), this.scalar(linear)));
    const s = this.emitUnary('Sigmoid', twoU);
    const gelu = this.emitMul(a, s);
    return this.record(this.emitMul(gelu, b), [a, b], (g) => [
      () => {
        // gelu′ = σ + a σ (1 − σ) · 2u′ = σ + (gelu − gelu σ) · 2u′
        const slope = this.emitAdd(this.emitScale(square, 3 * cubic), this.scalar(linear));
        const inner = this.emitMul(this.emitSub(gelu, this.emitMul(gelu, s)), slope);
        return this.emitMul(this.emitMul(g, b), this.emitAdd(s, inner));
      },
      () => this.emitMul(g, gelu),
    ]);
  }

  /** Rows of W [vocabulary, d], of any type, for ids [rows] → [rows, d] float32. */
  embed(W: Value, ids: Value): Value {
    const rows = ids.shape[0]!;
    const d = W.shape[1]!;
    return this.record(this.cast(this.emitGather(W, ids), 'float32'), [W], (g) => [
      () => {
        const index = this.emitExpand(this.emitReshape(ids, [rows, 1]), [rows, d]);
        return this.op('ScatterElements', [this.zeros(W.shape), index, g], { axis: 0, reduction: 'add' }, W.shape);
      },
    ]);
  }

  /**
   * Log-probability of each row's label and entropy of its distribution: logits [rows, vocabulary], labels [rows] → [rows], [rows].
   * Gradients: ∂lp/∂z = onehot − p, ∂H/∂z = −p ∘ (log p + H).
   */
  logProbEntropy(logits: Value, labels: Value): [logProb: Value, entropy: Value] {
    const [rows, vocabulary] = logits.shape as [Dim, number];
    const index = this.emitReshape(this.cast(labels, 'int32'), [rows, 1]);
    const logP = this.emitLogSoftmax(logits);
    const picked = this.op('GatherElements', [logP, index], { axis: 1 }, [rows, 1]);
    const logProb = this.emitReshape(picked, [rows]);
    const p = this.emitUnary('Exp', logP);
    const entropy = this.emitNeg(this.emitReduce('ReduceSum', this.emitMul(p, logP), [1], false));
    if (logits.requiresGrad) {
      logProb.requiresGrad = entropy.requiresGrad = true;
      this.recordAll({
        outputs: [logProb, entropy],
        operands: [logits],
        vjp: ([gLogProb, gEntropy]) => [
          () => {
            let gradient: Value | undefined;
            if (gLogProb) {
              const g = this.emitReshape(gLogProb, [rows, 1]);
              const rest = this.emitMul(p, this.emitNeg(g));
              const isLabel = this.op('Equal', [this.iota(vocabulary), index], {}, logits.shape, 'bool');
              gradient = this.emitWhere(isLabel, this.emitAdd(rest, g), rest);
            }
            if (gEntropy) {
              const g = this.emitReshape(this.emitNeg(gEntropy), [rows, 1]);
              const surprise = this.emitAdd(logP, this.emitReshape(entropy, [rows, 1]));
              const term = this.emitMul(this.emitMul(p, surprise), g);
              gradient = gradient ? this.emitAdd(gradient, term) : term;
            }
            return gradient!;
          },
        ],
      });
    }
    return [logProb, entropy];
  }

  /** Row-wise log-softmax. */
  logSoftmax(a: Value): Value {
    const y = this.emitLogSoftmax(a);
    return this.record(y, [a], (g) => [
      () => this.emitSub(g, this.emitMul(this.emitUnary('Exp', y), this.emitReduce('ReduceSum', g, [-1], true))),
    ]);
  }

  /** [time, time] additive bias that hides the future, and with a window all but so many latest positions. */
  causalBias(time: Dim, window: number | null = null): Value {
    const t = this.emitRange(time);
    const query = this.emitReshape(t, [time, 1]);
    const future = this.op('Greater', [t, query], {}, broadcastShapes(t.shape, query.shape), 'bool');
    const bias = this.emitWhere(future, this.scalar(MASKED), this.scalar(0));
    return window === null ? bias : this.emitAdd(bias, this.windowBias(query, t, window));
  }

  /** Additive bias that hides keys that are `window` positions or more before a query; positions int32 that broadcast. */
  windowBias(query: Value, key: Value, window: number): Value {
    const last = this.emitSub(query, this.int32Scalar(window));
    const past = this.op('LessOrEqual', [key, last], {}, broadcastShapes(key.shape, last.shape), 'bool');
    return this.emitWhere(past, this.scalar(MASKED), this.scalar(0));
  }
}
