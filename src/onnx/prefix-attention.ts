/**
 * Attention of sequences that go on from one prefix. Rows come without padding, the prefix's first, then sequence by sequence. The prefix's
 * keys and values are neither repeated nor copied: the sequences and their query heads are folded into rows against them, so that the
 * gradients with respect to them are sums over the sequences by themselves.
 */
import type { Differentiable } from './differentiable.js';
import type { Dim, Value } from './graph.js';

/** Where rows lie along an axis that has every row n times: int64 indices that take them apart and put them together again. */
export interface Places {
  /** [n · prefixTime]: the prefix. */
  readonly prefix: Value;
  /** [batch · n · time]: the sequences, padded on the right with any row of theirs. */
  readonly sequences: Value;
  /** [n · rows]: the way back, from the two laid end to end. */
  readonly joined: Value;
}

export interface PrefixLayout {
  readonly batch: Dim;
  readonly time: Dim;
  readonly prefixTime: Dim;
  /** Query heads that share a key–value head. */
  readonly group: number;
  /** `batch` · `group`. */
  readonly folded: Dim;
  /** n = group. */
  readonly queries: Places;
  /** n = 1. */
  readonly keys: Places;
  /** [batch · group · time, 1]: 1 at a query of a token, 0 at one of padding. */
  readonly present: Value;
  /** [prefixTime, prefixTime] and [time, time], added to scores: they hide the future. */
  readonly prefixBias: Value;
  readonly sequenceBias: Value;
  /** [time, prefixTime], added to the scores of a sequence's queries and the prefix's keys; null: the sequences see all of the prefix. */
  readonly toPrefixBias: Value | null;
}

/** q [1, kv, group · rows, headDim], k and v [1, kv, rows, headDim] → like q: every row sees the prefix, and its own sequence, up to itself. */
export function prefixAttention(g: Differentiable, q: Value, k: Value, v: Value, layout: PrefixLayout): Value {
  const [, kv, , headDim] = q.shape as [Dim, number, Dim, number];
  const { queries, keys, group, prefixTime } = layout;
  const apart = (x: Value, places: Places): [prefix: Value, sequences: Value] =>
    takeApart(g, g.reshape(x, [kv, x.shape[2]!, headDim]), places);
  const [prefixQ, sequenceQ] = apart(q, queries);
  const [prefixK, sequenceK] = apart(k, keys);
  const [prefixV, sequenceV] = apart(v, keys);
  const one = (x: Value): Value => g.reshape(x, [1, ...x.shape]);
  const fromPrefix = g.causalAttention(one(prefixQ), one(prefixK), one(prefixV), layout.prefixBias, group, prefixTime);
  const fromSequences = sequenceAttention(
    g,
    sequenceQ,
    { k: prefixK, v: prefixV },
    { k: sequenceK, v: sequenceV },
    layout,
  );
  const prefixRows = g.reshape(fromPrefix, prefixQ.shape);
  return g.reshape(putTogether(g, prefixRows, fromSequences, queries, layout.present), q.shape);
}

/** x [rows, width] from row `start` on, `rest` rows. */
export function rowsFrom(g: Differentiable, x: Value, start: Dim, rest: Dim): Value {
  const [rows, width] = x.shape as [Dim, Dim];
  const y = g.emitSlice(x, 0, g.dim(start), g.dim(rows), rest);
  if (!x.requiresGrad) return y;
  y.requiresGrad = true;
  const vjp = ([gradient]: readonly (Value | undefined)[]) => [
    () => g.emitConcat([g.zeros([start, width]), gradient!], 0, rows),
  ];
  g.recordAll({ outputs: [y], operands: [x], vjp });
  return y;
}

interface KeyValue {
  readonly k: Value;
  readonly v: Value;
}

/**
 * q [kv, batch · group · time, headDim] over the prefix's keys and values [kv, prefixTime, headDim] and each sequence's own
 * [kv, batch · time, headDim] → like q.
 */
function sequenceAttention(g: Differentiable, q: Value, prefix: KeyValue, own: KeyValue, layout: PrefixLayout): Value {
  const [kv, rows, headDim] = q.shape as [number, Dim, number];
  const { batch, time, prefixTime, group, folded } = layout;
  const alpha = 1 / Math.sqrt(headDim);
  /** [kv, batch · n · time, d] → [kv, batch, n · time, d] */
  const bySequence = (x: Value, n: number): Value =>
    g.emitReshape(x, [kv, batch, n === 1 ? time : `${n}*${time}`, x.shape[2]!]);
  const byRow = (x: Value): Value => g.emitReshape(x, [kv, rows, x.shape[3]!]);
  const [ownQ, ownK, ownV] = [bySequence(q, group), bySequence(own.k, 1), bySequence(own.v, 1)];

  const allPrefix = g.emitMatMul(q, prefix.k, { transB: true, alpha });
  const { toPrefixBias } = layout;
  const byTime = (x: Value): Value => g.emitReshape(x, [kv, folded, time, prefixTime]);
  const prefixScores = toPrefixBias
    ? g.emitReshape(g.emitAdd(byTime(allPrefix), toPrefixBias), allPrefix.shape)
    : allPrefix;
  const allOwn = g.emitReshape(g.emitMatMul(ownQ, ownK, { transB: true, alpha }), [kv, folded, time, time]);
  const ownScores = g.emitReshape(g.emitAdd(allOwn, layout.sequenceBias), [kv, rows, time]);
  const seen = g.emitSoftmax(g.emitConcat([prefixScores, ownScores], 2, 'seen'));
  const [prefixP, flatP] = g.ops('Split', [seen, g.shapeVector([prefixTime, time])], { axis: 2 }, [
    { shape: [kv, rows, prefixTime] },
    { shape: [kv, rows, time] },
  ]) as [Value, Value];
  const ownP = bySequence(flatP, group);
  const o = g.emitAdd(g.emitMatMul(prefixP, prefix.v), byRow(g.emitMatMul(ownP, ownV)));

  const operands = [q, prefix.k, prefix.v, own.k, own.v];
  if (!operands.some((operand) => operand.requiresGrad)) return o;
  o.requiresGrad = true;
  g.recordAll({
    outputs: [o],
    operands,
    vjp: ([gradient]) => {
      const dO = gradient!;
      const ownDO = bySequence(dO, group);
      // dS = P ∘ (dP − rowsum(dO ∘ O)): Dao et al. 2022, appendix B.
      const rowSum = once(() => g.emitReduce('ReduceSum', g.emitMul(dO, o), [-1], true));
      const prefixDS = once(() =>
        g.emitMul(prefixP, g.emitSub(g.emitMatMul(dO, prefix.v, { transB: true }), rowSum())),
      );
      const ownDS = once(() =>
        g.emitMul(ownP, g.emitSub(g.emitMatMul(ownDO, ownV, { transB: true }), bySequence(rowSum(), group))),
      );
      const flat = (x: Value, shape: Value['shape']): Value => g.emitReshape(x, shape);
      return [
        () => g.emitAdd(g.emitMatMul(prefixDS(), prefix.k, { alpha }), byRow(g.emitMatMul(ownDS(), ownK, { alpha }))),
        () => g.emitMatMul(prefixDS(), q, { transA: true, alpha }),
        () => g.emitMatMul(prefixP, dO, { transA: true }),
        () => flat(g.emitMatMul(ownDS(), ownQ, { transA: true, alpha }), own.k.shape),
        () => flat(g.emitMatMul(ownP, ownDO, { transA: true }), own.v.shape),
      ];
    },
  });
  return o;
}

/** x [kv, n · rows, d] → the prefix's rows and the sequences'. */
function takeApart(g: Differentiable, x: Value, places: Places): [prefix: Value, sequences: Value] {
  const parts: [Value, Value] = [emitTake(g, x, places.prefix), emitTake(g, x, places.sequences)];
  if (!x.requiresGrad) return parts;
  for (const part of parts) part.requiresGrad = true;
  g.recordAll({
    outputs: parts,
    operands: [x],
    vjp: (gradients) => [
      () => {
        const [prefix, sequences] = gradients.map((gradient, i) => gradient ?? g.zeros(parts[i]!.shape));
        return emitJoin(g, prefix!, sequences!, places);
      },
    ],
  });
  return parts;
}

/** The inverse; what is at padding is left out, and has no gradient. */
function putTogether(g: Differentiable, prefix: Value, sequences: Value, places: Places, present: Value): Value {
  const x = emitJoin(g, prefix, sequences, places);
  if (!prefix.requiresGrad && !sequences.requiresGrad) return x;
  x.requiresGrad = true;
  g.recordAll({
    outputs: [x],
    operands: [prefix, sequences],
    vjp: ([gradient]) => [
      () => emitTake(g, gradient!, places.prefix),
      () => g.emitMul(emitTake(g, gradient!, places.sequences), present),
    ],
  });
  return x;
}

function emitTake(g: Differentiable, x: Value, index: Value): Value {
  return g.op('Gather', [x, index], { axis: 1 }, [x.shape[0]!, index.shape[0]!, x.shape[2]!]);
}

function emitJoin(g: Differentiable, prefix: Value, sequences: Value, { joined }: Places): Value {
  return emitTake(g, g.emitConcat([prefix, sequences], 1, 'prefix and sequences'), joined);
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
