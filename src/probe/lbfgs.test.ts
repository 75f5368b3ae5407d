import { describe, expect, test } from 'vitest';
import { minimise } from './lbfgs.js';
import type { LbfgsSettings, Objective } from './lbfgs.js';

const EXACT: LbfgsSettings = {
  memory: 10,
  maxIterations: 200,
  gradientTolerance: 1e-9,
  valueTolerance: 0,
  valueNoise: 0,
};

/** (1 − x)² + 100 (y − x²)², least at (1, 1). */
const rosenbrock: Objective = ([x, y]) => ({
  value: (1 - x!) ** 2 + 100 * (y! - x! ** 2) ** 2,
  gradient: Float64Array.of(-2 * (1 - x!) - 400 * x! * (y! - x! ** 2), 200 * (y! - x! ** 2)),
});

describe('L-BFGS', () => {
  test("walks Rosenbrock's valley to (1, 1)", async () => {
    const { point, value, iterations } = await minimise(rosenbrock, Float64Array.of(-1.2, 1), EXACT);
    expect(point[0]).toBeCloseTo(1, 8);
    expect(point[1]).toBeCloseTo(1, 8);
    expect(value).toBeLessThan(1e-16);
    expect(iterations).toBeLessThan(60);
  });

  test('a quadratic with curvatures from 1 to 10,000 ends at its centre', async () => {
    const curvatures = Array.from({ length: 30 }, (_, i) => 10 ** ((4 * i) / 29));
    const quadratic: Objective = (x) => ({
      value: curvatures.reduce((sum, c, i) => sum + (c / 2) * (x[i]! - i) ** 2, 0),
      gradient: x.map((value, i) => curvatures[i]! * (value - i)),
    });
    const { point, ended } = await minimise(quadratic, new Float64Array(30), {
      ...EXACT,
      maxIterations: 1000,
      gradientTolerance: 1e-7,
    });
    expect(ended).toBe('gradient');
    point.forEach((value, i) => expect(value).toBeCloseTo(i, 6));
  });

  test('a function that is not finite beyond a wall is searched on this side of it', async () => {
    // x − ln x, least at 1; NaN for x < 0.
    const walled: Objective = ([x]) => ({ value: x! - Math.log(x!), gradient: Float64Array.of(1 - 1 / x!) });
    const { point } = await minimise(walled, Float64Array.of(8), EXACT);
    expect(point[0]).toBeCloseTo(1, 8);
  });

  test('it says why it ended', async () => {
    const start = Float64Array.of(-1.2, 1);
    expect((await minimise(rosenbrock, start, { ...EXACT, maxIterations: 3 })).ended).toBe('iterations');
    expect((await minimise(rosenbrock, start, { ...EXACT, valueTolerance: 1e-2 })).ended).toBe('value');
    expect((await minimise(rosenbrock, Float64Array.of(1, 1), EXACT)).ended).toBe('gradient');
    await expect(minimise(rosenbrock, Float64Array.of(Number.NaN, 1), EXACT)).rejects.toThrow('NaN at the start');
  });

  test('it remembers so many steps and no more: with fewer it takes another way', async () => {
    const way = async (memory: number) => {
      const seen: number[] = [];
      const watched: Objective = (point) => {
        seen.push(point[0]!);
        return rosenbrock(point);
      };
      await minimise(watched, Float64Array.of(-1.2, 1), { ...EXACT, memory });
      return seen;
    };
    expect(await way(1)).not.toEqual(await way(10));
  });

  test('the same start gives the same bits', async () => {
    const once = await minimise(rosenbrock, Float64Array.of(-1.2, 1), EXACT);
    expect(await minimise(rosenbrock, Float64Array.of(-1.2, 1), EXACT)).toEqual(once);
  });
});
