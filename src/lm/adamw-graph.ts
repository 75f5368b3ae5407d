/**
 * AdamW (Loshchilov & Hutter 2019) over all trainables in one graph, after clipping their gradients' global norm.
 * Weight decay applies to matrices, not to norms' and biases' vectors.
 */
import { Emitter } from '../onnx/emitter.js';
import type { Dialect, Value } from '../onnx/graph.js';
import { gradientName } from './update-graph.js';

/** Names of a trainable's first and second moment, as inputs; outputs put `next.` before a name. */
export const firstMoment = (name: string): string => `m.${name}`;
export const secondMoment = (name: string): string => `v.${name}`;
export const nextName = (name: string): string => `next.${name}`;

/**
 * Inputs: per trainable its value, gradient and moments; scalars `learningRate`, `beta1`, `beta2`, `epsilon`, `weightDecay`, `maxNorm`,
 * `correction1` = 1 / (1 − β₁ᵗ), `correction2` = 1 / (1 − β₂ᵗ). Outputs: `gradientNorm` (before clipping), and values and moments
 * under `nextName`.
 */
export function adamWGraph(shapes: ReadonlyMap<string, readonly number[]>, dialect: Dialect): Emitter {
  const g = new Emitter(dialect);
  const [rate, beta1, beta2, epsilon, decay, maxNorm, correction1, correction2] = [
    'learningRate',
    'beta1',
    'beta2',
    'epsilon',
    'weightDecay',
    'maxNorm',
    'correction1',
    'correction2',
  ].map((name) => g.input(name, [])) as [Value, Value, Value, Value, Value, Value, Value, Value];
  const one = g.scalar(1);
  const gradients = [...shapes].map(([name, shape]) => g.input(gradientName(name), shape));

  const squares = gradients.map((d) => g.emitReshape(g.emitSumAll(g.emitMul(d, d)), [1]));
  const norm = g.emitUnary('Sqrt', g.emitSumAll(g.emitConcat(squares, 0, squares.length)));
  const scale = g.emitBinary('Min', one, g.emitDiv(maxNorm, g.emitAdd(norm, g.scalar(1e-6))));
  g.output(norm, 'gradientNorm');

  /** An operator whose result is the output itself: an output under another name would be a copy. */
  const result = (type: 'Add' | 'Sub', a: Value, b: Value, name: string): Value => {
    const value = g.op(type, [a, b], {}, a.shape, 'float32', nextName(name));
    g.output(value);
    return value;
  };
  [...shapes].forEach(([name, shape], i) => {
    const [p, m, v] = [name, firstMoment(name), secondMoment(name)].map((n) => g.input(n, shape)) as [
      Value,
      Value,
      Value,
    ];
    const d = g.emitMul(gradients[i]!, scale);
    const m1 = result('Add', g.emitMul(m, beta1), g.emitMul(d, g.emitSub(one, beta1)), firstMoment(name));
    const v1 = result(
      'Add',
      g.emitMul(v, beta2),
      g.emitMul(g.emitMul(d, d), g.emitSub(one, beta2)),
      secondMoment(name),
    );
    const denominator = g.emitAdd(g.emitUnary('Sqrt', g.emitMul(v1, correction2)), epsilon);
    let step = g.emitDiv(g.emitMul(m1, correction1), denominator);
    if (shape.length > 1) step = g.emitAdd(step, g.emitMul(p, decay));
    result('Sub', p, g.emitMul(step, rate), name);
  });
  return g;
}

/** Adds gradients of micro-batches: inputs `a.<name>` and `b.<name>`, outputs `<name>`. */
export function accumulateGraph(shapes: ReadonlyMap<string, readonly number[]>, dialect: Dialect): Emitter {
  const g = new Emitter(dialect);
  for (const [name, shape] of shapes)
    g.output(g.emitAdd(g.input(`a.${name}`, shape), g.input(`b.${name}`, shape)), name);
  return g;
}
