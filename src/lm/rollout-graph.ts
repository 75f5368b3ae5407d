/**
 * The graph of a rollout: prompts in, whole completions out, sampled inside one ONNX Loop so that the key–value cache never leaves the
 * device. Each prompt is read once and shared by its samples; the cache of what a sample wrote grows by Concat. Sampling inverts the
 * cumulative distribution at uniforms given as input, so the same uniforms give the same tokens.
 */
import { Differentiable } from '../onnx/differentiable.js';
import { MASKED } from '../onnx/emitter.js';
import type { Dialect, Dim, Value } from '../onnx/graph.js';
import { adapterInputs } from './adapter.js';
import type { AdapterLayout } from './adapter.js';
import { bindWeights } from './checkpoint.js';
import type { BoundWeights, Checkpoint } from './checkpoint.js';
import type { DecoderConfig } from './config.js';
import { biases, Decoder } from './decoder.js';
import type { Attention } from './decoder.js';

/** Token and log-probability written at positions after a sample's stop token. */
export const FINISHED_TOKEN = 0;

/**
 * Inputs: `prompts` int64 [prompts, promptTime] right-padded, `promptLengths` int64 [prompts], `uniforms` [maxNew, samples] in [0, 1) with
 * samples = prompts · perPrompt (a prompt's samples adjacent), `stops` int64 [stops], scalar `temperature`, and with a layout the
 * adapter's factors. Outputs: `tokens` int64 and `logProbs` float32, both [steps, samples] with steps ≤ maxNew; the loop ends when every
 * sample has drawn a stop token. Log-probabilities are those of the tempered distribution that was sampled.
 */
export function rolloutGraph(checkpoint: Checkpoint, layout: AdapterLayout | null, dialect: Dialect): Differentiable {
  const g = new Differentiable(dialect);
  emitRollout(g, checkpoint.config, bindWeights(g, checkpoint), layout);
  return g;
}

/** The same inside a graph that has the weights. With `adapters`, each of so many has an equal share of the prompts, in order. */
export function emitRollout(
  g: Differentiable,
  config: DecoderConfig,
  weights: BoundWeights,
  layout: AdapterLayout | null,
  adapters: number | null = null,
): void {
  const prompts = g.input('prompts', ['prompts', 'promptTime'], 'int64');
  const promptLengths = g.input('promptLengths', ['prompts'], 'int64');
  const uniforms = g.input('uniforms', ['maxNew', 'samples']);
  const stops = g.input('stops', ['stops'], 'int64');
  const temperature = g.input('temperature', []);
  defineDims(g, prompts, uniforms, config.heads / config.kvHeads);
  const adapter = layout ? adapterInputs(g, config, layout, adapters).values : null;
  const decoder = new Decoder(g, config, weights, adapter, 'positions');

  const cache: { k: Value; v: Value }[] = [];
  const x = decoder.causal(g, prompts, undefined, (k, v) => cache.push({ k, v }));
  const stream = g.emitReshape(x, ['prompts', 'promptTime', config.width]);
  const lastIndex = g.emitReshape(g.emitSub(promptLengths, g.int64([1])), ['prompts', 1]);
  const last = g.op('GatherND', [stream, lastIndex], { batch_dims: 1 }, ['prompts', config.width]);
  const firstLogits = perSample(g, decoder.logits(g, last), config.vocabulary);
  const promptBias = paddingBias(g, promptLengths);
  const firstPosition = g.emitReshape(
    g.emitExpand(g.emitReshape(promptLengths, ['prompts', 1]), ['prompts', 'perPrompt']),
    ['samples'],
  );

  // The body of the loop: draw a token from the carried logits, then run it through the decoder for the next ones.
  const body = new Differentiable(g);
  const carried = (stem: string, shape: readonly Dim[], dtype: 'float32' | 'int64' | 'bool' = 'float32') =>
    body.input(body.freshName(stem), shape, dtype);
  const iteration = carried('iteration', [], 'int64');
  carried('condition', [], 'bool');
  const logits = carried('logits', ['samples', config.vocabulary]);
  const finished = carried('finished', ['samples'], 'bool');
  const written = cache.map(() => ({
    k: carried('k', ['samples', config.kvHeads, 'past', config.headDim]),
    v: carried('v', ['samples', config.kvHeads, 'past', config.headDim]),
  }));

  const drawn = sampleTokens(body, logits, body.emitGather(uniforms, iteration), temperature, config.vocabulary);
  const token = body.emitWhere(finished, body.int64Scalar(FINISHED_TOKEN), body.cast(drawn.token, 'int64'));
  const logProb = body.emitWhere(finished, body.scalar(0), drawn.logProb);
  const isStop = body.op('Equal', [body.emitReshape(token, ['samples', 1]), stops], {}, ['samples', 'stops'], 'bool');
  const stopped = body.cast(body.emitReduce('ReduceMax', body.cast(isStop, 'int32'), [1], false), 'bool');
  const finishedNow = body.emitBinary('Or', finished, stopped, 'bool');
  const allFinished = body.cast(body.emitReduce('ReduceMin', body.cast(finishedNow, 'int32'), [0], false), 'bool');
  const goOn = body.op('Not', [allFinished], {}, [], 'bool');

  const position = body.emitReshape(body.emitAdd(firstPosition, iteration), ['samples', 1]);
  const grown: Value[] = [];
  const written32 = body.cast(iteration, 'int32');
  // The token stands at its prompt's length and what was written before it.
  const query = body.emitReshape(body.emitAdd(body.cast(promptLengths, 'int32'), written32), ['prompts', 1]);
  const promptBiasOf = biases((window) => {
    if (window === null) return promptBias;
    const bias = body.windowBias(query, body.emitRange('promptTime'), window);
    return body.emitAdd(promptBias, body.emitReshape(bias, ['prompts', 1, 1, 'promptTime']));
  });
  const writtenBiasOf = biases((window) => {
    const [first, one] = [body.int32Scalar(0), body.int32Scalar(1)];
    const keys = body.op('Range', [first, body.emitAdd(written32, one), one], {}, ['written'], 'int32');
    return body.windowBias(written32, keys, window!);
  });
  const attention: Attention = (layer, q, k, v) => {
    const keys = body.emitConcat([written[layer]!.k, k], 2, 'written');
    const values = body.emitConcat([written[layer]!.v, v], 2, 'written');
    grown.push(keys, values);
    const window = decoder.windowOf(layer);
    const inWindow = window === null ? {} : { bias: writtenBiasOf(window) };
    return stepAttention(
      body,
      q,
      cache[layer]!,
      promptBiasOf(window),
      { k: keys, v: values, ...inWindow },
      decoder.group,
    );
  };
  const h = decoder.layers(body, decoder.embed(body, token), ['samples', 1], decoder.rotary(position), attention);
  for (const value of [goOn, decoder.logits(body, h), finishedNow, ...grown, token, logProb]) body.output(value);

  const notFinished = g.emitExpand(g.boolScalar(false), ['samples']);
  const empty = () => g.zeros(['samples', config.kvHeads, 0, config.headDim]);
  const state = [firstLogits, notFinished, ...cache.flatMap(() => [empty(), empty()])];
  const maxNew = g.op('Squeeze', [g.dim('maxNew')], {}, [], 'int64');
  const outputs = g.ops('Loop', [maxNew, g.boolScalar(true), ...state], { body }, [
    ...state.map((v, i) => ({
      shape: i < 2 ? v.shape : ['samples', config.kvHeads, 'written', config.headDim],
      dtype: v.dtype,
    })),
    { shape: ['steps', 'samples'], dtype: 'int64' as const },
    { shape: ['steps', 'samples'] },
  ]);
  g.output(outputs.at(-2)!, 'tokens');
  g.output(outputs.at(-1)!, 'logProbs');
}

function defineDims(g: Differentiable, prompts: Value, uniforms: Value, group: number): void {
  const promptShape = g.op('Shape', [prompts], {}, [2], 'int64');
  const uniformShape = g.op('Shape', [uniforms], {}, [2], 'int64');
  const axis = (shape: Value, i: number) => g.emitSlice(shape, 0, g.int64([i]), g.int64([i + 1]), 1);
  g.defineDim('prompts', axis(promptShape, 0));
  g.defineDim('promptTime', axis(promptShape, 1));
  g.defineDim('rows', g.emitMul(g.dim('prompts'), g.dim('promptTime')));
  g.defineDim('maxNew', axis(uniformShape, 0));
  g.defineDim('positions', g.emitAdd(g.dim('promptTime'), g.dim('maxNew')));
  g.defineDim('samples', axis(uniformShape, 1));
  g.defineDim('perPrompt', g.emitDiv(g.dim('samples'), g.dim('prompts')));
  if (group > 1) g.defineDim(times(group, 'perPrompt'), g.emitMul(g.dim('perPrompt'), g.int64([group])));
}

/** The name of a product of dimensions. */
export function times(n: Dim, by: string): string {
  return n === 1 ? by : `${by}*${n}`;
}

/** [prompts, n] → [samples, n], a prompt's row repeated for each of its samples. */
export function perSample(g: Differentiable, x: Value, n: number): Value {
  const repeated = g.emitExpand(g.emitReshape(x, ['prompts', 1, n]), ['prompts', 'perPrompt', n]);
  return g.emitReshape(repeated, ['samples', n]);
}

/** [prompts, 1, 1, promptTime]: 0 where the prompt has a token, MASKED where it is padding. */
function paddingBias(g: Differentiable, promptLengths: Value): Value {
  const time = g.op(
    'Range',
    [g.int64Scalar(0), g.op('Squeeze', [g.dim('promptTime')], {}, [], 'int64'), g.int64Scalar(1)],
    {},
    ['promptTime'],
    'int64',
  );
  const length = g.emitReshape(promptLengths, ['prompts', 1]);
  const real = g.op('Less', [time, length], {}, ['prompts', 'promptTime'], 'bool');
  return g.emitReshape(g.emitWhere(real, g.scalar(0), g.scalar(MASKED)), ['prompts', 1, 1, 'promptTime']);
}

export interface KeyValue {
  readonly k: Value;
  readonly v: Value;
  /** Added to the scores of what a sample wrote, where a position is to be hidden. */
  readonly bias?: Value;
}

/**
 * One new token's attention over its prompt and what its sample wrote: q [samples, kv, group, headDim], prompt keys [prompts, kv,
 * promptTime, headDim], written keys [samples, kv, written, headDim]. A prompt's samples are folded into rows, so that its keys and
 * values are read in place.
 */
export function stepAttention(
  g: Differentiable,
  q: Value,
  prompt: KeyValue,
  promptBias: Value,
  written: KeyValue,
  group: number,
): Value {
  const [, kv, , headDim] = q.shape as [Dim, number, number, number];
  const alpha = 1 / Math.sqrt(headDim);
  /** [samples, kv, group, n] → [prompts, kv, perPrompt · group, n] */
  const fold = (x: Value, n: Dim) => {
    const split = g.emitReshape(x, ['prompts', 'perPrompt', kv, times(n, `${group}`)]);
    return g.emitReshape(g.emitTranspose(split, [0, 2, 1, 3]), ['prompts', kv, times(group, 'perPrompt'), n]);
  };
  /** and back */
  const unfold = (x: Value, n: Dim) => {
    const split = g.emitReshape(x, ['prompts', kv, 'perPrompt', times(n, `${group}`)]);
    return g.emitReshape(g.emitTranspose(split, [0, 2, 1, 3]), ['samples', kv, group, n]);
  };
  const promptScores = g.emitAdd(g.emitMatMul(fold(q, headDim), prompt.k, { transB: true, alpha }), promptBias);
  const scores = g.emitMatMul(q, written.k, { transB: true, alpha });
  const writtenScores = written.bias ? g.emitAdd(scores, written.bias) : scores;
  const p = g.emitSoftmax(g.emitConcat([unfold(promptScores, 'promptTime'), writtenScores], 3, 'seen'));
  const split = g.dim('promptTime');
  const toPrompt = g.emitSlice(p, 3, g.int64([0]), split, 'promptTime');
  const toWritten = g.emitSlice(p, 3, split, g.int64([2 ** 31]), 'written');
  const fromPrompt = unfold(g.emitMatMul(fold(toPrompt, 'promptTime'), prompt.v), headDim);
  return g.emitAdd(fromPrompt, g.emitMatMul(toWritten, written.v));
}

/** Largest block of the two-level cumulative sum. */
const LARGEST_BLOCK = 512;

/** Sizes of the two levels, blocks · block = vocabulary: near its square root, as CUDA's CumSum re-sums for every element. */
function levels(vocabulary: number): [blocks: number, block: number] {
  let block = 1;
  for (let n = 1; n <= Math.min(LARGEST_BLOCK, Math.sqrt(vocabulary) * 2); n++) if (vocabulary % n === 0) block = n;
  return [vocabulary / block, block];
}

/**
 * Draw a token a row by inverting the cumulative distribution in two levels (block, then within it): logits [samples, vocabulary] and
 * uniforms [samples] → tokens [samples] and their log-probabilities. Tokens are int64, in the standard dialect int32: its GPUs have no
 * 64-bit integers.
 */
export function sampleTokens(
  g: Differentiable,
  logits: Value,
  uniforms: Value,
  temperature: Value,
  vocabulary: number,
): { token: Value; logProb: Value } {
  const fused = g.dialect === 'fused';
  const [blocks, block] = levels(vocabulary);
  const p = g.emitSoftmax(g.emitDiv(logits, temperature));
  const grid = g.emitReshape(p, ['samples', blocks, block]);
  const cumulative = (x: Value) => g.op('CumSum', [x, g.int64Scalar(1)], {}, x.shape);
  /**
   * The first entry of a cumulative row above the threshold. Entries that have reached the row's total are never passed over, so that
   * rounding cannot lead to one of probability zero.
   */
  const rank = (row: Value, threshold: Value, size: number) => {
    const total = g.emitSlice(row, 1, g.int64([size - 1]), g.int64([size]), 1);
    const passed = g.op('LessOrEqual', [row, threshold], {}, row.shape, 'bool');
    const short = g.op('Less', [row, total], {}, row.shape, 'bool');
    if (fused) return g.emitReduce('ReduceSum', g.cast(g.emitBinary('And', passed, short, 'bool'), 'int64'), [1], true);
    // Counts in float32 are exact up to 2²⁴.
    const both = g.emitMul(g.cast(passed, 'float32'), g.cast(short, 'float32'));
    return g.cast(g.emitReduce('ReduceSum', both, [1], true), 'int32');
  };
  const blockSums = g.emitReduce('ReduceSum', grid, [2], false);
  const blockEnds = cumulative(blockSums);
  const total = g.emitSlice(blockEnds, 1, g.int64([blocks - 1]), g.int64([blocks]), 1);
  const threshold = g.emitMul(g.emitReshape(uniforms, ['samples', 1]), total);
  const chosen = rank(blockEnds, threshold, blocks);
  const pick = (x: Value) => g.op('GatherElements', [x, chosen], { axis: 1 }, ['samples', 1], x.dtype);
  const before = g.emitSub(pick(blockEnds), pick(blockSums));
  const within = fused
    ? g.op('GatherND', [grid, chosen], { batch_dims: 1 }, ['samples', block])
    : blockOf(g, grid, chosen);
  const offset = rank(cumulative(within), g.emitSub(threshold, before), block);
  const token = g.emitAdd(g.emitMul(chosen, fused ? g.int64([block]) : g.int32Scalar(block)), offset);
  const probability = g.op('GatherElements', [p, token], { axis: 1 }, ['samples', 1]);
  return {
    token: g.emitReshape(token, ['samples']),
    logProb: g.emitReshape(g.emitUnary('Log', probability), ['samples']),
  };
}

/** Row `chosen` [samples, 1] of each grid [samples, blocks, block] → [samples, block]. */
function blockOf(g: Differentiable, grid: Value, chosen: Value): Value {
  const block = grid.shape[2]!;
  const index = g.emitExpand(g.emitReshape(chosen, ['samples', 1, 1]), ['samples', 1, block]);
  const row = g.op('GatherElements', [grid, index], { axis: 1 }, ['samples', 1, block]);
  return g.emitReshape(row, ['samples', block]);
}
