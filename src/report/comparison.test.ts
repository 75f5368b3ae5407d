import { expect, test } from 'vitest';
import { armRoles, compareArms } from './comparison.js';
import type { ArmSetup } from './comparison.js';
import type { ArmResult, Results } from './results.js';

const setup = (name: string, reward: string, policy: string | null, base: string): ArmSetup => ({
  name,
  reward,
  policy,
  base,
  variation: [],
});

/** Results of one arm of 100 generations, all valid, so many in band. */
function result(name: string, seed: number, frontier: number): ArmResult {
  return {
    name,
    seed,
    n: 100,
    valid: 100,
    frontier,
    frontierRate: frontier / 100,
    uniqueFrontierRate: frontier / 100,
    passCounts: [100 - frontier, frontier],
    topTopic: null,
    diversity: { duplicates: null, novelty: null, effectiveTopics: null, coverage: null },
    byType: {},
    solverTrials: { offline: 0, inLoop: 0 },
    seconds: {},
  } as unknown as ArmResult;
}

const SETUPS = [
  setup('other-base', 'none', 'other', 'other-base'),
  setup('base', 'none', null, 'base'),
  setup('propel', 'probe', null, 'base'),
];

function compared(base: readonly number[], propel: readonly number[]) {
  const runs = base.map((frontier, seed) => ({
    seed,
    arms: [result('other-base', seed, 50), result('base', seed, frontier), result('propel', seed, propel[seed]!)],
  }));
  return compareArms(SETUPS, runs as unknown as Results[]);
}

test('a multiple of the base is of the means; of a base that has nothing in band there is none', () => {
  expect(compared([10, 20], [30, 30])[2]!.timesBase).toBeCloseTo(2, 12);
  expect(compared([0, 0], [30, 30])[2]!.timesBase).toBeNull();
});

test('the base of a comparison is the run’s own generator, wherever another untrained one stands', () => {
  expect(armRoles(compared([10], [30])).base.name).toBe('base');
});
