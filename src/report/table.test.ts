import { expect, test } from 'vitest';
import { summariseEvaluation } from '../metrics/frontier.js';
import { count, decimal, duration, percent, percentRange } from './format.js';
import { type ArmResult, armResult } from './results.js';
import { armsTable } from './table.js';
import { armWarnings } from './warnings.js';

const summary = summariseEvaluation(
  [
    { type: 'code_o', valid: true, passes: 2, text: 'a b c d', topic: 'slicing' },
    { type: 'code_o', valid: true, passes: 8, text: 'a b c e', topic: 'slicing' },
    { type: 'code_o', valid: false, passes: null, text: 'a', topic: 'unparsable' },
    { type: 'code_o', valid: false, passes: null, text: 'b', topic: 'unparsable' },
  ],
  { min: 1, max: 3, of: 8 },
);

const context = {
  seed: 7,
  training: null,
  seenBefore: { valid: 1, frontier: 0 },
  diversity: {
    texts: 2,
    duplicates: null,
    novelty: null,
    effectiveTopics: null,
    coverage: null,
    structure: null,
  },
  byType: {},
  klPerSequence: 1.5,
  clippedShare: 0,
  claimedInBand: 0.5,
  measuredInBand: 0.5,
  solverTrials: { offline: 12_000, inLoop: 0 },
  seconds: { label: 40, evaluate: 30.5 },
};
const base: ArmResult = armResult(summary, { ...context, name: 'base' });

test("an arm's entry in results.json has these fields, in this order", () => {
  expect(Object.keys(base)).toEqual([
    'name',
    'seed',
    'training',
    'n',
    'unique',
    'valid',
    'ungraded',
    'frontier',
    'frontierRate',
    'frontierInterval',
    'uniqueFrontierRate',
    'seenBefore',
    'inBandOfValid',
    'validity',
    'validityInterval',
    'passCounts',
    'selfBleu3',
    'distinct3',
    'topTopic',
    'diversity',
    'byType',
    'klPerSequence',
    'clippedShare',
    'claimedInBand',
    'measuredInBand',
    'solverTrials',
    'seconds',
  ]);
  expect(base).toMatchObject({
    n: 4,
    unique: 4,
    valid: 2,
    frontier: 1,
    frontierRate: 0.25,
    solverTrials: { inLoop: 0 },
  });
});

test('an arm a row where the terminal is wide enough', () => {
  const lines = armsTable([base, { ...base, name: 'propel-wco', topTopic: null, selfBleu3: null }], 200).split('\n');
  // Self-BLEU-3 is (3/4 · 2/3 · 1/2)^(1/3); of the trigrams abc, bcd, abc, bce three are distinct.
  expect(lines).toEqual([
    'arm         validity    frontier (95%)      unique (95%)  in band/valid  Self-BLEU-3  Distinct-3     top topic      trials        time',
    '─'.repeat(134),
    'base           50.0%  25.0% (4.6–69.9)  25.0% (4.6–69.9)          50.0%        0.630       0.750  slicing 100%  12,000 + 0  1 min 11 s',
    'propel-wco     50.0%  25.0% (4.6–69.9)  25.0% (4.6–69.9)          50.0%            –       0.750             –  12,000 + 0  1 min 11 s',
    '',
  ]);
});

test('an arm a column where it is not', () => {
  const lines = armsTable([base, { ...base, name: 'propel-wco' }], 80).split('\n');
  expect(lines[0]).toBe('arm                         base        propel-wco');
  expect(lines[2]).toBe('validity                   50.0%             50.0%');
  expect(lines[3]).toBe('frontier (95%)  25.0% (4.6–69.9)  25.0% (4.6–69.9)');
  expect(lines).toHaveLength(12);
});

test('counts ungraded tasks where there are any, and rates over the others', () => {
  const lossy = { ...base, name: 'lossy', ungraded: 1, frontierRate: 1 / 3, uniqueFrontierRate: 1 / 3 };
  const [headings, , own, other] = armsTable([base, lossy], 200).split('\n');
  expect(headings).toMatch(/ time {2}ungraded$/);
  expect(own).toMatch(/ 25\.0% \(4\.6–69\.9\) .* 0$/);
  // One of three: Wilson's interval.
  expect(other).toMatch(/ 33\.3% \(6\.1–79\.2\) {2}.* 1$/);
});

test('says which training collapsed, and what is measured of it, where one has', () => {
  const training = { status: 'finished', reason: null, steps: 40, evaluatedStep: 40 } as const;
  const collapsed = {
    status: 'collapsed',
    reason: 'KL of 9.00 nats a sequence, above 8',
    steps: 23,
    evaluatedStep: 20,
  } as const;
  expect(armsTable([base, { ...base, training }], 200)).not.toContain('training');
  const arms = [base, { ...base, training }, { ...base, training: collapsed }];
  const [headings, , ...rows] = armsTable(arms, 200).split('\n');
  expect(headings).toMatch(/ training$/);
  expect(rows.map((row) => row.split(/ {2,}/).at(-1))).toEqual([
    '–',
    '40 steps',
    'collapsed at 23, measured at 20',
    '',
  ]);
});

test('warnings tell what a figure does not', () => {
  const collapsed = { status: 'collapsed', reason: 'KL of 9.00 nats a sequence, above 8', steps: 23 } as const;
  const warnings = (evaluatedStep: number) =>
    armWarnings({ ...base, training: { ...collapsed, evaluatedStep } }, '2 unparsable');
  const said = 'arm base: its training collapsed at step 23 (KL of 9.00 nats a sequence, above 8); measured is';
  expect(warnings(20)).toEqual([`${said} the checkpoint of step 20, the last that was trusted`]);
  expect(warnings(23)).toEqual([`${said} the checkpoint of that step, as evaluate.checkpoint asks`]);
  expect(warnings(0)).toEqual([`${said} the generator as it was before training, no checkpoint being trusted`]);
  expect(armWarnings({ ...base, valid: 0 }, '4 cut off')).toEqual([
    'arm base: none of its 4 fresh generations is valid: 4 cut off',
  ]);
  expect(armWarnings(base, '2 unparsable')).toEqual([]);
});

test('numbers as people read them', () => {
  expect(percent(0.2651)).toBe('26.5%');
  expect(percentRange([0.236, 0.297])).toBe('23.6–29.7');
  expect(decimal(-0.5, 2)).toBe('−0.50');
  expect(decimal(null, 2)).toBe('–');
  expect([0, 999, 1000, 1_234_567].map(count)).toEqual(['0', '999', '1,000', '1,234,567']);
  expect([8.24, 9.97, 59.6, 102, 7199, 7260].map(duration)).toEqual([
    '8.2 s',
    '10 s',
    '1 min 0 s',
    '1 min 42 s',
    '1 h 59 min',
    '2 h 1 min',
  ]);
});
