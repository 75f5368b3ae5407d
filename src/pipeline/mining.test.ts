import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { standInReference } from '../../tests/planted-tasks.js';
import {
  plantedLogit,
  plantedReward,
  PROBES,
  probeOf,
  probeWorld,
  taskRow,
  worldSeed,
} from '../../tests/probe-world.js';
import type { ProbeWorld } from '../../tests/probe-world.js';
import { temporaryFolder } from '../../tests/propel-process.js';
import { fitAuxiliaryProbe } from '../probe/auxiliary.js';
import { readProbeNumbers } from '../probe/probe-file.js';
import { scoreTexts } from '../probe/probe.js';
import type { Probe } from '../probe/probe.js';
import { taskId } from '../store/rows.js';
import type { RunStore } from '../store/store.js';
import { draw, isMiningStep, minedBy, mineWhenDue, mostUseful } from './mining.js';

describe('what is mined', () => {
  const task = (text: string, reward: number) => ({ text, reward });

  test('the best-paid share of the distinct tasks, rounded up, best first', () => {
    const tasks = [task('a', 0.5), task('b', 2), task('a', 9), task('c', -1), task('d', 0.5), task('e', 0)];
    expect(mostUseful(tasks, 0.5)).toEqual([task('b', 2), task('a', 0.5), task('d', 0.5)]);
    expect(mostUseful(tasks, 0.1)).toEqual([task('b', 2)]);
    expect(mostUseful(tasks, 1).map(({ text }) => text)).toEqual(['b', 'a', 'd', 'e', 'c']);
    expect(mostUseful([], 0.5)).toEqual([]);
  });

  test('a draw follows from its seed, keeps the order, and takes all when there are no more', () => {
    const tasks = Array.from({ length: 50 }, (_, i) => i);
    const drawn = draw(tasks, 10, 1);
    expect(drawn).toHaveLength(10);
    expect(new Set(drawn).size).toBe(10);
    expect(drawn).toEqual(drawn.toSorted((a, b) => a - b));
    expect(draw(tasks, 10, 1)).toEqual(drawn);
    expect(draw(tasks, 10, 2)).not.toEqual(drawn);
    expect(draw([7, 5, 9], 10, 1)).toEqual([7, 5, 9]);
  });

  test('every n-th step, none before the first', () => {
    const settings = { every: 10, mine: 1, share: 1 };
    expect([0, 5, 10, 19, 20].filter((step) => isMiningStep(settings, step))).toEqual([10, 20]);
  });
});

describe('a mining', () => {
  const folder = temporaryFolder();
  const ARM = 'mine';
  const SETTINGS = { every: 2, mine: 3, share: 0.5 };
  const CONFIG = `arms={${ARM}: {reward: probe, probes: 2, adversarial: {every: 2, mine: 3, share: 0.5}}}`;
  const letters = ['b', 'c', 'd', 'e', 'f', 'g'];
  /** Texts of a step: the first probe likes many `a`, the second few. Those with `p` are passed as often as they have one. */
  const textsOf = (step: number) =>
    [0, 1, 2, 3, 4, 5].map((a) => `${'a'.repeat(a)}${letters[step]!.repeat(7 - a)}${'p'.repeat(a % 3)}`);

  /** A step of the arm: its tasks with what the probes, an auxiliary among them or not, said of them. */
  async function train({ store }: ProbeWorld, step: number, auxiliary: Probe | null = null): Promise<void> {
    const key = { phase: 'train-generator', arm: ARM, batch: step } as const;
    const texts = textsOf(step);
    const by = auxiliary && (await scoreTexts(standInReference, [auxiliary], texts))[0]!;
    store.commitBatch(key, 0, () => {
      store.insertTasks(texts.map((text, i) => taskRow(key, i, text)));
      store.insertStepScores(
        texts.map((text, i) => {
          const members = PROBES.map((probe, j) => [`probe-${j}`, plantedLogit(probe, text)] as const);
          const logits = Object.fromEntries([...members, ...(by ? [['auxiliary-2', by[i]!] as const] : [])]);
          return { taskId: taskId(key, i), arm: ARM, step, logits, reward: 0, advantage: 0 };
        }),
      );
    });
  }

  /** A world whose arm has been trained for so many steps. */
  async function trained(name: string, steps: number, passes?: (text: string) => number): Promise<ProbeWorld> {
    const world = probeWorld(join(folder, name), [CONFIG], passes);
    for (let step = 1; step <= steps; step++) await train(world, step);
    return world;
  }

  const both = (text: string) => Math.min(...PROBES.map((probe) => plantedReward(probe, text, Infinity)));
  const minedTexts = (store: RunStore) =>
    store.labelledTasks({ phase: 'train-generator', arm: ARM, split: 'mined' }).map(({ rendered }) => rendered!);

  test('re-scores some of what the probes pay most for, of the steps since the last, and counts what was out of band', async () => {
    const { workspace, store, asked } = await trained('counts', 3);
    expect(await mineWhenDue(workspace, ARM, SETTINGS, 1)).toBe(false);
    expect(await mineWhenDue(workspace, ARM, SETTINGS, 2)).toBe(true);
    const candidates = [...textsOf(1), ...textsOf(2)];
    const useful = candidates.toSorted((a, b) => both(b) - both(a)).slice(0, 6);
    const mined = minedTexts(store);
    expect(mined).toHaveLength(SETTINGS.mine);
    for (const text of mined) expect(useful).toContain(text);
    expect(asked).toEqual([expect.arrayContaining(mined)]);
    const drawn = draw(
      mostUseful(
        candidates.map((text) => ({ text, reward: both(text) })),
        SETTINGS.share,
      ),
      SETTINGS.mine,
      worldSeed(`mine ${ARM}`, 2),
    );
    expect(asked[0]).toEqual(drawn.map(({ text }) => text));
    const inBand = (text: string) => [1, 2].includes([...text].filter((letter) => letter === 'p').length);
    const falsePositives = mined.filter((text) => !inBand(text)).length;
    expect(store.minings(ARM)).toMatchObject([{ step: 2, mined: 3, falsePositives, solverTrials: 12 }]);
    expect(minedBy(store, ARM, workspace.config.arms[ARM]!)).toEqual({ tasks: 3, falsePositives });
    // Done already, and not done again.
    expect(await mineWhenDue(workspace, ARM, SETTINGS, 2)).toBe(false);
    expect(asked).toHaveLength(1);
  });

  test('fits the auxiliary probe on the labels and all that was mined so far', async () => {
    const world = await trained('fits', 2);
    const { workspace, store } = world;
    const texts = (filter: Parameters<RunStore['labelledTasks']>[0]) =>
      store.labelledTasks(filter).map(({ id, rendered, passes }) => ({ id, text: rendered!, passes }));
    const labels = texts({ phase: 'label' });
    const member = probeOf(PROBES[0]!);
    const fitted = async () =>
      fitAuxiliaryProbe(
        standInReference,
        member,
        0.1,
        labels,
        texts({ phase: 'train-generator', arm: ARM, split: 'mined' }),
      );
    const written = () => {
      const { path } = store.minings(ARM).at(-1)!;
      return readProbeNumbers(join(store.folder, path), {
        features: member.spec,
        width: 3,
        head: 'band',
        k: 4,
        band: { min: 1, max: 2 },
      });
    };
    // Rounding depends on the order of the rows.
    const close = (actual: Float32Array, expected: Float32Array) =>
      expected.forEach((weight, i) => expect(actual[i]).toBeCloseTo(weight, 5));
    await mineWhenDue(workspace, ARM, SETTINGS, 2);
    const first = written();
    close(first.head.weights, (await fitted()).head.weights);
    // What follows was scored by three.
    await train(world, 3, first);
    await train(world, 4, first);
    await mineWhenDue(workspace, ARM, SETTINGS, 4);
    expect(minedTexts(store)).toHaveLength(6);
    const second = written();
    close(second.head.weights, (await fitted()).head.weights);
    expect(second.scale.mean).toBeCloseTo((await fitted()).scale.mean, 5);
    expect(Math.abs(second.head.weights[0]! - first.head.weights[0]!)).toBeGreaterThan(1e-3);
    expect(minedBy(store, ARM, workspace.config.arms[ARM]!)!.tasks).toBe(6);
  });

  test('leaves out what lost its attempts, counting the trials that were graded', async () => {
    const { workspace, store } = await trained('lost', 2, (text) => (text.startsWith('aaa') ? -1 : 1));
    expect(await mineWhenDue(workspace, ARM, { ...SETTINGS, mine: 6 }, 2)).toBe(true);
    const [mining] = store.minings(ARM);
    expect(mining!.mined).toBe(minedTexts(store).length);
    expect(mining!.mined).toBeLessThan(6);
    expect(mining!.solverTrials).toBe(4 * mining!.mined);
  });
});
