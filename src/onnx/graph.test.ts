/** Graphs: shape inference, symbolic dimensions, constants, loops, and models that ONNX Runtime loads. */
import { describe, expect, it } from 'vitest';
import { Differentiable } from './differentiable.js';
import { broadcastShapes, Emitter } from './emitter.js';
import { floatData, floats, scalar, Session } from './session.js';
import type { Feeds } from './session.js';

const CPU = { provider: 'cpu', threads: 1 } as const;

async function run(g: Emitter, feeds: Feeds): Promise<Record<string, { dims: readonly number[]; data: number[] }>> {
  const session = await Session.create(g, CPU);
  const out = await session.run(feeds);
  await session.release();
  return Object.fromEntries(
    Object.entries(out).map(([k, t]) => [k, { dims: t.dims, data: [...(t.data as Float32Array)] }]),
  );
}

describe('broadcastShapes', () => {
  it('follows NumPy, symbols meeting themselves or 1', () => {
    expect(broadcastShapes([2, 1, 3], [4, 1])).toEqual([2, 4, 3]);
    expect(broadcastShapes([], [5])).toEqual([5]);
    expect(broadcastShapes(['batch', 1], [1, 'time'])).toEqual(['batch', 'time']);
  });
  it('refuses sizes that differ, and a symbol beside a number or another symbol', () => {
    expect(() => broadcastShapes([2, 3], [2])).toThrow('shapes [2,3] and [2] do not broadcast');
    expect(() => broadcastShapes(['batch'], [2])).toThrow('shapes [batch] and [2] do not broadcast');
    expect(() => broadcastShapes(['batch'], ['time'])).toThrow('shapes [batch] and [time] do not broadcast');
  });
});

describe('shape inference', () => {
  const g = new Differentiable('standard');
  const a = g.input('a', [2, 3]);

  it('knows the shape of every result', () => {
    expect(g.emitMatMul(g.input('q', ['b', 4, 8]), g.input('k', ['b', 6, 8]), { transB: true }).shape).toEqual([
      'b',
      4,
      6,
    ]);
    expect(g.emitGemm(a, g.input('w', [5, 3]), null, { transB: true }).shape).toEqual([2, 5]);
    expect(g.emitReduce('ReduceSum', a, [-1], false).shape).toEqual([2]);
    expect(g.emitReduce('ReduceSum', a, [-1], true).shape).toEqual([2, 1]);
    expect(g.transpose(a, [1, 0]).shape).toEqual([3, 2]);
    expect(g.emitGather(a, g.int64([1, 0, 1])).shape).toEqual([3, 3]);
    expect(g.emitConcat([a, a], 0, 4).shape).toEqual([4, 3]);
    expect(g.emitSplit(a, 1, [1, 2]).map((v) => v.shape)).toEqual([
      [2, 1],
      [2, 2],
    ]);
  });
  it('refuses to add what does not broadcast', () => {
    expect(() => g.add(a, g.input('c', [2]))).toThrow('shapes [2,3] and [2] do not broadcast');
  });
  it('refuses to multiply matrices whose inner dimensions differ', () => {
    expect(() => g.linear(a, g.input('w4', [5, 4]))).toThrow('[2,3] and [5,4] do not multiply');
    expect(() => g.emitMatMul(a, g.input('m', [2, 3]))).toThrow('[2,3] and [2,3] do not multiply');
  });
  it('refuses a reshape to another number of elements', () => {
    expect(() => g.reshape(a, [4, 2])).toThrow('[2,3] does not reshape to [4,2]');
  });
  it('refuses a dimension whose run-time size was never given', () => {
    expect(() => g.zeros(['batch', 2])).toThrow("dimension 'batch' has no run-time size");
  });
});

describe('an encoded model', () => {
  it('is ONNX that a session loads and runs', async () => {
    const g = new Emitter('standard');
    const x = g.input('x', [2]);
    g.output(g.emitAdd(g.emitMul(x, x), g.scalar(1)), 'y');
    // Field 1 of ModelProto, ir_version, is the varint 10; the producer's name stands in clear.
    const bytes = Buffer.from(g.encode());
    expect([...bytes.subarray(0, 2)]).toEqual([0x08, 10]);
    expect(bytes.includes('propel')).toBe(true);
    expect(await run(g, { x: floats(Float32Array.of(3, -2), [2]) })).toEqual({ y: { dims: [2], data: [10, 5] } });
  });

  it('holds a constant once, however often it is asked for', () => {
    const g = new Emitter('standard');
    expect(g.scalar(0.5)).toBe(g.scalar(0.5));
    expect(g.int64([1, 2])).toBe(g.int64([1, 2]));
    expect(g.int64([1])).not.toBe(g.int64Scalar(1));
  });

  it('keeps numbers that float32 and float64 tell apart', async () => {
    const g = new Emitter('standard');
    g.output(g.emitMul(g.input('x', []), g.scalar(-0)), 'negativeZero');
    const { negativeZero } = await run(g, { x: scalar(1) });
    expect(Object.is(negativeZero!.data[0], -0)).toBe(true);
  });
});

describe('symbolic dimensions', () => {
  const g = new Differentiable('fused');
  const x = g.input('x', ['batch', 'time', 2], 'float32', true);
  const shape = g.op('Shape', [x], {}, [3], 'int64');
  g.defineDim('batch', g.emitSlice(shape, 0, g.int64([0]), g.int64([1]), 1));
  g.defineDim('time', g.emitSlice(shape, 0, g.int64([1]), g.int64([2]), 1));
  g.defineDim('rows', g.emitMul(g.dim('batch'), g.dim('time')));
  const swapped = g.transpose(x, [1, 0, 2]);
  const flat = g.reshape(g.reshape(swapped, ['rows', 2]), ['time', 'batch', 2]);
  const loss = g.sumAll(g.mul(g.mul(flat, flat), g.scalar(0.5)));
  g.output(swapped, 'swapped');
  g.output(g.zeros(['time', 3]), 'zeros');
  g.output(g.causalBias('time'), 'bias');
  g.output(g.gradients(loss, [x])[0]!, 'gradient');

  it.each([
    [1, 3],
    [2, 1],
    [2, 2],
  ])('take batch %i and time %i from the same session graph', async (batch, time) => {
    const data = Float32Array.from({ length: batch * time * 2 }, (_, i) => i + 1);
    const out = await run(g, { x: floats(data, [batch, time, 2]) });
    expect(out['swapped']!.dims).toEqual([time, batch, 2]);
    expect(out['zeros']).toEqual({ dims: [time, 3], data: Array.from({ length: time * 3 }, () => 0) });
    expect(out['bias']!.data).toEqual(
      Array.from({ length: time * time }, (_, i) => (i % time > Math.floor(i / time) ? -1e9 : 0)),
    );
    // The loss is ½ Σ x², so the gradient is x.
    expect(out['gradient']).toEqual({ dims: [batch, time, 2], data: [...data] });
  });
});

describe('a Loop', () => {
  it('sees values of the graph around it, carries state and collects one row an iteration', async () => {
    const g = new Emitter('standard');
    const start = g.input('start', [2]);
    const factor = g.input('factor', []);
    const body = new Emitter(g);
    body.input('iteration', [], 'int64');
    body.input('goOn', [], 'bool');
    const next = body.emitMul(body.input('carried', [2]), factor);
    for (const value of [
      body.op('Identity', [g.boolScalar(true)], {}, [], 'bool'),
      next,
      body.emitAdd(next, body.scalar(1)),
    ]) {
      body.output(value);
    }
    const [last, rows] = g.ops('Loop', [g.int64Scalar(3), g.boolScalar(true), start], { body }, [
      { shape: [2] },
      { shape: ['steps', 2] },
    ]);
    g.output(last!, 'last');
    g.output(rows!, 'rows');
    expect(await run(g, { start: floats(Float32Array.of(1, 5), [2]), factor: scalar(2) })).toEqual({
      last: { dims: [2], data: [8, 40] },
      rows: { dims: [3, 2], data: [3, 11, 5, 21, 9, 41] },
    });
  });
});

describe('a session', () => {
  it('treats denormal numbers as zero', async () => {
    const g = new Emitter('standard');
    g.output(g.emitMul(g.input('x', [1]), g.scalar(1)), 'y');
    const session = await Session.create(g, CPU);
    expect(floatData((await session.run({ x: floats(Float32Array.of(1e-40), [1]) }))['y'])).toEqual(Float32Array.of(0));
    await session.release();
  });
});
