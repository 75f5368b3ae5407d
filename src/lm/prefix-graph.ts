/**
 * The tokens of a batch whose sequences begin alike, as a graph computes them: the common prefix once, then every sequence's own tokens,
 * without padding outside attention. The prefix never reaches the head.
 */
import { prefixAttention, rowsFrom } from '../onnx/prefix-attention.js';
import type { Places } from '../onnx/prefix-attention.js';
import type { Differentiable } from '../onnx/differentiable.js';
import type { Value } from '../onnx/graph.js';
import type { DecoderConfig } from './config.js';
import { biases } from './decoder.js';
import type { Decoder } from './decoder.js';
import type { TokenRows } from './update-graph.js';

/**
 * Inputs, in place of `ids` [batch, time]: `ids` and `positions` int64 [rows], prefix first; the places of `queries` and `keys`, as
 * `queries.prefix` and so on; `present` [batch · group · time, 1]. What is given and returned of each token is [written], written = rows −
 * prefixTime. See `prefixRows` for the host's side.
 */
export function rowsAfterPrefix(g: Differentiable, config: DecoderConfig): TokenRows {
  const group = config.heads / config.kvHeads;
  const ids = g.input('ids', ['rows'], 'int64');
  const positions = g.input('positions', ['rows'], 'int64');
  const queries = placesInput(g, 'queries', group);
  const keys = placesInput(g, 'keys', 1);
  const present = g.input('present', [queries.sequences.shape[0]!, 1]);
  defineDims(g, ids, keys, group);
  const layout = {
    batch: 'batch',
    time: 'time',
    prefixTime: 'prefixTime',
    group,
    folded: times(group, 'batch'),
    queries,
    keys: { ...keys, sequences: g.emitReshape(keys.sequences, ['batch*time']) },
    present,
  };
  const biasOf = {
    prefix: biases((window) => g.causalBias('prefixTime', window)),
    sequence: biases((window) => g.causalBias('time', window)),
  };
  const toPrefix = biases((window) => {
    const rows = g.op('Shape', [queries.sequences], {}, [1], 'int64');
    g.defineDim(times(group, 'batch*time'), rows);
    return windowToPrefix(g, window!);
  });
  const stream = (decoder: Decoder): Value => {
    // All rows are one sequence to the layers, whose tables are those of its rows' positions.
    const rotary = decoder.rotary(rowNumbers(g), (table) => g.emitGather(table, positions));
    const x = decoder.layers(g, decoder.embed(g, ids), [1, 'rows'], rotary, (layer, q, k, v) => {
      const window = decoder.windowOf(layer);
      return prefixAttention(g, q, k, v, {
        ...layout,
        prefixBias: biasOf.prefix(window),
        sequenceBias: biasOf.sequence(window),
        toPrefixBias: window === null ? null : toPrefix(window),
      });
    });
    return rowsFrom(g, x, 'prefixTime', 'written');
  };
  return { shape: ['written'], rows: 'written', positions: 'positions', stream };
}

/** [time, prefixTime]: hides the part of the prefix that is before a sequence's window. */
function windowToPrefix(g: Differentiable, window: number): Value {
  const prefix = g.cast(g.op('Squeeze', [g.dim('prefixTime')], {}, [], 'int64'), 'int32');
  const query = g.emitReshape(g.emitAdd(g.emitRange('time'), prefix), ['time', 1]);
  return g.windowBias(query, g.emitRange('prefixTime'), window);
}

/** The name of a product of dimensions, as the decoder forms it. */
function times(n: number, by: string): string {
  return n === 1 ? by : `${n}*${by}`;
}

function placesInput(g: Differentiable, name: 'queries' | 'keys', n: number): Places {
  const input = (part: keyof Places, shape: readonly string[]) => g.input(`${name}.${part}`, shape, 'int64');
  return {
    prefix: input('prefix', [times(n, 'prefixTime')]),
    sequences: input('sequences', name === 'keys' ? ['batch', 'time'] : [times(n, 'batch*time')]),
    joined: input('joined', [times(n, 'rows')]),
  };
}

function defineDims(g: Differentiable, ids: Value, keys: Places, group: number): void {
  const size = (x: Value): Value => g.op('Shape', [x], {}, [1], 'int64');
  const shape = g.op('Shape', [keys.sequences], {}, [2], 'int64');
  g.defineDim('rows', size(ids));
  g.defineDim('prefixTime', size(keys.prefix));
  g.defineDim('written', g.emitSub(g.dim('rows'), g.dim('prefixTime')));
  g.defineDim('batch', g.emitSlice(shape, 0, g.int64([0]), g.int64([1]), 1));
  g.defineDim('time', g.emitSlice(shape, 0, g.int64([1]), g.int64([2]), 1));
  g.defineDim('positions', g.emitAdd(g.dim('prefixTime'), g.dim('time')));
  if (group === 1) return;
  for (const dim of ['batch', 'time']) g.defineDim(times(group, dim), g.emitMul(g.dim(dim), g.int64([group])));
}

/** 0, 1, …, rows − 1 as [1, rows]. */
function rowNumbers(g: Differentiable): Value {
  const count = g.op('Squeeze', [g.dim('rows')], {}, [], 'int64');
  const range = g.op('Range', [g.int64Scalar(0), count, g.int64Scalar(1)], {}, ['rows'], 'int64');
  return g.emitReshape(range, [1, 'rows']);
}
