import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PLANTED_ATTEMPTS, PLANTED_BAND, plantedTasks, standInReference } from '../../tests/planted-tasks.js';
import { countFalsePositives, fitAuxiliaryProbe } from './auxiliary.js';
import { PooledStates, tokenSequences } from './features.js';
import type { ReferenceModel } from './features.js';
import { fitHead } from './fit.js';
import { standardisationOf } from './matrix.js';
import { scoreTexts } from './probe.js';
import { readProbeNumbers, writeProbeNumbers } from './probe-file.js';
import { trainProbes } from './train-probes.js';

/** It knows of each text the shares of `a`, which the labels teach, and of `z`, which no labelled task holds. */
const reference: ReferenceModel = {
  ...standInReference,
  hiddenStates: async ({ sequences, layers }) => {
    const share = (sequence: readonly number[], token: number) =>
      sequence.filter((other) => other === token).length / sequence.length;
    const data = sequences.flatMap((sequence) => [share(sequence, 1), share(sequence, 26), 0]);
    return new Map(layers.map((layer) => [layer, { shape: [sequences.length, 1, 3], data: Float32Array.from(data) }]));
  },
};
const labels = plantedTasks(200);
const { members } = await trainProbes(
  {
    reference,
    tasks: labels,
    k: PLANTED_ATTEMPTS,
    band: PLANTED_BAND,
    seed: 5,
    domain: { types: ['code_o'], notation: 'doctest' },
    versions: {},
  },
  {
    head: 'counts',
    features: [[{ layer: 1, pooling: 'mean' }]],
    l2: [0.01],
    validationShare: 0.2,
    testShare: 0.2,
    members: 1,
    folds: 5,
  },
);
const { probe: member, card } = members[0]!;
const [memberLogits] = await scoreTexts(
  reference,
  [member],
  labels.map(({ text }) => text),
);
/** Tasks that the member takes for useful, disguised: half of their other letters are `z`, and the solver never passes them. */
const mined = labels
  .filter((_, i) => memberLogits![i]! > member.scale.mean)
  .map(({ id, text }) => ({ id: `${id} z`, text: text.replaceAll(/[b-h]/g, (l) => (l < 'e' ? 'z' : l)), passes: 0 }));

const mean = (values: ArrayLike<number>) => Array.from(values).reduce((a, b) => a + b, 0) / values.length;
const standardised = async (probe: typeof member, some: readonly { readonly text: string }[]) => {
  const [logits] = await scoreTexts(
    reference,
    [probe],
    some.map(({ text }) => text),
  );
  return logits!.map((logit) => (logit - probe.scale.mean) / probe.scale.sd);
};

test('what was mined out of band earns less than it did, and its features are those of the member', async () => {
  const auxiliary = await fitAuxiliaryProbe(reference, member, card.l2, labels, mined);
  expect(auxiliary.spec).toEqual(member.spec);
  expect(mined.length).toBeGreaterThan(30);
  expect(mean(await standardised(auxiliary, mined))).toBeLessThan(mean(await standardised(member, mined)) - 0.5);
});

test('its logits are scaled on the labels, whatever was mined', async () => {
  const auxiliary = await fitAuxiliaryProbe(reference, member, card.l2, labels, mined);
  const own = await standardised(auxiliary, labels);
  expect(mean(own)).toBeCloseTo(0, 5);
  expect(mean(own.map((value) => value ** 2))).toBeCloseTo(1, 5);
});

test('it is the member’s head at the member’s penalty, fitted on the labels and what was mined; a text is one label', async () => {
  const tasks = [...labels, ...mined];
  const texts = tasks.map(({ text }) => text);
  const states = await PooledStates.extract(reference, tokenSequences(reference, texts), [member.spec]);
  const features = states.matrix(member.spec);
  const { kind, k, band } = member.head;
  const problem = { kind, k, band, counts: tasks.map(({ passes }) => passes) };
  const expected = await fitHead(problem, features, standardisationOf(features), 0.02);
  expect((await fitAuxiliaryProbe(reference, member, 0.02, labels, mined)).head).toEqual(expected);
  const twice = [...labels, ...labels.map((task) => ({ ...task, passes: 0 }))];
  expect((await fitAuxiliaryProbe(reference, member, 0.02, twice, mined)).head).toEqual(expected);
});

test('its numbers come back from their file as they were', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'propel-auxiliary-'));
  try {
    const auxiliary = await fitAuxiliaryProbe(reference, member, card.l2, labels, mined);
    const path = join(folder, 'auxiliary.safetensors');
    writeProbeNumbers(path, auxiliary);
    expect(readProbeNumbers(path, card)).toEqual(auxiliary);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('false positives are the mined tasks out of band', () => {
  const passes = [0, 1, 2, 3, 4].map((count) => ({ id: '', text: '', passes: count }));
  expect(countFalsePositives(passes, member)).toBe(3);
});
