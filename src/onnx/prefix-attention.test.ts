/** Attention after a shared prefix, with numbers that can be checked by hand. */
import { describe, expect, it } from 'vitest';
import { Differentiable } from './differentiable.js';
import type { Dialect } from './graph.js';
import { prefixAttention, rowsFrom } from './prefix-attention.js';
import type { Places } from './prefix-attention.js';
import { floatData, floats, Session } from './session.js';

/**
 * A prefix of two rows, then sequences of one and of two: five rows, one head of one dimension. All queries are 0, so that every row sees
 * the plain mean of what it may see. The result, and the gradients of its sum.
 */
async function attend(dialect: Dialect, values: readonly number[]) {
  const g = new Differentiable(dialect);
  const places: Places = {
    prefix: g.int64([0, 1]),
    // The first sequence is padded with its own row.
    sequences: g.int64([2, 2, 3, 4]),
    joined: g.int64([0, 1, 2, 4, 5]),
  };
  const row = (name: string) => g.input(name, [1, 1, 5, 1], 'float32', true);
  const [q, k, v] = [row('q'), row('k'), row('v')];
  const present = g.input('present', [4, 1]);
  const causal = g.causalBias(2);
  const o = prefixAttention(g, q, k, v, {
    batch: 2,
    time: 2,
    prefixTime: 2,
    group: 1,
    folded: 2,
    queries: places,
    keys: places,
    present,
    prefixBias: causal,
    sequenceBias: causal,
    toPrefixBias: null,
  });
  g.output(o, 'o');
  g.gradients(g.sumAll(o), [q, k, v]).forEach((gradient, i) => g.output(gradient, `d${'qkv'[i]}`));
  const session = await Session.create(g, { provider: 'cpu', threads: 1 });
  const zeros = floats(new Float32Array(5), [1, 1, 5, 1]);
  const out = await session.run({
    q: zeros,
    k: floats(Float32Array.of(1, 0, 0, 0, 0), [1, 1, 5, 1]),
    v: floats(Float32Array.from(values), [1, 1, 5, 1]),
    present: floats(Float32Array.of(1, 0, 1, 1), [4, 1]),
  });
  await session.release();
  return Object.fromEntries(Object.entries(out).map(([name, tensor]) => [name, [...floatData(tensor)]]));
}

function expectClose(actual: readonly number[] | undefined, expected: readonly number[]): void {
  expect(actual).toHaveLength(expected.length);
  expected.forEach((x, i) => expect(actual![i]).toBeCloseTo(x, 6));
}

describe.each(['fused', 'standard'] as const)('attention after a shared prefix (%s)', (dialect) => {
  it('shows every row the prefix and its own sequence up to itself', async () => {
    const { o } = await attend(dialect, [1, 2, 6, 9, 12]);
    // 1 | (1+2)/2 | (1+2+6)/3 | (1+2+9)/3, (1+2+9+12)/4
    expectClose(o, [1, 1.5, 3, 4, 6]);
  });

  it('adds the sequences’ gradients up in the prefix, and has none from padding', async () => {
    const { dq, dk, dv } = await attend(dialect, [1, 2, 6, 9, 12]);
    // By value: the sum of its weights in the rows that see it.
    expectClose(dv, [1 + 1 / 2 + 2 / 3 + 1 / 4, 1 / 2 + 2 / 3 + 1 / 4, 1 / 3, 1 / 3 + 1 / 4, 1 / 4]);
    // Only the first key is not 0: ∂o/∂q = weight · (its value − the mean), 0 − ¼ − ⅔ − 1 − 5/4.
    expectClose(dq, [0, -1 / 4, -2 / 3, -1, -5 / 4]);
    // All queries are 0.
    expectClose(dk, [0, 0, 0, 0, 0]);
  });
});

describe('rowsFrom', () => {
  it('takes the last rows; those before have no gradient', async () => {
    const g = new Differentiable('fused');
    const x = g.input('x', [3, 1], 'float32', true);
    const rest = rowsFrom(g, x, 1, 2);
    g.output(rest, 'rest');
    g.output(g.gradients(g.sumAll(g.mul(rest, rest)), [x])[0]!, 'dx');
    const session = await Session.create(g, { provider: 'cpu', threads: 1 });
    const out = await session.run({ x: floats(Float32Array.of(1, 2, 3), [3, 1]) });
    await session.release();
    expect([...floatData(out['rest'])]).toEqual([2, 3]);
    expect([...floatData(out['dx'])]).toEqual([0, 4, 6]);
  });
});
