import { beforeAll, describe, expect, test } from 'vitest';
import { PLANTED_ATTEMPTS, PLANTED_BAND, plantedTasks, standInReference } from '../../tests/planted-tasks.js';
import { RunError } from '../errors.js';
import { isInBand } from './count-head.js';
import type { FeatureSpec } from './features.js';
import { lossDifference } from './held-out.js';
import { memberSplit, nestedOrder } from './split.js';
import { studyProbes } from './study.js';
import type { ProbeStudy } from './study.js';
import { studyCounts, studyFeatures, studyLayers } from './study-grid.js';
import { trainProbes } from './train-probes.js';
import type { ProbeInput } from './train-probes.js';

const informative: FeatureSpec = [{ layer: 1, pooling: 'mean' }];
const noise: FeatureSpec = [{ layer: 2, pooling: 'last' }];
const tasks = plantedTasks(400);
const input: ProbeInput = {
  reference: standInReference,
  tasks,
  k: PLANTED_ATTEMPTS,
  band: PLANTED_BAND,
  seed: 5,
  domain: { types: ['code_o'], notation: 'doctest' },
  versions: { propel: '1.2.3' },
};
const parts = memberSplit(
  tasks.map(({ passes }) => isInBand(passes, PLANTED_BAND)),
  { validation: 0.2, test: 0.2 },
  input.seed,
  0,
);
const settings = { features: [noise, informative], l2: [0.01, 0.1], labelCounts: [120, 320] };

let study: ProbeStudy;
const progress: [done: number, total: number][] = [];
beforeAll(async () => {
  study = await studyProbes(input, parts, settings, (done, total) => progress.push([done, total]));
});

test('layers: all of a small model, nine of a large one', () => {
  expect(studyLayers(3)).toEqual([0, 1, 2, 3]);
  expect(studyLayers(28)).toEqual([0, 4, 7, 11, 14, 18, 21, 25, 28]);
});

test('features: each layer three ways, earlier means beside the last token of the last layer, and further ones once', () => {
  const name = (spec: FeatureSpec) => spec.map(({ layer, pooling }) => `${layer}.${pooling}`).join('+');
  const further: FeatureSpec[] = [informative, [...informative, ...noise]];
  expect(studyFeatures([0, 1], further).map(name)).toEqual([
    '0.mean',
    '0.last',
    '0.mean+0.last',
    '1.mean',
    '1.last',
    '1.mean+1.last',
    '0.mean+1.last',
    '1.mean+2.last',
  ]);
});

test('numbers of labels: below what there is, with fifteen of the rarer class, and all', () => {
  expect(studyCounts(1213, 0.15)).toEqual([250, 500, 1000, 1213]);
  expect(studyCounts(1213, 0.04)).toEqual([500, 1000, 1213]);
  expect(studyCounts(250, 0.5)).toEqual([250]);
});

test('beginnings of a nested order keep the share in band, follow from the seed, and hold each other', () => {
  const inBand = Array.from({ length: 100 }, (_, row) => row % 5 === 0);
  const rows = inBand.map((_, row) => row).filter((row) => row >= 20);
  const order = nestedOrder(rows, inBand, 3);
  expect(order.toSorted((a, b) => a - b)).toEqual(rows);
  // A fifth is in band: of the first ten rows two, of the first forty eight.
  expect([10, 40].map((size) => order.slice(0, size).filter((row) => inBand[row]).length)).toEqual([2, 8]);
  expect(nestedOrder(rows, inBand, 3)).toEqual(order);
  expect(nestedOrder(rows, inBand, 4)).not.toEqual(order);
});

test('the difference of two log losses and its normal interval', () => {
  // In band with logits 0 and ln 3: losses ln 2 and ln 4/3; out of band with logits 0 both: no difference.
  const { value, interval } = lossDifference([true, false], [0, 0], [Math.log(3), 0]);
  const half = (Math.log(2) - Math.log(4 / 3)) / 2;
  expect(value).toBeCloseTo(half, 12);
  // Deviations from the mean are ± half, so the standard error is half / √2.
  expect(interval[0]).toBeCloseTo(half - (1.96 * half) / Math.SQRT2, 12);
  expect(interval[1]).toBeCloseTo(half + (1.96 * half) / Math.SQRT2, 12);
});

describe('a study', () => {
  test('has a row for each candidate, head and number of labels, best first, beside the baselines', () => {
    expect(study.rows).toHaveLength(2 * (2 * 3 + 3 + 3));
    for (const labels of settings.labelCounts) {
      const rows = study.rows.filter((row) => row.labels === labels && row.kind === 'probe');
      expect(rows.map(({ validationLoss }) => validationLoss)).toEqual(
        rows.map(({ validationLoss }) => validationLoss).toSorted((a, b) => a - b),
      );
      expect(rows[0]!.behind).toEqual({ value: 0, interval: [0, 0] });
      expect(rows[1]!.behind.value).toBeCloseTo(rows[1]!.validationLoss - rows[0]!.validationLoss, 10);
    }
    expect(study.tasks).toEqual({ train: 240, validation: 80, test: 80 });
  });

  test('chooses the features that know, and what it chose does better from more labels than length does', () => {
    const last = study.curve.at(-1)!;
    expect(study.curve.map(({ labels }) => labels)).toEqual([120, 320]);
    expect(last.features).toEqual(informative);
    expect(last.test.auroc.value).toBeGreaterThan(0.7);
    expect(last.over.length.value).toBeCloseTo(last.test.auroc.value - 0.5, 10);
    expect(last.over.length.interval[0]).toBeGreaterThan(0);
  });

  test('fewer labels are drawn three times, all of them once', () => {
    expect(study.curve.map(({ otherDraws }) => otherDraws.length)).toEqual([2, 0]);
  });

  test('reports what training reports: the same split, fit and measure', async () => {
    const { head, features } = study.curve.at(-1)!;
    const { members } = await trainProbes(input, {
      head,
      features: [features],
      l2: settings.l2,
      validationShare: 0.2,
      testShare: 0.2,
      members: 1,
      folds: 2,
    });
    expect(members[0]!.card.heldOut).toEqual(study.curve.at(-1)!.test);
  });

  test('never reads test labels to choose: with all of them false the same is chosen, and does badly', async () => {
    const poisoned = tasks.map((task, row) =>
      parts[row] === 'test' ? { ...task, passes: isInBand(task.passes, PLANTED_BAND) ? PLANTED_ATTEMPTS : 1 } : task,
    );
    const misled = await studyProbes({ ...input, tasks: poisoned }, parts, settings);
    expect(misled.rows).toEqual(study.rows);
    const chosen = ({ curve }: ProbeStudy) => curve.map(({ features, head, l2 }) => ({ features, head, l2 }));
    expect(chosen(misled)).toEqual(chosen(study));
    expect(misled.curve.at(-1)!.test.auroc.value).toBeCloseTo(1 - study.curve.at(-1)!.test.auroc.value, 10);
  });

  test('measures kinds of task apart: what only tells one kind from another is nothing within them', async () => {
    // The kind is the label: within a kind there is nothing left to rank.
    const kinds = tasks.map((task) => ({ ...task, type: isInBand(task.passes, PLANTED_BAND) ? 'useful' : 'other' }));
    const { curve } = await studyProbes({ ...input, tasks: kinds }, parts, { ...settings, labelCounts: [320] });
    const { useful, other } = curve[0]!.byType;
    expect(useful).toEqual({ tasks: useful!.inBand, inBand: useful!.inBand, auroc: null });
    expect(other).toMatchObject({ inBand: 0, auroc: null });
    expect(useful!.tasks + other!.tasks).toBe(80);
    // One kind alone is the whole test part.
    expect(study.curve.at(-1)!.byType['']).toMatchObject({ tasks: 80, auroc: study.curve.at(-1)!.test.auroc });
  });

  test('progress is counted in labels that are fitted, and ends at its total', () => {
    // Two candidates in each draw, of which 120 labels have three and 320 one, and two baselines.
    const total = 120 * (2 * 3 + 2) + 320 * (2 * 1 + 2);
    expect(progress.at(-1)).toEqual([total, total]);
  });

  test('needs both classes among the labels of every number', async () => {
    const few = studyProbes(input, parts, { ...settings, labelCounts: [12, 320] });
    await expect(few).rejects.toThrow(RunError);
    await expect(few).rejects.toThrow(
      /^of 12 labels \d in band and \d out of it are there to learn from, a study needs at least 8 of each: /,
    );
  });
});
