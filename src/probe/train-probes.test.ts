import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RunError, UserError } from '../errors.js';
import { auroc } from '../metrics/probe-metrics.js';
import { deriveSeed } from '../metrics/random.js';
import { PLANTED_ATTEMPTS, PLANTED_BAND, plantedTasks, standInReference } from '../../tests/planted-tasks.js';
import type { FeatureSpec } from './features.js';
import { compareWithBaselines } from './held-out.js';
import { bandLogitsOfTexts, scoreTexts } from './probe.js';
import { loadProbe, saveProbe } from './probe-file.js';
import { trainProbes } from './train-probes.js';
import type { ProbeInput, ProbeSettings, TrainedProbes } from './train-probes.js';
import { KeptWork } from '../store/kept-work.js';

const K = PLANTED_ATTEMPTS;
const band = PLANTED_BAND;
const reference = standInReference;

const informative: FeatureSpec = [{ layer: 1, pooling: 'mean' }];
const noise: FeatureSpec = [{ layer: 2, pooling: 'last' }];
const input: ProbeInput = {
  reference,
  tasks: plantedTasks(400),
  k: K,
  band,
  seed: 5,
  domain: { types: ['code_o'], notation: 'doctest' },
  versions: { propel: '1.2.3' },
};
const settings: ProbeSettings = {
  head: 'counts',
  features: [noise, informative],
  l2: [0.01, 0.1],
  validationShare: 0.2,
  testShare: 0.2,
  members: 2,
  folds: 5,
};

let folder: string;
let trained: TrainedProbes;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'propel-probe-'));
  trained = await trainProbes(input, settings);
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('training', () => {
  test('validation finds the features that know, and they rank the held-out tasks', () => {
    const { card } = trained.members[0]!;
    expect(card.features).toEqual(informative);
    expect(card.candidates.map(({ features }) => features)).toEqual([informative, noise]);
    expect(card.heldOut.auroc.value).toBeGreaterThan(0.7);
    const [low, high] = card.heldOut.auroc.interval;
    expect(low).toBeLessThan(card.heldOut.auroc.value);
    expect(high).toBeGreaterThan(card.heldOut.auroc.value);
    expect(card.heldOut.calibrationError.value).toBeLessThan(0.2);
    expect(card.tasks).toEqual({ train: 240, validation: 80, test: 80 });
  });

  test('a text that is labelled twice is one task: it cannot stand on both sides of a split', async () => {
    const twice = input.tasks.map((task) => ({ ...task, id: `${task.id} again`, passes: K - task.passes }));
    const again = await trainProbes({ ...input, tasks: [...input.tasks, ...twice] }, settings);
    expect(again.outOfFold).toEqual(trained.outOfFold);
    expect(again.members.map(({ card }) => card)).toEqual(trained.members.map(({ card }) => card));
  });

  /** Another count of passes on the same side of the band, so that every split stays as it is. */
  const otherCount = (passes: number) => [3, 2, 1, 4, 0][passes]!;

  test('what is held out has no part in a probe: other outcomes there change nothing but the figures', async () => {
    const { probe, parts, card } = trained.members[0]!;
    const tasks = input.tasks.map((task, row) =>
      parts[row] === 'test' ? { ...task, passes: otherCount(task.passes) } : task,
    );
    expect(tasks).not.toEqual(input.tasks);
    const again = (await trainProbes({ ...input, tasks }, { ...settings, members: 1 })).members[0]!;
    expect(again.parts).toEqual(parts);
    expect(again.probe.head).toEqual(probe.head);
    expect(again.card.baselines).toEqual(card.baselines);
    // What trains and what chooses do have a part: the choice is fitted to both.
    for (const part of ['train', 'validation']) {
      const learnt = input.tasks.map((task, row) =>
        parts[row] === part ? { ...task, passes: otherCount(task.passes) } : task,
      );
      const other = (await trainProbes({ ...input, tasks: learnt }, { ...settings, members: 1 })).members[0]!;
      expect(other.probe.head.weights).not.toEqual(probe.head.weights);
    }
  });

  test('probes that read other features are scored together as each is alone', async () => {
    const probes = trained.members.map(({ probe }) => probe);
    const texts = input.tasks.slice(0, 5).map(({ text }) => text);
    const alone = await Promise.all(probes.map(async (probe) => (await scoreTexts(reference, [probe], texts))[0]!));
    expect(probes[0]!.spec).not.toEqual(probes[1]!.spec);
    expect(await scoreTexts(reference, probes, texts)).toEqual(alone);
    const byText = texts.map((_, i) => alone.map((own) => own[i]!));
    expect(await bandLogitsOfTexts(reference, probes, texts)).toEqual(byText);
  });

  test('a task has no part in its own out-of-fold prediction', async () => {
    const changed = 7;
    const tasks = input.tasks.map((task, row) =>
      row === changed ? { ...task, passes: otherCount(task.passes) } : task,
    );
    const { outOfFold } = await trainProbes({ ...input, tasks }, { ...settings, members: 1 });
    expect(outOfFold[changed]).toEqual(trained.outOfFold[changed]);
    expect(outOfFold).not.toEqual(trained.outOfFold);
  });

  test('a baseline has the better of the head that is asked for and a plain logistic', async () => {
    const losses = async (head: 'counts' | 'ordinal' | 'band') => {
      const { members } = await trainProbes(input, { ...settings, head, members: 1 });
      const { length, ngram } = members[0]!.card.baselines;
      return [length.validationLoss, ngram.validationLoss] as const;
    };
    const plain = await losses('band');
    for (const head of ['counts', 'ordinal'] as const) {
      const own = await losses(head);
      own.forEach((loss, i) => expect(loss).toBeLessThanOrEqual(plain[i]!));
    }
  });

  test('the length of texts of equal length says nothing', () => {
    expect(trained.members[0]!.card.baselines.length.heldOut.auroc.value).toBe(0.5);
  });

  test('members differ: other features, another split, a training part drawn again', () => {
    const [first, second] = trained.members;
    expect(second!.card.features).toEqual(noise);
    expect(second!.parts).not.toEqual(first!.parts);
    expect([first!.card.resampled, second!.card.resampled]).toEqual([false, true]);
  });

  test('the card of a probe that knows nothing warns of it, that of one that does says nothing', () => {
    const [first, second] = trained.members.map(({ card }) => card);
    expect(second!.heldOut.auroc.interval[0]).toBeLessThan(0.5);
    expect(second!.warnings![0]).toMatch(/^is no better than chance: AUROC 0\.\d+ \(0\.\d+–0\.\d+\) on 80 labels$/);
    const below = first!.baselines.ngram.heldOut.auroc.value > first!.heldOut.auroc.value;
    expect(first!.warnings ?? []).toHaveLength(below ? 1 : 0);
    expect(first!.warnings?.join() ?? '').not.toContain('chance');
  });

  test('the scale is that of the labelled tasks', async () => {
    const { probe } = trained.members[0]!;
    const [logits] = await scoreTexts(
      reference,
      [probe],
      input.tasks.map(({ text }) => text),
    );
    const mean = logits!.reduce((a, b) => a + b, 0) / logits!.length;
    expect(probe.scale.mean).toBeCloseTo(mean, 6);
    expect(probe.scale.sd).toBeGreaterThan(0);
  });

  test('out-of-fold rows cover every task and compare with the baselines', () => {
    const rows = trained.outOfFold;
    expect(rows.map(({ taskId }) => taskId)).toEqual(input.tasks.map(({ id }) => id));
    const comparison = compareWithBaselines([rows], 1);
    expect(comparison.probe).toBeCloseTo(
      auroc(
        rows.map((r) => r.inBand),
        rows.map((r) => r.probeLogit),
      ),
      12,
    );
    expect(comparison.probe).toBeGreaterThan(0.7);
    expect(comparison.overLength.interval[0]).toBeGreaterThan(0);
    expect(comparison.overLength.aboveZero).toBe(1);
  });

  test('the same seed gives the same probes, another seed others', async () => {
    expect(await trainProbes(input, settings)).toEqual(trained);
    const other = await trainProbes({ ...input, seed: 6 }, { ...settings, members: 1 });
    expect(other.members[0]!.probe.head.weights).not.toEqual(trained.members[0]!.probe.head.weights);
  });

  test('too few tasks in band are refused', async () => {
    const tasks = input.tasks.map((task, i) => ({ ...task, passes: i < 3 ? 1 : 4 }));
    const failure = trainProbes({ ...input, tasks }, settings);
    await expect(failure).rejects.toThrow(RunError);
    await expect(failure).rejects.toThrow(
      '3 of 400 labelled tasks are in band (1 to 2 of 4); a probe needs at least 10 in',
    );
  });

  test('progress ends at its total', async () => {
    const seen: [number, number][] = [];
    await trainProbes(input, { ...settings, l2: [0.1], members: 1, folds: 2 }, (done, total) =>
      seen.push([done, total]),
    );
    expect(seen).toHaveLength(9);
    expect(seen.at(-1)).toEqual([9, 9]);
  });
});

describe('files', () => {
  const texts = ['abc', 'a'.repeat(39), ''];

  test.each(['counts', 'ordinal', 'band'] as const)(
    'a %s probe scores alike, to the bit, after it is saved and loaded',
    async (head) => {
      const { probe, card } = (
        await trainProbes(input, { ...settings, head, features: [informative], l2: [0.1], members: 1, folds: 2 })
      ).members[0]!;
      const { path } = saveProbe(join(folder, head), probe, card);
      const loaded = loadProbe(path, reference);
      expect(loaded.card).toEqual(card);
      expect(loaded.probe.scale).toEqual(probe.scale);
      expect(await scoreTexts(reference, [loaded.probe], texts)).toEqual(await scoreTexts(reference, [probe], texts));
    },
  );

  test('the same probe gives the same bytes', () => {
    const { probe, card } = trained.members[0]!;
    const [once, again] = ['once', 'again'].map((name) => saveProbe(join(folder, name), probe, card));
    expect(once!.sha256).toBe(again!.sha256);
    const text = ['once', 'again'].map((name) => readFileSync(join(folder, name, 'probe-0.json'), 'utf8'));
    expect(text[0]).toBe(text[1]);
  });

  /** A saved probe whose files can be spoilt. */
  function saved(name: string): { path: string; cardFile: string } {
    const { probe, card } = trained.members[0]!;
    const { path } = saveProbe(join(folder, name), probe, card);
    return { path, cardFile: path.replace('.safetensors', '.json') };
  }
  function refusal(path: string, model = reference): string {
    try {
      loadProbe(path, model);
    } catch (error) {
      expect(error).toBeInstanceOf(UserError);
      expect((error as Error).message).not.toContain('\n');
      return (error as Error).message;
    }
    throw new Error('it loaded');
  }

  test('a probe of another model is refused by name', () => {
    const { path } = saved('model');
    expect(refusal(path, { ...reference, folder: '/models/other', hash: '0'.repeat(64) })).toContain(
      'the probe was trained on model stand-in (ffffffffffff), the reference is other (000000000000)',
    );
  });

  test('missing files are named', () => {
    expect(refusal(join(folder, 'absent.safetensors'))).toContain('absent.json cannot be read (ENOENT)');
    const { path } = saved('weights');
    rmSync(path);
    expect(refusal(path)).toContain('probe-0.safetensors cannot be read (ENOENT)');
  });

  test('a card that is cut off, or lacks a field, is refused', () => {
    const { path, cardFile } = saved('card');
    const text = readFileSync(cardFile, 'utf8');
    writeFileSync(cardFile, text.slice(0, 200));
    expect(refusal(path)).toContain('probe-0.json is not valid JSON');
    writeFileSync(cardFile, text.replace('"width"', '"depth"'));
    expect(refusal(path)).toContain("is not a probe's card: width");
  });

  test('weights that are cut off, changed, or of another probe are refused', async () => {
    const { path } = saved('bytes');
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.subarray(0, bytes.length - 4));
    expect(refusal(path)).toContain('the file is cut off');
    const flipped = Buffer.from(bytes);
    flipped[bytes.length - 1]! ^= 1;
    writeFileSync(path, flipped);
    expect(refusal(path)).toContain('is not the file that');
  });
});

test('seeds of members do not depend on how many there are', async () => {
  const alone = await trainProbes(input, { ...settings, members: 1 });
  expect(alone.members[0]).toEqual(trained.members[0]);
  expect(deriveSeed(5, 'probe member', 0)).not.toBe(deriveSeed(5, 'probe member', 1));
});

describe('training that is broken off', () => {
  /** Every pass reads this many texts. */
  const PASS = 100;

  test('goes on where it was, whichever part it was at, and comes to the same numbers', async () => {
    let passes = 0;
    const counted = {
      ...reference,
      hiddenBatches: async (sequences: readonly (readonly number[])[]) =>
        Array.from({ length: Math.ceil(sequences.length / PASS) }, (_, b) =>
          sequences.map((_, i) => i).slice(b * PASS, (b + 1) * PASS),
        ),
      hiddenStates: (request: Parameters<typeof reference.hiddenStates>[0]) => {
        passes += 1;
        return reference.hiddenStates(request);
      },
    };
    const work = new KeptWork(join(folder, 'work'), 'these probes');
    const totals = new Set<number>();
    let starts = 0;
    for (let result: TrainedProbes | undefined; !result;) {
      starts += 1;
      let parts = 0;
      const stopAfterOne = (_: number, total: number): void => {
        totals.add(total);
        // Each start finds all that was done before, and does one part more.
        if (++parts === starts) throw new Error('broken off');
      };
      result = await trainProbes({ ...input, reference: counted, work }, settings, stopAfterOne).catch(
        (error: Error) => {
          expect(error.message).toBe('broken off');
          return undefined;
        },
      );
      if (result) expect(result).toEqual(trained);
    }
    const fits = 3 * (settings.members + settings.folds);
    expect([...totals]).toEqual([fits]);
    // Four passes and the fits, each of them done once.
    expect(passes).toBe(4);
    expect(starts).toBe(4 + fits + 1);
  });
});
