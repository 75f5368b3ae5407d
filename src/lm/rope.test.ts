/** Rotary tables: frequencies by hand, and tables that are exact at every position, however far. */
import { describe, expect, it } from 'vitest';
import { Differentiable } from '../onnx/differentiable.js';
import { floatData, integers, Session } from '../onnx/session.js';
import { parseRopeScaling, ropeFrequencies, rotaryTables } from './rope.js';
import type { RopeScaling } from './rope.js';

describe('frequencies', () => {
  it('are θ^(−2i/d), divided as the scaling says', () => {
    expect(ropeFrequencies(4, 100, null)).toEqual([1, 0.1]);
    expect(ropeFrequencies(4, 100, { type: 'linear', factor: 4 })).toEqual([0.25, 0.025]);
    const longrope: RopeScaling = {
      type: 'longrope',
      shortFactors: [2, 4],
      longFactors: [8, 8],
      attentionFactor: 1,
      originalPositions: 16,
    };
    expect(ropeFrequencies(4, 100, longrope)).toEqual([0.5, 0.025]);
  });

  it('of Llama 3.1 are kept where they turn often, slowed where they turn seldom, blended between', () => {
    const scaling: RopeScaling = {
      type: 'llama3',
      factor: 8,
      lowFrequencyFactor: 1,
      highFrequencyFactor: 4,
      originalPositions: 64,
    };
    // Turns within 64 positions: 10.2, 64 · 0.22 / 2π = 2.2409, and 0.49.
    const [kept, blended, slowed] = ropeFrequencies(6, 0.22 ** -3, scaling);
    const share = ((64 * 0.22) / (2 * Math.PI) - 1) / 3;
    expect(kept).toBe(1);
    expect(blended).toBeCloseTo(share * 0.22 + ((1 - share) * 0.22) / 8, 12);
    expect(slowed).toBeCloseTo(0.22 ** 2 / 8, 12);
  });

  it('of yarn are those of transformers', () => {
    const yarn: RopeScaling = {
      type: 'yarn',
      factor: 4,
      betaFast: 32,
      betaSlow: 1,
      truncate: true,
      attentionFactor: 1,
      originalPositions: 64,
    };
    const far = [
      0.007905694656074047, 0.0024999999441206455, 0.0007905694656074047, 0.0002500000118743628, 7.905694656074047e-5,
    ];
    const close = (scaling: RopeScaling, expected: readonly number[]) =>
      ropeFrequencies(16, 10_000, scaling).forEach((f, i) => expect(f / expected[i]!).toBeCloseTo(1, 6));
    close(yarn, [1, 0.23717081546783447, 0.04999999701976776, ...far]);
    close({ ...yarn, truncate: false, betaFast: 8, betaSlow: 2 }, [
      1,
      0.16058915853500366,
      0.02500000037252903,
      ...far,
    ]);
    const attention = (more: object) =>
      parseRopeScaling({
        scaling: { type: 'yarn', factor: 4, ...more },
        maxPositions: 64,
        originalPositions: undefined,
        headDim: 16,
      }) as { attentionFactor: number };
    expect(attention({}).attentionFactor).toBeCloseTo(1.138629436111989, 12);
    expect(attention({ mscale: 0.7, mscale_all_dim: 0.9 }).attentionFactor).toBeCloseTo(0.9753496504321066, 12);
    expect(attention({ attention_factor: 2 }).attentionFactor).toBe(2);
  });
});

describe('tables', () => {
  it('are float32’s cos, sin and −sin of every position, before, at and far beyond the first block', async () => {
    const g = new Differentiable('standard');
    g.defineDim('length', g.op('Shape', [g.input('one', ['length'], 'int64')], {}, [1], 'int64'));
    const settings = { name: 'rotary', headDim: 8, maxPositions: 5000, theta: 10_000, scaling: null, length: 'length' };
    for (const [name, value] of Object.entries(rotaryTables(g, settings))) g.output(value, name);
    const session = await Session.create(g, { provider: 'cpu', threads: 1 });
    const out = await session.run({ one: integers(new BigInt64Array(5000), [5000]) });
    await session.release();
    const [cos, sin, negativeSin] = ['cos', 'sin', 'negativeSin'].map((name) => floatData(out[name]));
    const frequencies = ropeFrequencies(8, 10_000, null);
    let worst = 0;
    for (let i = 0; i < 20_000; i++) {
      const angle = Math.floor(i / 4) * frequencies[i % 4]!;
      worst = Math.max(worst, Math.abs(cos![i]! - Math.cos(angle)), Math.abs(sin![i]! - Math.sin(angle)));
      expect(negativeSin![i]).toBe(-sin![i]!);
    }
    expect(worst).toBeLessThan(2e-7);
    // The first block is the host’s numbers themselves.
    expect(cos![4 * 1000]).toBe(Math.fround(Math.cos(1000)));
  });
});
