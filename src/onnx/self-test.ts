/**
 * A numerical self-test of an execution provider: loss and gradients of a small attention layer, on the operators that training uses,
 * against the same function in plain float64 JavaScript with central differences. Gradients are what is tested: a provider can give
 * the right loss and wrong gradients.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { largest } from '../metrics/extremes.js';
import { seededRandom } from '../metrics/random.js';
import { missingLibrary } from './availability.js';
import { inType, TYPE_TOLERANCE } from './compute-type.js';
import type { ComputeType } from './compute-type.js';
import { Differentiable } from './differentiable.js';
import type { Value } from './graph.js';
import { dialectOf, floatData, floats, integers, Session } from './session.js';
import type { ExecutionProvider, Feeds, Tensor } from './session.js';

const TIME = 6;
const WIDTH = 8;
const VOCABULARY = 11;
const EPSILON = 1e-5;
const SHAPES: Readonly<Record<string, readonly number[]>> = {
  x: [TIME, WIDTH],
  norm: [WIDTH],
  query: [WIDTH, WIDTH],
  key: [WIDTH, WIDTH],
  value: [WIDTH, WIDTH],
  gate: [WIDTH, WIDTH],
  head: [VOCABULARY, WIDTH],
};
const LABELS = [3, 1, 4, 1, 5, 9];

export interface SelfTest {
  readonly provider: ExecutionProvider;
  readonly passed: boolean;
  /** Worst relative error over all gradients; null when the provider could not run. */
  readonly gradientError: number | null;
  readonly detail: string;
}

/**
 * Run the self-test with products in `type`, which must be right to its `TYPE_TOLERANCE` of each gradient's largest entry; never rejects: a
 * provider that cannot start has not passed. `Graph` is what builds the tested graph.
 */
export async function testProvider(
  provider: ExecutionProvider,
  type: ComputeType = 'float32',
  Graph = Differentiable,
): Promise<SelfTest> {
  const missing = missingLibrary(provider);
  if (missing) return { provider, passed: false, gradientError: null, detail: missing };
  const inputs = testInputs();
  const expected = referenceGradients(inputs);
  try {
    const graph = testGraph(new Graph(dialectOf(provider), { dtype: type }));
    const session = await Session.create(graph, { provider, threads: 1 });
    const feeds: Feeds = { labels: integers(BigInt64Array.from(LABELS.map(BigInt)), [TIME]) };
    for (const [name, t] of inputs) feeds[name] = floats(t.data, t.shape);
    const out = await session.run(feeds);
    await session.release();
    let worst = 0;
    for (const [name, gradient] of expected) {
      const actual = floatData(out[`gradient.${name}`]);
      const scale = largest(gradient.map(Math.abs));
      gradient.forEach((g, i) => (worst = Math.max(worst, Math.abs(actual[i]! - g) / scale)));
    }
    // A NaN compares false, so it fails here.
    const passed = worst <= TYPE_TOLERANCE[type];
    const detail = passed
      ? 'gradients agree with float64'
      : `gradients differ from float64 by ${worst.toExponential(1)} relative`;
    return { provider, passed, gradientError: worst, detail: inType(type, detail) };
  } catch (error) {
    return { provider, passed: false, gradientError: null, detail: inType(type, failureReason(error as Error)) };
  }
}

const runFile = promisify(execFile);
const TIMEOUT_MS = 60_000;

/** The self-test in a process of its own: a driver may write to standard error, hang, or crash. */
export async function testProviderApart(provider: ExecutionProvider, type: ComputeType = 'float32'): Promise<SelfTest> {
  const missing = missingLibrary(provider);
  const failure = { provider, passed: false, gradientError: null };
  if (missing) return { ...failure, detail: missing };
  const script = `
    const { testProvider } = await import(${JSON.stringify(import.meta.url)});
    process.stdout.write(JSON.stringify(await testProvider(${JSON.stringify(provider)}, ${JSON.stringify(type)})));`;
  try {
    const options = { timeout: TIMEOUT_MS, killSignal: 'SIGKILL' } as const;
    const { stdout } = await runFile(process.execPath, ['--input-type=module', '--eval', script], options);
    return JSON.parse(stdout) as SelfTest;
  } catch (error) {
    const { killed, signal, code } = error as { killed?: boolean; signal?: string | null; code?: number | string };
    const how = killed ? `did not end within ${TIMEOUT_MS / 1000} s` : `ended by ${signal ?? `exit code ${code}`}`;
    return { ...failure, detail: `the self-test ${how}` };
  }
}

function testInputs(): Map<string, Tensor> {
  const random = seededRandom('execution provider self-test');
  return new Map(
    Object.entries(SHAPES).map(([name, shape]) => {
      const data = Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => random() * 2 - 1);
      return [name, { shape, data }];
    }),
  );
}

/** One short line of an error of ONNX Runtime's, which begins with source paths and may go on for many lines. */
export function failureReason(error: Error): string {
  if (error.message.includes('Failed to get a WebGPU adapter')) return 'no WebGPU adapter found';
  if (error.message.includes('requires f16')) return 'the GPU or its driver has no float16 in shaders (shader-f16)';
  const line = error.message.split('\n')[0]!;
  return line.replace(/^\S*\/onnxruntime_src\/\S+ /, '').slice(0, LONGEST_REASON);
}
const LONGEST_REASON = 200;

function testGraph(g: Differentiable): Differentiable {
  const inputs = Object.entries(SHAPES).map(([name, shape]) => [name, g.input(name, shape, 'float32', true)] as const);
  const v = Object.fromEntries(inputs) as Record<string, Value>;
  const labels = g.input('labels', [TIME], 'int64');
  const h = g.rmsNorm(v['x']!, v['norm']!, EPSILON);
  const heads = (W: string) => g.reshape(g.linear(h, v[W]!), [1, 1, TIME, WIDTH]);
  const attended = g.causalAttention(heads('query'), heads('key'), heads('value'), g.causalBias(TIME), 1, TIME);
  const mixed = g.add(v['x']!, g.reshape(attended, [TIME, WIDTH]));
  const gated = g.swiGlu(g.linear(mixed, v['gate']!), mixed);
  const [logProb, entropy] = g.logProbEntropy(g.linear(gated, v['head']!), labels);
  const loss = g.sumAll(g.add(logProb, g.mul(entropy, g.scalar(0.5))));
  g.gradients(loss, Object.values(v)).forEach((gradient, i) => g.output(gradient, `gradient.${inputs[i]![0]}`));
  return g;
}

function referenceGradients(inputs: ReadonlyMap<string, Tensor>): Map<string, number[]> {
  const values = new Map([...inputs].map(([name, t]) => [name, Array.from(t.data)]));
  const STEP = 1e-5;
  return new Map(
    [...values].map(([name, data]) => [
      name,
      data.map((original, i) => {
        data[i] = original + STEP;
        const above = referenceLoss(values);
        data[i] = original - STEP;
        const below = referenceLoss(values);
        data[i] = original;
        return (above - below) / (2 * STEP);
      }),
    ]),
  );
}

/** The test graph's loss in float64. */
function referenceLoss(v: ReadonlyMap<string, readonly number[]>): number {
  const at = (name: string) => v.get(name)!;
  const rows = <T>(f: (t: number) => T): T[] => Array.from({ length: TIME }, (_, t) => f(t));
  const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, x, i) => sum + x * b[i]!, 0);
  const linear = (x: readonly number[], W: readonly number[]) =>
    Array.from({ length: W.length / WIDTH }, (_, o) => dot(x, W.slice(o * WIDTH, (o + 1) * WIDTH)));
  const softmax = (z: readonly number[]) => {
    const most = largest(z);
    const e = z.map((s) => Math.exp(s - most));
    const total = e.reduce((a, b) => a + b, 0);
    return e.map((s) => s / total);
  };
  const x = rows((t) => at('x').slice(t * WIDTH, (t + 1) * WIDTH));
  const h = x.map((row) => {
    const inverse = 1 / Math.sqrt(dot(row, row) / WIDTH + EPSILON);
    return row.map((a, i) => a * inverse * at('norm')[i]!);
  });
  const [q, k, values] = ['query', 'key', 'value'].map((W) => h.map((row) => linear(row, at(W)))) as [
    number[][],
    number[][],
    number[][],
  ];
  let loss = 0;
  for (let t = 0; t < TIME; t++) {
    const p = softmax(Array.from({ length: t + 1 }, (_, s) => dot(q[t]!, k[s]!) / Math.sqrt(WIDTH)));
    const mixed = x[t]!.map((a, i) => a + p.reduce((sum, w, s) => sum + w * values[s]![i]!, 0));
    const gated = linear(mixed, at('gate')).map((a, i) => (a / (1 + Math.exp(-a))) * mixed[i]!);
    const distribution = softmax(linear(gated, at('head')));
    const entropy = -distribution.reduce((sum, w) => sum + w * Math.log(w), 0);
    loss += Math.log(distribution[LABELS[t]!]!) + 0.5 * entropy;
  }
  return loss;
}
