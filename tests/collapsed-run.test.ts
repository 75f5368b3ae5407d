/** Arms whose training collapses: what the run says, which checkpoint it measures, and that kills around the stop change nothing. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ArmResult, Results } from '../src/report/results.js';
import { RunStore } from '../src/store/store.js';
import { writeCheckpoint } from '../src/lm/checkpoint.js';
import { expectSameAfterKills, runsFolder, runWhole } from './killed-run.js';
import type { WholeRun } from './killed-run.js';
import { propelIn, sets } from './propel-process.js';
import { addTokenizer, MICRO_WORLD_VOCABULARY, randomWeights, TINY_LLAMA } from './tiny-checkpoint.js';

const KILLS = 8;
const KL_STOP = 0.5;
const NO_SIGNAL_STOP = 3;
const STEPS = 12;
const folder = runsFolder();
afterAll(() => rmSync(folder, { recursive: true }));

/** Arms without labels: one that runs away from its start, one whose generator has learnt nothing and writes nothing valid. */
function settings(untaught: string): string[] {
  return sets({
    'domain.validity.distinctOutputs': null,
    'policy.maxNewTokens': 40,
    'train.steps': STEPS,
    'train.batch': 16,
    'train.checkpointEvery': 2,
    'train.kl': 0,
    'train.klStop': KL_STOP,
    'train.noSignalStop': NO_SIGNAL_STOP,
    arms: {
      base: { reward: 'none' },
      runaway: { reward: 'random', train: { learningRate: 0.006 } },
      mute: { reward: 'valid', policy: untaught },
      steady: { reward: 'valid', train: { steps: 2 } },
    },
    'evaluate.generations': 16,
    'evaluate.batch': 16,
    'evaluate.rescoreEvery': 0,
  });
}

describe('arms whose training collapses', () => {
  let whole: WholeRun;
  let args: string[];
  let store: RunStore;
  let results: Results;
  const arm = (name: string): ArmResult => results.arms.find((one) => one.name === name)!;

  beforeAll(async () => {
    const untaught = join(folder, 'untaught');
    const config = { ...TINY_LLAMA, vocabulary: MICRO_WORLD_VOCABULARY, maxPositions: 96 };
    writeCheckpoint(untaught, config, randomWeights(config, 1), { bos: 1, eos: 2, pad: 0 });
    addTokenizer(untaught);
    args = settings(untaught);
    whole = await runWhole(join(folder, 'whole'), args);
    store = RunStore.read(whole.folder);
    results = JSON.parse(readFileSync(join(whole.folder, 'results.json'), 'utf8')) as Results;
  }, 300_000);
  afterAll(() => store.close());

  it('too far from the start: the checkpoint before it showed is measured', () => {
    const { training, klPerSequence } = arm('runaway');
    const steps = store.steps('runaway');
    const last = steps.at(-1)!;
    expect(steps.length).toBeLessThan(STEPS);
    expect(steps.map((row) => row.klPerSequence > KL_STOP)).toEqual(steps.map((row) => row === last));
    expect(training).toEqual({
      status: 'collapsed',
      reason: `KL of ${last.klPerSequence.toFixed(2)} nats a sequence, above ${KL_STOP}`,
      steps: last.step,
      evaluatedStep: store.checkpoints('runaway').findLast(({ step }) => step + 1 < last.step)?.step ?? 0,
    });
    expect(training!.evaluatedStep).toBeGreaterThan(0);
    expect(klPerSequence).toBe(steps[training!.evaluatedStep]!.klPerSequence);
    expect(klPerSequence).toBeLessThanOrEqual(KL_STOP);
  });

  it('nothing valid: it stops after so many steps, and the untrained generator is measured', () => {
    expect(arm('mute').training).toEqual({
      status: 'collapsed',
      reason: `no valid task in steps 1 to ${NO_SIGNAL_STOP}, so there was nothing to learn from`,
      steps: NO_SIGNAL_STOP,
      evaluatedStep: 0,
    });
  });

  it('an arm beside them is as ever', () => {
    expect(arm('steady').training).toEqual({ status: 'finished', reason: null, steps: 2, evaluatedStep: 2 });
    expect(arm('base').training).toBeNull();
  });

  it('table, report, results and standard error say so, and the exit code is 0', () => {
    const { steps, evaluatedStep } = arm('runaway').training!;
    expect(results.warnings).toEqual([
      expect.stringMatching(/^arm runaway: its training collapsed at step \d+ \(KL of .* above 0\.5\); measured is /),
      expect.stringMatching(
        /^arm mute: its training collapsed at step 3 \(no valid task in steps 1 to 3, .*\); measured is the generator as it was/,
      ),
      expect.stringMatching(/^arm mute: none of its 16 fresh generations is valid: \d+ cut off/),
    ]);
    const { code, stdout, stderr } = propelIn(folder, ['report', whole.folder]);
    expect(code).toBe(0);
    expect(stderr).toBe(results.warnings.map((warning) => `warning: ${warning}\n`).join(''));
    expect(stdout).toContain(`collapsed at ${steps}, measured at ${evaluatedStep}`);
    expect(stdout).toContain(`collapsed at ${NO_SIGNAL_STOP}, measured at 0`);
    const html = readFileSync(join(whole.folder, 'report.html'), 'utf8');
    for (const warning of results.warnings) expect(html).toContain(`<li>${warning}</li>`);
  });

  it('a phase says so too, and what came instead of tasks', () => {
    const { code, stderr } = propelIn(folder, ['evaluate', '--json', '--fresh', '--out', whole.folder, ...args]);
    expect(code).toBe(0);
    expect(stderr).toMatch(/^evaluate mute: 0 of 16 in band, none valid: \d+ cut off/m);
    expect(stderr).toMatch(/^warning: arm runaway: its training collapsed/m);
    const sample = propelIn(folder, ['sample', whole.folder, '--arm', 'mute', '-n', '3', '--jsonl']);
    expect({ code: sample.code, stdout: sample.stdout }).toEqual({ code: 0, stdout: '' });
    expect(sample.stderr).toMatch(/^warning: none of 3 generations is valid\n {2}3 of 3 \(100%\) .*\n {6}wrote {2}"/m);
    const trained = propelIn(folder, ['train-generator', '--json', '--out', whole.folder, ...args]);
    const { arms } = JSON.parse(trained.stdout) as { arms: { arm: string; checkpoint: string | null }[] };
    expect(arms.find(({ arm: name }) => name === 'mute')!.checkpoint).toBeNull();
    expect(trained.stderr).toMatch(/^warning: arm mute: its training collapsed at step 3 /m);
  });

  it('the last checkpoint is measured where the setting asks for it', () => {
    const last = join(folder, 'last');
    const again = propelIn(folder, [
      'run',
      '--json',
      '--out',
      last,
      ...args,
      ...sets({ 'evaluate.checkpoint': 'last' }),
    ]);
    expect(again.code).toBe(0);
    const { arms } = JSON.parse(again.stdout) as Results;
    const { training } = arms.find(({ name }) => name === 'runaway')!;
    expect(training).toEqual({ ...arm('runaway').training, evaluatedStep: arm('runaway').training!.steps });
    const texts = (from: RunStore) =>
      from.tasks({ phase: 'evaluate', arm: 'runaway' }).map(({ completion }) => completion);
    const other = RunStore.read(last);
    expect(texts(other)).not.toEqual(texts(store));
    other.close();
  }, 300_000);

  it(`ends with the same rows and results after ${KILLS} kills`, async () => {
    await expectSameAfterKills(whole, join(folder, 'killed'), args, KILLS);
  }, 900_000);
});
