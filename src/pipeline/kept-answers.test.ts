import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { KeptResponse } from '../solver/solver.js';
import { NO_USAGE } from '../solver/usage.js';
import { RunStore } from '../store/store.js';
import { KeptAnswers, type AskedBatch } from './kept-answers.js';
import { solverSchema, type SolverConfig } from './solver-config.js';

let folder: string;
let store: RunStore;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'propel-kept-'));
  store = RunStore.open(folder);
});

afterEach(() => {
  store.close();
  rmSync(folder, { recursive: true });
});

const SOLVER = solverSchema.parse({ endpoint: 'http://localhost/v1', model: 'm' });
const BATCH: AskedBatch = { key: { phase: 'label', arm: '', batch: 3 }, questions: ['a', 'a', 'b'], k: 2, seed: 5 };

const response = (round: number, promptTokens: number): KeptResponse => ({
  round,
  attempts: [{ answer: `of ${round}`, status: 'answered', seed: 9, draw: 0, place: round }],
  usage: { ...NO_USAGE, requests: 1, promptTokens },
});

test('a response is there for the next process, under its question and place, with what it used', () => {
  const before = new KeptAnswers(store, SOLVER, BATCH);
  expect(before.usage).toEqual(NO_USAGE);
  // Asked once more, the second and third question are the first and second of their call.
  before.keeperOf([1, 2]).keep(0, response(0, 7));
  before.keeperOf([1, 2]).keep(0, response(1, 4));
  expect(before.keeperOf([1]).kept(0)).toHaveLength(2);
  // What this process asked is in its account already.
  expect(before.usage).toEqual(NO_USAGE);

  const after = new KeptAnswers(store, SOLVER, BATCH);
  const keeper = after.keeperOf([0, 1, 2]);
  expect([0, 1, 2].map((question) => keeper.kept(question))).toEqual([[], [response(0, 7), response(1, 4)], []]);
  expect(after.usage).toMatchObject({ requests: 2, promptTokens: 11 });
});

test('what answers follow from must be the same; how they are asked for need not', () => {
  new KeptAnswers(store, SOLVER, BATCH).keeperOf([0]).keep(0, response(0, 7));
  const kept = (solver: Partial<SolverConfig>, batch: Partial<AskedBatch> = {}): number =>
    new KeptAnswers(store, { ...SOLVER, ...solver }, { ...BATCH, ...batch }).usage.requests;
  const asOften = { concurrency: 1, timeoutSeconds: 1, retries: 0, samples: 'single', prices: null } as const;
  expect(kept({ ...asOften, apiKeyEnv: 'KEY' })).toBe(1);
  expect(kept({ model: 'other' })).toBe(0);
  expect(kept({ endpoint: 'http://elsewhere/v1' })).toBe(0);
  expect(kept({ temperature: 0.5 })).toBe(0);
  expect(kept({ body: { top_p: 0.9 } })).toBe(0);
  expect(kept({}, { seed: 6 })).toBe(0);
  expect(kept({}, { k: 3 })).toBe(0);
  expect(kept({}, { questions: ['c', 'a', 'b'] })).toBe(0);
  expect(kept({}, { key: { ...BATCH.key, batch: 4 } })).toBe(0);
});
