import Database from 'better-sqlite3';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RunError, UserError } from '../errors.js';
import { sha256OfFile, writeFileAtomic } from './files.js';
import { lockRunFolder, RunLockedError } from './lock.js';
import { type BatchKey, type StepRow, type TaskRow, taskId } from './rows.js';
import { RunStore } from './store.js';

let folder: string;
let store: RunStore;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'propel-store-'));
  store = RunStore.open(folder);
});

afterEach(() => {
  store.close();
  rmSync(folder, { recursive: true });
});

function task(key: BatchKey, item: number, fields: Partial<TaskRow> = {}): TaskRow {
  return {
    ...key,
    id: taskId(key, item),
    item,
    type: 'code_o',
    seed: 2 ** 52 + item,
    completion: 'def f(x):\n    return x\n>>> f(1)\n',
    tokens: 20,
    valid: true,
    outcome: 'ok',
    detail: '',
    topic: 'arithmetic',
    structure: { depth: 5, cyclomatic: 1, lines: 2, variables: 0 },
    rendered: 'def f(x):\n    return x\n>>> f(1)\n',
    task: { code: 'def f(x):\n    return x', input: '1' },
    output: '1',
    ...fields,
  };
}

function step(arm: string, index: number, fields: Partial<StepRow> = {}): StepRow {
  return {
    arm,
    step: index,
    rewardMean: 0.25,
    rewardSd: 1,
    validity: 0.5,
    klPerSequence: 0.125,
    gradientNorm: 2,
    loss: -0.5,
    entropy: 0.75,
    clippedShare: 0.0625,
    claimedInBand: 0.3,
    measuredInBand: null,
    solverTrials: 0,
    proposeSeconds: 1,
    checkSeconds: 2,
    scoreSeconds: 3,
    updateSeconds: 4,
    ...fields,
  };
}

const LABEL_BATCH: BatchKey = { phase: 'label', arm: '', batch: 0 };

const MINING = { mined: 1, falsePositives: 1, solverTrials: 1, sha256: '00', elapsedSeconds: 2 };

/** One training batch: a task with a score, and the step. */
function commitStep(arm: string, index: number, seconds = 1): void {
  const key: BatchKey = { phase: 'train-generator', arm, batch: index };
  store.commitBatch(key, seconds, () => {
    store.insertTasks([task(key, 0)]);
    store.insertStepScores([
      { taskId: taskId(key, 0), arm, step: index, logits: { a: 0.5 }, reward: 0.5, advantage: 1 },
    ]);
    store.insertStep(step(arm, index, { updateSeconds: seconds }));
  });
}

describe('rows come back as they went in', () => {
  test('tasks, valid and not, with their JSON, flags and 53-bit seeds', () => {
    const rows = [
      task(LABEL_BATCH, 0),
      task(LABEL_BATCH, 1, { valid: false, outcome: 'unparsable', rendered: null, task: null, output: null }),
    ];
    store.insertTasks(rows);
    expect(store.tasks({ phase: 'label' })).toEqual(rows);
    expect(store.tasks({ phase: 'label', valid: false })).toEqual([rows[1]]);
    expect(store.countTasks({ phase: 'label', arm: '' })).toBe(2);
    expect(store.tasks({ phase: 'evaluate' })).toEqual([]);
  });

  test('attempts: pass, fail and error apart, and errors are no trials', () => {
    store.insertTasks([task(LABEL_BATCH, 0)]);
    const rows = (['pass', 'fail', 'error'] as const).map((verdict, attempt) => ({
      taskId: taskId(LABEL_BATCH, 0),
      attempt,
      seed: attempt === 2 ? null : 2 ** 52 + attempt,
      draw: attempt === 2 ? null : 7,
      answer: String(attempt),
      verdict,
    }));
    store.insertAttempts(rows);
    expect(store.attempts(taskId(LABEL_BATCH, 0))).toEqual(rows);
    expect(store.countTrials('label')).toBe(2);
    expect(store.countTrials('label', '')).toBe(2);
    expect(store.countTrials('label', 'propel')).toBe(0);
  });

  test('labels with their tasks', () => {
    store.insertTasks([task(LABEL_BATCH, 0), task(LABEL_BATCH, 1), task(LABEL_BATCH, 2)]);
    store.insertLabels([
      { taskId: taskId(LABEL_BATCH, 2), passes: 3, k: 8, split: 'test' },
      { taskId: taskId(LABEL_BATCH, 0), passes: 0, k: 8, split: 'train' },
    ]);
    expect(store.labelledTasks({ phase: 'label' })).toEqual([
      { ...task(LABEL_BATCH, 0), passes: 0, k: 8, split: 'train' },
      { ...task(LABEL_BATCH, 2), passes: 3, k: 8, split: 'test' },
    ]);
    expect(store.labelledTasks({ phase: 'label', split: 'test' }).map(({ item }) => item)).toEqual([2]);
  });

  test('probes and evaluations are replaced by name', () => {
    const probe = { name: 'a', card: { auroc: 0.75 }, path: 'probes/a.safetensors', sha256: '00' };
    store.saveProbe({ ...probe, sha256: '11' });
    store.saveProbe(probe);
    expect(store.probes()).toEqual([probe]);
    store.saveEvaluation('base', { n: 1 });
    store.saveEvaluation('base', { n: 2 });
    expect([...store.evaluations()]).toEqual([['base', { n: 2 }]]);
  });

  test('steps and scores', () => {
    commitStep('propel', 1);
    expect(store.steps('propel')).toEqual([step('propel', 1, { updateSeconds: 1 })]);
    expect(store.stepScores('propel', 1)).toMatchObject([{ logits: { a: 0.5 }, reward: 0.5, advantage: 1 }]);
  });

  test('a number that is not one is refused', () => {
    expect(() => store.insertStep(step('propel', 1, { loss: Number.NaN }))).toThrow(
      'NOT NULL constraint failed: steps.loss',
    );
  });

  test('paths are relative to the run folder', () => {
    expect(() => store.insertCheckpoint({ arm: 'a', step: 1, path: '/tmp/a', sha256: '' })).toThrow(
      'relative to the run folder',
    );
  });
});

describe('batches', () => {
  test('rows and mark are one transaction', () => {
    const failing = (): void =>
      store.commitBatch(LABEL_BATCH, 1, () => {
        store.insertTasks([task(LABEL_BATCH, 0)]);
        throw new Error('interrupted');
      });
    expect(failing).toThrow('interrupted');
    expect(store.hasBatch(LABEL_BATCH)).toBe(false);
    expect(store.tasks({ phase: 'label' })).toEqual([]);
  });

  test('a batch is committed once', () => {
    store.commitBatch(LABEL_BATCH, 1, () => {});
    expect(() => store.commitBatch(LABEL_BATCH, 1, () => {})).toThrow('UNIQUE constraint failed');
    expect(store.batches('label', '')).toEqual([0]);
  });

  test('a phase takes the time of its batches and of what lies between', () => {
    store.commitBatch(LABEL_BATCH, 1.5, () => {});
    store.commitBatch({ ...LABEL_BATCH, batch: 1 }, 2, () => {});
    expect(store.phaseFinished('label', '')).toBe(false);
    store.finishPhase('label', '', 0.25);
    expect(store.phaseFinished('label', '')).toBe(true);
    expect(store.secondsOf('label', '')).toBe(3.75);
  });

  test('what was committed is there after a crash', () => {
    store.commitBatch(LABEL_BATCH, 1, () => store.insertTasks([task(LABEL_BATCH, 0)]));
    // A reader sees what a restart would: the write-ahead log, not yet folded into the file.
    const reader = RunStore.read(folder);
    expect(reader.hasBatch(LABEL_BATCH)).toBe(true);
    expect(reader.tasks({ phase: 'label' })).toHaveLength(1);
    reader.close();
  });
});

describe('resuming an arm', () => {
  test('rows beyond the last checkpoint are dropped, other arms stay', () => {
    for (let index = 1; index <= 4; index++) commitStep('propel', index);
    commitStep('propel-wco', 4);
    store.insertCheckpoint({ arm: 'propel', step: 2, path: 'checkpoints/propel-2', sha256: '22' });
    store.insertCheckpoint({ arm: 'propel', step: 4, path: 'checkpoints/propel-4', sha256: '44' });
    store.finishPhase('train-generator', 'propel', 0);

    store.truncateAfter('propel', 2);

    expect(store.lastCheckpoint('propel')).toMatchObject({ step: 2, sha256: '22' });
    expect(store.batches('train-generator', 'propel')).toEqual([1, 2]);
    expect(store.steps('propel').map((row) => row.step)).toEqual([1, 2]);
    expect(store.stepScores('propel').map((row) => row.step)).toEqual([1, 2]);
    expect(store.countTasks({ phase: 'train-generator', arm: 'propel' })).toBe(2);
    expect(store.phaseFinished('train-generator', 'propel')).toBe(false);
    expect(store.steps('propel-wco')).toHaveLength(1);
  });

  test('what was mined of kept tasks goes with its mining, what was mined before stays', () => {
    for (let index = 1; index <= 4; index++) commitStep('propel', index);
    const mine = (index: number): void => {
      const id = taskId({ phase: 'train-generator', arm: 'propel', batch: index }, 0);
      store.insertAttempts([{ taskId: id, attempt: 0, seed: 0, draw: 0, answer: '1', verdict: 'fail' }]);
      store.insertLabels([{ taskId: id, passes: 0, k: 1, split: 'mined' }]);
      const path = `checkpoints/propel/auxiliary-${index}`;
      store.insertMining({ ...MINING, arm: 'propel', step: index, path });
    };
    mine(2);
    const afterTheFirst = store.dumpRows();
    mine(4);
    expect(store.countTrials('train-generator', 'propel')).toBe(2);

    store.truncateAfter('propel', 3);

    expect(store.minings('propel').map((row) => row.step)).toEqual([2]);
    expect(store.countTrials('train-generator', 'propel')).toBe(1);
    commitStep('propel', 4);
    expect(store.dumpRows()).toEqual(afterTheFirst);
  });

  test('a finished arm whose checkpoint is its last step stays finished', () => {
    commitStep('propel', 1);
    store.finishPhase('train-generator', 'propel', 0);
    store.truncateAfter('propel', 1);
    expect(store.phaseFinished('train-generator', 'propel')).toBe(true);
  });

  test('a run that was cut back and done again has the same rows as one that was not', () => {
    for (let index = 1; index <= 3; index++) commitStep('propel', index, 1);
    const uninterrupted = store.dumpRows();
    store.truncateAfter('propel', 1);
    expect(store.dumpRows()).not.toEqual(uninterrupted);
    for (let index = 2; index <= 3; index++) commitStep('propel', index, 7);
    expect(store.dumpRows()).toEqual(uninterrupted);
  });
});

describe('kept answers', () => {
  const kept = (key: BatchKey, question: string, ordinal: number) => ({
    ...key,
    question,
    ordinal,
    response: [ordinal],
  });
  const STEP: BatchKey = { phase: 'train-generator', arm: 'sil', batch: 2 };

  test('come back in the order they came, and go with their batch and those before it', () => {
    store.keepAnswer(kept(STEP, 'b', 0));
    store.keepAnswer(kept(STEP, 'a', 0));
    store.keepAnswer(kept(STEP, 'a', 1));
    store.keepAnswer(kept({ ...STEP, batch: 1 }, 'a', 0));
    store.keepAnswer(kept({ ...STEP, arm: 'other' }, 'a', 0));
    const answers = store.keptAnswers(STEP).map(({ question, response }) => [question, response]);
    expect(answers).toEqual([
      ['a', [0]],
      ['a', [1]],
      ['b', [0]],
    ]);
    store.dropKeptAnswers({ ...STEP, batch: 1 });
    expect(store.keptAnswers({ ...STEP, batch: 1 })).toEqual([]);
    expect(store.keptAnswers(STEP)).toHaveLength(3);
    store.dropKeptAnswers(STEP);
    expect(store.keptAnswers(STEP)).toEqual([]);
    expect(store.keptAnswers({ ...STEP, arm: 'other' })).toHaveLength(1);
  });

  test('stay when training goes back to a checkpoint, and go when a phase starts over', () => {
    const run = { seed: 1, config: {}, versions: {} };
    store.startRun(run);
    store.keepAnswer(kept(STEP, 'a', 0));
    store.truncateAfter('sil', 0);
    expect(store.keptAnswers(STEP)).toHaveLength(1);
    store.restartFrom('train-generator', run, () => 'label');
    expect(store.keptAnswers(STEP)).toEqual([]);
  });
});

describe('ungraded tasks', () => {
  test('are those with a lost attempt, counted once', () => {
    store.insertTasks([0, 1, 2].map((item) => task(LABEL_BATCH, item)));
    const attempt = (item: number, index: number, verdict: 'pass' | 'error') => ({
      taskId: taskId(LABEL_BATCH, item),
      attempt: index,
      seed: 1,
      draw: index,
      answer: '',
      verdict,
    });
    store.insertAttempts([
      attempt(0, 0, 'pass'),
      attempt(1, 0, 'error'),
      attempt(1, 1, 'error'),
      attempt(2, 0, 'pass'),
      attempt(2, 1, 'error'),
    ]);
    expect(store.countUngraded('label')).toBe(2);
    expect(store.countUngraded('label', 'other')).toBe(0);
    expect(store.countUngraded('evaluate')).toBe(0);
  });
});

describe('the dump', () => {
  test('every table, no timings, by key whatever the order of writing', () => {
    commitStep('b', 1);
    commitStep('a', 1);
    const dump = store.dumpRows();
    expect(Object.keys(dump)).toEqual([
      'attempts',
      'batches',
      'checkpoints',
      'evaluations',
      'kept_answers',
      'labels',
      'minings',
      'phases',
      'probes',
      'run',
      'solver_usage',
      'step_scores',
      'steps',
      'tasks',
    ]);
    expect(dump['batches']).toEqual([
      { phase: 'train-generator', arm: 'a', batch: 1 },
      { phase: 'train-generator', arm: 'b', batch: 1 },
    ]);
    expect(Object.keys(dump['steps']![0]!).filter((column) => column.includes('seconds'))).toEqual([]);
  });
});

describe('what a run is', () => {
  const run = { seed: 1, config: { rl: { steps: 40, kl: 0.1 }, arms: ['base'] }, versions: { propel: '0.1.0' } };

  test('the same settings go on, whatever their order, and the first versions stay', () => {
    store.startRun(run);
    store.startRun({ ...run, config: { arms: ['base'], rl: { kl: 0.1, steps: 40 } }, versions: { propel: '0.2.0' } });
    expect(store.run()).toEqual(run);
  });

  test('other settings are refused by name', () => {
    store.startRun(run);
    const other = {
      seed: 2,
      config: { rl: { steps: 60, kl: 0.1 }, arms: ['base', 'propel'], extra: true },
      versions: {},
    };
    store.commitBatch(LABEL_BATCH, 1, () => {});
    expect(() => store.startRun(other)).toThrow(UserError);
    expect(() => store.startRun(other)).toThrow(
      '(seed 1 → 2, rl.steps 40 → 60, arms ["base"] → ["base","propel"], extra none → true); give the settings it was begun with, start over with --fresh, or',
    );
    const phaseOf = (setting: string) => (setting === 'rl.steps' ? 'train-generator' : 'label');
    const later = { ...run, config: { ...run.config, rl: { steps: 60, kl: 0.1 } } };
    // Nothing has come from a setting of training yet.
    store.startRun(later, phaseOf);
    expect(store.run()).toEqual(later);
    commitStep('propel', 1);
    expect(() => store.startRun(run, phaseOf)).toThrow(
      "(rl.steps 60 → 40); give the settings it was begun with, start over with 'propel train-generator --fresh', which keeps the labels and the probes, or choose another folder with --out",
    );
    expect(() => store.startRun({ ...run, seed: 2 }, phaseOf)).toThrow(
      '(seed 1 → 2, rl.steps 60 → 40); give the settings it was begun with, start over with --fresh, or choose',
    );
    const many = Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`key${i}`, 'long '.repeat(30)]));
    expect(() => store.startRun({ ...later, config: { ...later.config, ...many } }, phaseOf)).toThrow(
      /key7 none → "long long [long ]+…, 4 more\);/,
    );
  });

  test('other settings replace those that nothing came from', () => {
    store.startRun(run);
    const other = { ...run, config: { rl: { steps: 60 } } };
    store.startRun(other);
    expect(store.run()).toEqual(other);
  });

  test('a fresh start removes the old run and nothing else', () => {
    store.startRun(run);
    store.close();
    mkdirSync(join(folder, 'checkpoints'));
    writeFileSync(join(folder, 'results.json'), '{}');
    writeFileSync(join(folder, 'notes.txt'), 'mine');
    store = RunStore.open(folder, { fresh: true });
    expect(store.run()).toBeNull();
    expect(['checkpoints', 'results.json', 'notes.txt'].map((name) => existsSync(join(folder, name)))).toEqual([
      false,
      false,
      true,
    ]);
  });

  test('a fresh start in a folder that holds no run removes nothing', () => {
    const other = mkdtempSync(join(tmpdir(), 'propel-other-'));
    mkdirSync(join(other, 'checkpoints'));
    RunStore.open(other, { fresh: true }).close();
    expect(existsSync(join(other, 'checkpoints'))).toBe(true);
    rmSync(other, { recursive: true });
  });
});

describe('files that cannot be used', () => {
  const open = (): RunStore => RunStore.open(folder);
  const database = (): string => join(folder, 'propel.db');

  test('a folder in use', () => {
    expect(open).toThrow(RunLockedError);
    expect(open).toThrow(RunError);
    expect(open).toThrow(`in use by process ${process.pid}`);
  });

  test('no run to read', () => {
    expect(() => RunStore.read(join(folder, 'nowhere'))).toThrow('no run in');
  });

  test('not a database', () => {
    store.close();
    writeFileSync(database(), 'this is a text file, and a long one at that: '.repeat(100));
    expect(open).toThrow(UserError);
    expect(open).toThrow('is not a run store');
    store = RunStore.open(folder, { fresh: true });
  });

  test('a database of another program', () => {
    store.close();
    rmSync(database());
    const other = new Database(database());
    other.exec('CREATE TABLE notes (text TEXT)');
    other.close();
    expect(open).toThrow('is a database of another program');
    store = RunStore.open(folder, { fresh: true });
  });

  test('a store of another version', () => {
    store.close();
    const old = new Database(database());
    old.pragma('user_version = 99');
    old.close();
    expect(open).toThrow('has schema version 99, this propel works on version 6');
    store = RunStore.open(folder, { fresh: true });
  });

  test('a store of the version before is shown, its attempts without their places, and not gone on with', () => {
    store.startRun({ seed: 1, config: {}, versions: {} });
    store.insertTasks([task(LABEL_BATCH, 0)]);
    const attempt = { taskId: taskId(LABEL_BATCH, 0), attempt: 0, seed: 4, answer: '1', verdict: 'pass' } as const;
    store.insertAttempts([{ ...attempt, draw: 0 }]);
    store.close();
    const old = new Database(database());
    old.exec('ALTER TABLE attempts DROP COLUMN draw; ALTER TABLE steps DROP COLUMN clipped_share');
    for (const column of ['cut_off', 'empty', 'refused']) old.exec(`ALTER TABLE solver_usage DROP COLUMN ${column}`);
    old.pragma('user_version = 5');
    old.close();
    expect(open).toThrow(
      'has schema version 5, this propel works on version 6 and only shows older ones; use the propel that made it,',
    );
    const reader = RunStore.read(folder);
    expect(reader.tasks({ phase: 'label' })).toEqual([task(LABEL_BATCH, 0)]);
    expect(reader.attempts(attempt.taskId)).toEqual([{ ...attempt, draw: null }]);
    reader.close();
    const damaged = new Database(database());
    damaged.exec("UPDATE tasks SET task = 'no JSON'");
    damaged.close();
    const other = RunStore.read(folder);
    expect(() => other.tasks({ phase: 'label' })).toThrow(
      /is damaged \(a column of JSON holds something else\); start/,
    );
    other.close();
    store = RunStore.open(folder, { fresh: true });
  });

  test('a store that was cut short', () => {
    for (let batch = 0; batch < 20; batch++) {
      const key: BatchKey = { phase: 'label', arm: '', batch };
      store.insertTasks([task(key, 0, { completion: 'x'.repeat(4000) })]);
    }
    store.close();
    truncateSync(database(), Math.floor(statSync(database()).size / 8192) * 4096);
    expect(open).toThrow(UserError);
    expect(open).toThrow('is damaged');
    store = RunStore.open(folder, { fresh: true });
  });

  describe('is looked at', () => {
    const PAGE = 4096;
    const damaged = /propel\.db is damaged \(a row of tasks is not as it was written\); start over with --fresh/;

    /** Some pages, one of which is damaged without a word of its own. */
    function damage(): void {
      const path = database();
      const bytes = readFileSync(path);
      expect(bytes.length).toBeGreaterThan(20 * PAGE);
      const at = bytes.indexOf('xxxx', 10 * PAGE);
      bytes[at] = bytes[at]! ^ 1;
      writeFileSync(path, bytes);
    }

    beforeEach(() => {
      for (let batch = 0; batch < 40; batch++) {
        const key: BatchKey = { phase: 'label', arm: '', batch };
        store.commitBatch(key, 1, () => store.insertTasks([task(key, 0, { completion: 'x'.repeat(4000) })]));
      }
    });

    test('as a whole where it was closed in order: its version always, its bytes before figures come from it or it is gone on with', () => {
      store.close();
      damage();
      const reader = RunStore.read(folder);
      expect(reader.countTasks({ phase: 'label' })).toBe(40);
      expect(() => reader.tasks({ phase: 'label' })).toThrow(damaged);
      reader.close();
      expect(() => RunStore.read(folder, { whole: true })).toThrow(damaged);
      expect(open).toThrow(damaged);
      expect(() => RunStore.check(folder)).toThrow(damaged);
      store = RunStore.open(folder, { fresh: true });
    });

    test('page by page and row by row where it was not, unless a run that has done so is at work', () => {
      const copy = join(folder, 'copy');
      mkdirSync(copy);
      copyFileSync(database(), join(copy, 'propel.db'));
      copyFileSync(`${database()}-wal`, join(copy, 'propel.db-wal'));
      RunStore.read(copy).close();
      store.close();
      rmSync(`${database()}.sha256`);
      damage();
      expect(() => RunStore.read(folder)).toThrow(damaged);
      expect(open).toThrow(damaged);
      const lock = lockRunFolder(folder);
      RunStore.read(folder).close();
      lock.release();
      store = RunStore.open(folder, { fresh: true });
    });

    test('and sealed again by whoever closes it', () => {
      const seal = (): string => readFileSync(`${database()}.sha256`, 'utf8');
      expect(existsSync(`${database()}.sha256`)).toBe(false);
      store.close();
      expect(seal()).toBe(`${sha256OfFile(database())}  propel.db\n`);
      store = RunStore.open(folder);
      expect(existsSync(`${database()}.sha256`)).toBe(false);
      store.insertTasks([task({ ...LABEL_BATCH, phase: 'evaluate' }, 0)]);
      store.close();
      expect(seal()).toBe(`${sha256OfFile(database())}  propel.db\n`);
      RunStore.check(folder);
      // What another program has changed in order is no damage.
      const other = new Database(database());
      other.exec("DELETE FROM tasks WHERE phase = 'evaluate'");
      other.close();
      store = RunStore.open(folder);
    });
  });

  test('its log is cut back, also while another process reads', () => {
    const log = (): number => statSync(`${database()}-wal`).size;
    const reader = RunStore.read(folder);
    const write = (batch: number, length: number): void => {
      const key: BatchKey = { phase: 'label', arm: '', batch };
      store.commitBatch(key, 1, () => store.insertTasks([task(key, 0, { completion: 'x'.repeat(length) })]));
    };
    write(0, 30 << 20);
    expect(log()).toBeGreaterThan(30 << 20);
    for (let batch = 1; batch < 20; batch++) {
      write(batch, 1000);
      expect(reader.tasks({ phase: 'label', batch })).toHaveLength(1);
    }
    expect(log()).toBeLessThan(5 << 20);
    store.finishPhase('label', '', 0);
    expect(log()).toBe(0);
    reader.close();
    store.close();
    expect(existsSync(`${database()}-wal`)).toBe(false);
    store = RunStore.open(folder);
  });

  test('the lock is free again after a failed open', () => {
    store.close();
    writeFileSync(database(), 'x'.repeat(5000));
    expect(open).toThrow('is not a run store');
    expect(existsSync(join(folder, 'propel.lock'))).toBe(false);
    store = RunStore.open(folder, { fresh: true });
  });
});

describe('starting over from a phase', () => {
  const phaseOf = (setting: string) => (setting.startsWith('train.') ? 'train-generator' : 'label');
  const run = {
    seed: 1,
    config: { label: { tasks: 2 }, train: { steps: 2 }, evaluate: { generations: 5 } },
    versions: {},
  };

  beforeEach(() => {
    store.startRun(run);
    store.commitBatch(LABEL_BATCH, 1, () => store.insertTasks([task(LABEL_BATCH, 0)]));
    store.finishPhase('label', '', 0);
    commitStep('propel', 1);
    store.finishPhase('train-generator', 'propel', 0);
    const key: BatchKey = { phase: 'evaluate', arm: 'propel', batch: 0 };
    store.commitBatch(key, 1, () => store.insertTasks([task(key, 0)]));
    store.saveEvaluation('propel', { measuredInBand: 0.5 });
  });

  test('drops that phase and those after it, and takes their new settings', () => {
    const config = { ...run.config, train: { steps: 3 } };
    store.restartFrom('train-generator', { ...run, config }, phaseOf);
    expect(store.phaseFinished('label', '')).toBe(true);
    expect(store.countTasks({ phase: 'label' })).toBe(1);
    expect(store.phaseFinished('train-generator', 'propel')).toBe(false);
    expect(store.countTasks({ phase: 'train-generator' })).toBe(0);
    expect(store.steps()).toEqual([]);
    expect(store.stepScores('propel')).toEqual([]);
    expect(store.countTasks({ phase: 'evaluate' })).toBe(0);
    expect(store.evaluations().size).toBe(0);
    expect(store.run()!.config['train']).toEqual({ steps: 3 });
  });

  test('leaves no file that belongs to rows which are gone: results of a former training, its checkpoints', () => {
    for (const file of [
      'probes/probe-0.json',
      'checkpoints/propel/step-000001/adapter',
      'results.json',
      'report.html',
    ]) {
      writeFileAtomic(join(folder, file), file);
    }
    store.restartFrom('train-generator', run, phaseOf);
    expect(
      ['probes', 'checkpoints', 'results.json', 'report.html'].map((name) => existsSync(join(folder, name))),
    ).toEqual([true, false, false, false]);
  });

  test('refuses other settings of an earlier phase, and drops nothing', () => {
    const config = { ...run.config, label: { tasks: 9 } };
    expect(() => store.restartFrom('evaluate', { ...run, config }, phaseOf)).toThrow(
      /\(label\.tasks \d+ → 9\); start over with 'propel run --fresh', or/,
    );
    expect(() => store.restartFrom('evaluate', { ...run, seed: 2 }, phaseOf)).toThrow(/\(seed 1 → 2\)/);
    expect(store.countTasks({ phase: 'evaluate' })).toBe(1);
  });
});

test('a version that shows only while the run works is written down once', () => {
  store.startRun({ seed: 1, config: {}, versions: { propel: '1' } });
  expect(store.recordVersion('provider', 'cpu')).toBe('cpu');
  expect(store.recordVersion('provider', 'cuda')).toBe('cpu');
  expect(store.run()!.versions).toEqual({ propel: '1', provider: 'cpu' });
});
