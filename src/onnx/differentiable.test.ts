/** Every differentiable operator against float64: values, and gradients by central differences, in both dialects. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { roundProducts } from '../../tests/rounded-products.js';
import { seededRandom } from '../metrics/random.js';
import { Differentiable } from './differentiable.js';
import type { Rotary } from './differentiable.js';
import type { Dialect, Value } from './graph.js';
import { floatData, floats, Session } from './session.js';
import type { Feeds } from './session.js';

const CPU = { provider: 'cpu', threads: 1 } as const;
/** Central differences of a float64 function: the error is of order STEP². */
const STEP = 1e-5;
const TOLERANCE = 3e-6;

type Numbers = number[];

interface Case {
  /** Shapes of the differentiated inputs. */
  readonly shapes: Readonly<Record<string, readonly number[]>>;
  /** Values of inputs that must not be random, such as those near a kink. */
  readonly values?: Readonly<Record<string, Numbers>>;
  /** The operator's results. */
  readonly build: (g: Differentiable, inputs: Readonly<Record<string, Value>>) => readonly Value[];
  /** The same results in float64, flattened one after another. */
  readonly reference: (inputs: Readonly<Record<string, Numbers>>) => Numbers;
}

/**
 * Relative errors of a case in one dialect: of its results, and of Σ wᵢ · resultᵢ's gradient, for random w, by input. An error is the
 * largest |difference| over the largest |reference|.
 */
async function relativeErrors(
  dialect: Dialect,
  { shapes, values, build, reference }: Case,
): Promise<Map<string, number>> {
  const random = seededRandom('gradient check');
  const draw = (n: number): Numbers => Array.from({ length: n }, () => Math.fround(random() * 2 - 1));
  const size = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);
  const inputs = Object.fromEntries(
    Object.entries(shapes).map(([name, shape]) => [name, values?.[name] ?? draw(size(shape))]),
  );

  const g = new Differentiable(dialect);
  const operands = Object.fromEntries(
    Object.entries(shapes).map(([name, shape]) => [name, g.input(name, shape, 'float32', true)]),
  );
  const results = build(g, operands);
  const weights = results.map((r) => draw(size(r.shape as readonly number[])));
  const terms = results.map((r, i) => g.sumAll(g.mul(r, g.input(`weights.${i}`, r.shape))));
  const loss = terms.reduce((a, b) => g.add(a, b));
  results.forEach((r, i) => g.output(r, `result.${i}`));
  const names = Object.keys(shapes);
  g.gradients(loss, Object.values(operands)).forEach((d, i) => g.output(d, `gradient.${names[i]}`));

  const feeds: Feeds = {};
  for (const name of names) feeds[name] = floats(Float32Array.from(inputs[name]!), shapes[name]!);
  weights.forEach((w, i) => {
    feeds[`weights.${i}`] = floats(Float32Array.from(w), results[i]!.shape as readonly number[]);
  });
  const session = await Session.create(g, CPU);
  const out = await session.run(feeds);
  await session.release();

  const errors = new Map<string, number>();
  const actual = results.flatMap((_, i) => Array.from(floatData(out[`result.${i}`])));
  errors.set('result', relativeError(actual, reference(inputs)));
  const flatWeights = weights.flat();
  const lossAt = (x: Readonly<Record<string, Numbers>>): number =>
    reference(x).reduce((sum, r, i) => sum + r * flatWeights[i]!, 0);
  for (const name of names) {
    const gradient = inputs[name]!.map((x, i) => {
      const at = (value: number): number => lossAt({ ...inputs, [name]: inputs[name]!.with(i, value) });
      return (at(x + STEP) - at(x - STEP)) / (2 * STEP);
    });
    errors.set(`gradient of ${name}`, relativeError([...floatData(out[`gradient.${name}`])], gradient));
  }
  return errors;
}

/** NaN when the lengths differ, which no tolerance admits. */
function relativeError(actual: Numbers, expected: Numbers): number {
  if (actual.length !== expected.length) return Number.NaN;
  const scale = Math.max(...expected.map(Math.abs), 1e-3);
  return Math.max(...actual.map((a, i) => Math.abs(a - expected[i]!))) / scale;
}

// Float64 pieces that several references share.

const range = <T>(n: number, f: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => f(i));
const row = (x: Numbers, r: number, width: number): Numbers => x.slice(r * width, (r + 1) * width);
const dot = (a: Numbers, b: Numbers): number => a.reduce((sum, x, i) => sum + x * b[i]!, 0);
const logSoftmax = (z: Numbers): Numbers => {
  const top = Math.max(...z);
  const log = top + Math.log(z.reduce((sum, x) => sum + Math.exp(x - top), 0));
  return z.map((x) => x - log);
};
/** alpha · x Wᵀ + c, x [rows, into], W [out, into], c(row, out). */
const linear = (x: Numbers, W: Numbers, into: number, alpha: number, c: (r: number, o: number) => number): Numbers =>
  range(x.length / into, (r) =>
    range(W.length / into, (o) => alpha * dot(row(x, r, into), row(W, o, into)) + c(r, o)),
  ).flat();
/** Causal attention of one head: q, k, v [time, headDim]. */
const attend = (q: Numbers, k: Numbers, v: Numbers, time: number, headDim: number): Numbers =>
  range(time, (t) => {
    const scores = range(t + 1, (s) => dot(row(q, t, headDim), row(k, s, headDim)) / Math.sqrt(headDim));
    const p = logSoftmax(scores).map(Math.exp);
    return range(headDim, (i) => p.reduce((sum, w, s) => sum + w * v[s * headDim + i]!, 0));
  }).flat();

/** Rotary tables for headDim 4: angles position · 10000^(−2i/4) = position · (1, 0.01). */
const POSITIONS = 8;
const angle = (position: number, i: number): number => position * [1, 0.01][i]!;
function rotary(g: Differentiable, positions: readonly number[], shape: readonly number[]): Rotary {
  const table = (name: string, f: (x: number) => number): Value =>
    g.initializer(
      name,
      [POSITIONS, 2],
      'float32',
      Float32Array.from(range(POSITIONS * 2, (j) => f(angle(j >> 1, j & 1)))),
    );
  return {
    cos: table('cos', Math.cos),
    sin: table('sin', Math.sin),
    negativeSin: table('negative_sin', (x) => -Math.sin(x)),
    positions: g.initializer('positions', shape, 'int64', BigInt64Array.from(positions, BigInt)),
  };
}
const ids = (g: Differentiable, values: readonly number[]): Value => g.int64(values);

const CASES: Readonly<Record<string, Case>> = {
  'add, a row broadcast over rows': {
    shapes: { a: [2, 3], b: [3] },
    build: (g, { a, b }) => [g.add(a!, b!)],
    reference: ({ a, b }) => a!.map((x, i) => x + b![i % 3]!),
  },
  'sub, a column broadcast over columns': {
    shapes: { a: [2, 1], b: [2, 3] },
    build: (g, { a, b }) => [g.sub(a!, b!)],
    reference: ({ a, b }) => b!.map((y, i) => a![Math.floor(i / 3)]! - y),
  },
  'mul, [2, 1, 3] by [4, 1]': {
    shapes: { a: [2, 1, 3], b: [4, 1] },
    build: (g, { a, b }) => [g.mul(a!, b!)],
    reference: ({ a, b }) => range(24, (i) => a![Math.floor(i / 12) * 3 + (i % 3)]! * b![Math.floor(i / 3) % 4]!),
  },
  'mul by a scalar': {
    shapes: { a: [2, 3], b: [] },
    build: (g, { a, b }) => [g.mul(a!, b!)],
    reference: ({ a, b }) => a!.map((x) => x * b![0]!),
  },
  'a value used twice gathers both gradients': {
    shapes: { a: [3] },
    build: (g, { a }) => [g.add(g.mul(a!, a!), g.exp(a!))],
    reference: ({ a }) => a!.map((x) => x * x + Math.exp(x)),
  },
  'an operand nothing depends on has gradient zero': {
    shapes: { a: [3], unused: [2, 2] },
    build: (g, { a }) => [g.exp(a!)],
    reference: ({ a }) => a!.map(Math.exp),
  },
  exp: {
    shapes: { a: [2, 3] },
    build: (g, { a }) => [g.exp(a!)],
    reference: ({ a }) => a!.map(Math.exp),
  },
  'min, with a broadcast row': {
    shapes: { a: [2, 3], b: [3] },
    values: { a: [-1, 0.5, 2, 0.3, -0.7, 0.1], b: [0, 0.25, 1] },
    build: (g, { a, b }) => [g.min(a!, b!)],
    reference: ({ a, b }) => a!.map((x, i) => Math.min(x, b![i % 3]!)),
  },
  'clip, inside and beyond both ends': {
    shapes: { a: [5] },
    values: { a: [-2, -0.4, 0.1, 0.45, 3] },
    build: (g, { a }) => [g.clip(a!, g.scalar(-0.5), g.scalar(0.5))],
    reference: ({ a }) => a!.map((x) => Math.max(-0.5, Math.min(0.5, x))),
  },
  sumAll: {
    shapes: { a: [2, 3] },
    build: (g, { a }) => [g.sumAll(a!)],
    reference: ({ a }) => [a!.reduce((x, y) => x + y, 0)],
  },
  reshape: {
    shapes: { a: [2, 3], b: [3, 2] },
    build: (g, { a, b }) => [g.mul(g.reshape(a!, [3, 2]), b!)],
    reference: ({ a, b }) => a!.map((x, i) => x * b![i]!),
  },
  'transpose [2, 3, 4] → [4, 2, 3]': {
    shapes: { a: [2, 3, 4] },
    build: (g, { a }) => [g.transpose(a!, [2, 0, 1])],
    reference: ({ a }) => range(4, (k) => range(6, (ij) => a![ij * 4 + k]!)).flat(),
  },
  'split [2, 5] → [2, 2], [2, 1], [2, 2], of which nothing takes the second': {
    shapes: { a: [2, 5] },
    build: (g, { a }) => {
      const [first, , third] = g.split(a!, 1, [2, 1, 2]);
      return [first!, g.exp(third!)];
    },
    reference: ({ a }) => [a![0]!, a![1]!, a![5]!, a![6]!, ...[a![3]!, a![4]!, a![8]!, a![9]!].map(Math.exp)],
  },
  linear: {
    shapes: { x: [3, 4], W: [2, 4] },
    build: (g, { x, W }) => [g.linear(x!, W!)],
    reference: ({ x, W }) => linear(x!, W!, 4, 1, () => 0),
  },
  'linear with a bias and alpha': {
    shapes: { x: [3, 4], W: [2, 4], c: [2] },
    build: (g, { x, W, c }) => [g.exactLinear(x!, W!, c, 0.75)],
    reference: ({ x, W, c }) => linear(x!, W!, 4, 0.75, (_, o) => c![o]!),
  },
  'linear added to another branch, as LoRA is': {
    shapes: { x: [3, 4], A: [2, 4], B: [5, 2], W: [5, 4] },
    build: (g, { x, A, B, W }) => [g.exactLinear(g.exactLinear(x!, A!), B!, g.linear(x!, W!), 2)],
    reference: ({ x, A, B, W }) => {
      const down = linear(x!, A!, 4, 1, () => 0);
      const straight = linear(x!, W!, 4, 1, () => 0);
      return linear(down, B!, 2, 2, (r, o) => straight[r * 5 + o]!);
    },
  },
  rmsNorm: {
    shapes: { x: [3, 4], w: [4] },
    build: (g, { x, w }) => [g.rmsNorm(x!, w!, 1e-3)],
    reference: ({ x, w }) =>
      range(3, (r) => {
        const a = row(x!, r, 4);
        const scale = 1 / Math.sqrt(dot(a, a) / 4 + 1e-3);
        return a.map((y, i) => y * scale * w![i]!);
      }).flat(),
  },
  'rmsNorm of every head, [3, 2, 4]': {
    shapes: { x: [3, 2, 4], w: [4] },
    build: (g, { x, w }) => [g.rmsNorm(x!, w!, 1e-3)],
    reference: ({ x, w }) =>
      range(6, (r) => {
        const a = row(x!, r, 4);
        const scale = 1 / Math.sqrt(dot(a, a) / 4 + 1e-3);
        return a.map((y, i) => y * scale * w![i]!);
      }).flat(),
  },
  'rotate [2, 2, 3, 4] at positions that differ by sequence': {
    shapes: { x: [2, 2, 3, 4] },
    build: (g, { x }) => [g.rotate(x!, rotary(g, [0, 1, 2, 5, 6, 7], [2, 3]))],
    reference: ({ x }) =>
      range(12, (r) => {
        const position = [0, 1, 2, 5, 6, 7][Math.floor(r / 6) * 3 + (r % 3)]!;
        const v = row(x!, r, 4);
        const first = range(2, (i) => v[i]! * Math.cos(angle(position, i)) - v[i + 2]! * Math.sin(angle(position, i)));
        const second = range(2, (i) => v[i + 2]! * Math.cos(angle(position, i)) + v[i]! * Math.sin(angle(position, i)));
        return [...first, ...second];
      }).flat(),
  },
  'causalAttention, 2 sequences, 1 key–value head': {
    shapes: { q: [2, 1, 3, 4], k: [2, 1, 3, 4], v: [2, 1, 3, 4] },
    build: (g, { q, k, v }) => [g.causalAttention(q!, k!, v!, g.causalBias(3), 1, 3)],
    reference: ({ q, k, v }) => range(2, (b) => attend(row(q!, b, 12), row(k!, b, 12), row(v!, b, 12), 3, 4)).flat(),
  },
  'causalAttention, 2 key–value heads, each shared by 2 query heads': {
    shapes: { q: [1, 2, 6, 4], k: [1, 2, 3, 4], v: [1, 2, 3, 4] },
    build: (g, { q, k, v }) => [g.causalAttention(q!, k!, v!, g.causalBias(3), 2, 3)],
    // Query head h, rows 3h to 3h + 2, meets key–value head h / 2.
    reference: ({ q, k, v }) =>
      range(4, (h) => attend(row(q!, h, 12), row(k!, h >> 1, 12), row(v!, h >> 1, 12), 3, 4)).flat(),
  },
  swiGlu: {
    shapes: { a: [2, 3], b: [2, 3] },
    build: (g, { a, b }) => [g.swiGlu(a!, b!)],
    reference: ({ a, b }) => a!.map((x, i) => (x / (1 + Math.exp(-x))) * b![i]!),
  },
  'embed, with ids that repeat': {
    shapes: { W: [5, 2] },
    build: (g, { W }) => [g.embed(W!, ids(g, [3, 0, 3, 4, 3]))],
    reference: ({ W }) => [3, 0, 3, 4, 3].flatMap((id) => row(W!, id, 2)),
  },
  'logProbEntropy, both results': {
    shapes: { z: [3, 5] },
    build: (g, { z }) => g.logProbEntropy(z!, ids(g, [4, 0, 2])),
    reference: ({ z }) => [...labelLogProbs(z!), ...entropies(z!)],
  },
  'logProbEntropy, the log-probability alone': {
    shapes: { z: [3, 5] },
    build: (g, { z }) => [g.logProbEntropy(z!, ids(g, [4, 0, 2]))[0]],
    reference: ({ z }) => labelLogProbs(z!),
  },
  'logProbEntropy, the entropy alone': {
    shapes: { z: [3, 5] },
    build: (g, { z }) => [g.logProbEntropy(z!, ids(g, [4, 0, 2]))[1]],
    reference: ({ z }) => entropies(z!),
  },
  logSoftmax: {
    shapes: { z: [3, 5] },
    build: (g, { z }) => [g.logSoftmax(z!)],
    reference: ({ z }) => range(3, (r) => logSoftmax(row(z!, r, 5))).flat(),
  },
};

const labelLogProbs = (z: Numbers): Numbers => [4, 0, 2].map((label, r) => logSoftmax(row(z, r, 5))[label]!);
const entropies = (z: Numbers): Numbers =>
  range(3, (r) => -logSoftmax(row(z, r, 5)).reduce((sum, l) => sum + Math.exp(l) * l, 0));

describe.each(['fused', 'standard'] as const)('gradients in the %s dialect', (dialect) => {
  it.each(Object.entries(CASES))('%s', async (_, operator) => {
    for (const [what, error] of await relativeErrors(dialect, operator)) expect(error, what).toBeLessThan(TOLERANCE);
  });
});

describe('gradients at extremes', () => {
  const gradientOf = async (build: (g: Differentiable, z: Value) => Value, z: number[]): Promise<number[]> => {
    const g = new Differentiable('fused');
    const input = g.input('z', [1, z.length], 'float32', true);
    const loss = g.sumAll(build(g, input));
    g.output(loss, 'loss');
    g.output(g.gradients(loss, [input])[0]!, 'gradient');
    const session = await Session.create(g, CPU);
    const out = await session.run({ z: floats(Float32Array.from(z), [1, z.length]) });
    await session.release();
    return [floatData(out['loss'])[0]!, ...floatData(out['gradient'])];
  };

  it('stay finite for logits hundreds apart', async () => {
    // p = (1, 0, 0): log p of the second is −500 exactly, entropy 0; ∂lp/∂z = onehot − p.
    const both = (i: 0 | 1) => gradientOf((g, z) => g.logProbEntropy(z, g.int64([1]))[i], [500, 0, -500]);
    const positiveZeros = (values: number[]): number[] => values.map((x) => x + 0);
    expect(positiveZeros(await both(0))).toEqual([-500, -1, 1, 0]);
    expect(positiveZeros(await both(1))).toEqual([0, 0, 0, 0]);
  });

  it.each(['fused', 'standard'] as const)('pass float16 products whatever their size (%s)', async (dialect) => {
    roundProducts();
    // ∂(s x Wᵀ)/∂x = s · column sums of W, which halves hold exactly.
    onTestFinished(() => void vi.restoreAllMocks());
    for (const size of [1e-20, 1e-7, 1, 1e6, 1e20, 0]) {
      const g = new Differentiable(dialect, { dtype: 'float16' });
      const x = g.input('x', [1, 2], 'float32', true);
      const y = g.linear(x, g.input('W', [3, 2]), null);
      const loss = g.sumAll(g.mul(y, g.input('upstream', [1, 3])));
      g.output(g.gradients(loss, [x])[0]!, 'gradient');
      const session = await Session.create(g, CPU);
      const out = await session.run({
        x: floats(Float32Array.of(1, 1), [1, 2]),
        W: floats(Float32Array.of(1, 2, 3, 4, 5, 6), [3, 2]),
        upstream: floats(new Float32Array(3).fill(size), [1, 3]),
      });
      await session.release();
      const [a, b] = floatData(out['gradient']);
      expect([a! - 9 * size, b! - 12 * size].every((error) => Math.abs(error) <= 1e-6 * size)).toBe(true);
    }
  });

  it('pass once through min(x, clip(x)) inside the clip, where both are equal', async () => {
    const clipped = (g: Differentiable, z: Value): Value => g.min(z, g.clip(z, g.scalar(0.8), g.scalar(1.2)));
    expect(await gradientOf(clipped, [0.5, 1, 2])).toEqual([
      Math.fround(Math.fround(0.5 + 1) + Math.fround(1.2)),
      1,
      1,
      0,
    ]);
  });
});
