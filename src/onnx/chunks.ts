/** Row-wise work in a Loop over chunks of rows, with its gradient. */
import { Differentiable } from './differentiable.js';
import type { Dim, Value } from './graph.js';

/** What a chunk gives: sums over its rows, scalars, and results per row. */
export interface ChunkResults {
  readonly sums: readonly Value[];
  readonly results: readonly Value[];
}

/**
 * Row-wise work chunk by chunk, so that what a row widens to, such as its logits, exists for one chunk at a time. `f` sees a chunk of
 * x [rows, d] and of each of `perRow` [rows]. The first of its sums is differentiable with respect to x and to whatever else `f` uses: its
 * gradient is computed in the same pass. The last chunk is filled up with rows of zeros, which must add nothing to a sum.
 */
export function byChunks(
  g: Differentiable,
  x: Value,
  perRow: readonly Value[],
  chunkRows: number,
  f: (body: Differentiable, x: Value, perRow: readonly Value[]) => ChunkResults,
): ChunkResults {
  const rows = x.shape[0]!;
  defineChunks(g, rows, chunkRows);
  const body = new Differentiable(g);
  const iteration = body.input(body.freshName('iteration'), [], 'int64');
  const condition = body.input(body.freshName('condition'), [], 'bool');
  const chunkOf = (v: Value): Value => {
    const filling = g.cast(g.zeros(['padding', ...v.shape.slice(1)]), v.dtype);
    const filled = g.emitConcat([v, filling], 0, 'padded');
    return body.emitGather(g.emitReshape(filled, ['chunks', 'chunk', ...v.shape.slice(1)]), iteration);
  };
  const chunk = chunkOf(x);
  chunk.requiresGrad = x.requiresGrad;
  const { sums, results } = f(body, chunk, perRow.map(chunkOf));

  const leaves = sums.length ? body.leavesBeside(chunk) : [];
  const wanted = sums.length && x.requiresGrad ? [...leaves, chunk] : leaves;
  const gradients = wanted.length ? body.gradients(sums[0]!, wanted) : [];
  // The gradients of leaves are added up from chunk to chunk, that of x is laid out by rows.
  const added = leaves.map((leaf, i) =>
    body.emitAdd(body.input(body.freshName('gradient'), leaf.shape), gradients[i]!),
  );
  const scanned = [...sums, ...results, ...gradients.slice(leaves.length)];
  for (const value of [condition, ...added, ...scanned]) {
    body.output(body.op('Identity', [value], {}, value.shape, value.dtype));
  }
  const trips = g.op('Squeeze', [g.dim('chunks')], {}, [], 'int64');
  const start = leaves.map((leaf) => g.zeros(leaf.shape));
  const outputs = g.ops('Loop', [trips, g.boolScalar(true), ...start], { body }, [
    ...leaves.map(({ shape }) => ({ shape })),
    ...scanned.map(({ shape, dtype }) => ({ shape: ['chunks', ...shape], dtype })),
  ]);
  const scans = outputs.slice(leaves.length);
  const flat = (v: Value): Value => {
    const joined = g.emitReshape(v, ['padded', ...v.shape.slice(2)]);
    return g.emitSlice(joined, 0, g.int64([0]), g.dim(rows), rows);
  };
  const totals = scans.slice(0, sums.length).map((v) => g.emitSumAll(v));
  if (wanted.length) {
    totals[0]!.requiresGrad = true;
    g.recordAll({
      outputs: [totals[0]!],
      operands: [...leaves, x],
      vjp: ([incoming]) => [
        ...leaves.map((_, i) => () => g.emitMul(outputs[i]!, incoming!)),
        () => g.emitMul(flat(scans.at(-1)!), incoming!),
      ],
    });
  }
  return { sums: totals, results: scans.slice(sums.length, sums.length + results.length).map(flat) };
}

/** As few chunks as `chunkRows` allows, as equal as can be: dimensions `chunks`, `chunk`, `padded` = chunks · chunk ≥ rows, `padding`. */
function defineChunks(g: Differentiable, rows: Dim, chunkRows: number): void {
  const one = g.int64([1]);
  const ceilDiv = (a: Value, b: Value): Value => g.emitDiv(g.emitSub(g.emitAdd(a, b), one), b);
  const count = g.dim(rows);
  const chunks = ceilDiv(count, g.int64([chunkRows]));
  const chunk = ceilDiv(count, chunks);
  const padded = g.emitMul(chunks, chunk);
  g.defineDim('chunks', chunks);
  g.defineDim('chunk', chunk);
  g.defineDim('padded', padded);
  g.defineDim('padding', g.emitSub(padded, count));
}
