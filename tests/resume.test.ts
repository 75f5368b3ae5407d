/** Killed at random moments and started again, a run ends with the same rows and results as one that was left alone. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { expectSameAfterKills, runsFolder, runWhole } from './killed-run.js';
import type { WholeRun } from './killed-run.js';
import { sets } from './propel-process.js';

const KILLS = 20;
/** A run of every phase that lasts some seconds. */
const SHORT = sets({
  band: { min: 2, max: 4, of: 4 },
  'label.tasks': 80,
  'label.batch': 24,
  'train.steps': 6,
  'train.batch': 16,
  'train.checkpointEvery': 2,
  'evaluate.generations': 40,
  'evaluate.batch': 20,
  'evaluate.rescoreEvery': 3,
});

const folder = runsFolder();
afterAll(() => rmSync(folder, { recursive: true }));

describe('a run that is killed and started again', () => {
  let whole: WholeRun;

  beforeAll(async () => {
    whole = await runWhole(join(folder, 'whole'), SHORT);
  }, 300_000);

  it(`ends with the same rows and results after ${KILLS} kills`, async () => {
    await expectSameAfterKills(whole, join(folder, 'killed'), SHORT, KILLS);
  }, 900_000);
});
