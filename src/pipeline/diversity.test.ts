import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { summariseRates } from '../metrics/frontier.js';
import { wilsonInterval } from '../metrics/interval.js';
import type { Json, Phase, TaskRow } from '../store/rows.js';
import { taskId } from '../store/rows.js';
import { RunStore } from '../store/store.js';
import { armDiversities, ratesByType, taskText } from './diversity.js';

describe("a task's text", () => {
  const completion = 'as the model wrote it';

  it('is its program with the call, in any notation', () => {
    const task = { type: 'code_o', snippet: 'def f(x):\n    return x', input: '[1]', output: '[1]' };
    const text = 'def f(x):\n    return x\n>>> f([1])\n';
    expect(taskText({ type: 'code_o', task, completion })).toEqual({ type: 'code_o', text });
  });

  it('is the first call of several', () => {
    const task = { type: 'code_f', snippet: 'def f(x):\n    return x', inputs: ['1', '2'], outputs: null, message: '' };
    const text = 'def f(x):\n    return x\n>>> f(1)\n';
    expect(taskText({ type: 'code_f', task, completion })).toEqual({ type: 'code_f', text });
  });

  it('is the completion where there is no task', () => {
    expect(taskText({ type: 'code_i', task: null, completion })).toEqual({ type: 'code_i', text: completion });
  });
});

describe('diversity of arms', () => {
  let folder: string;
  let store: RunStore;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'propel-diversity-'));
    store = RunStore.open(folder);
  });
  afterEach(() => {
    store.close();
    rmSync(folder, { recursive: true });
  });

  /** One batch of tasks with these bodies; a body of null is no task. */
  function write(phase: Phase, arm: string, bodies: readonly (string | null)[]): void {
    const key = { phase, arm, batch: 0 };
    const rows = bodies.map((body, item): TaskRow => {
      const snippet = `def f(x):\n    ${body}`;
      const task: Json = body === null ? null : { type: 'code_o', snippet, input: '[1, 2]', output: '0' };
      return {
        ...key,
        id: taskId(key, item),
        item,
        type: 'code_o',
        seed: 0,
        completion: snippet,
        tokens: 9,
        valid: body !== null,
        outcome: body === null ? 'unparsable' : 'ok',
        detail: '',
        topic: body?.includes('[') ? 'slicing' : 'arithmetic',
        structure: body === null ? null : { depth: body.length < 12 ? 6 : 7, cyclomatic: 1, lines: 2, variables: 0 },
        rendered: body === null ? null : snippet,
        task,
        output: body === null ? null : '0',
      };
    });
    store.commitBatch(key, 0, () => {
      store.insertTasks(rows);
      store.insertLabels(
        rows.filter(({ valid }) => valid).map(({ id }) => ({ taskId: id, passes: 0, k: 8, split: phase })),
      );
    });
  }

  it('are measured on as many valid tasks as the smallest arm has', () => {
    write('label', '', ['return x + 1']);
    write('evaluate', 'base', ['return x[1:]', null, 'return x[1:]', 'return x[2:]', 'return x + 5']);
    write('evaluate', 'trained', ['return x + 7', 'return x + 8']);
    const [base, trained] = armDiversities(store, ['base', 'trained']);
    expect([base!.texts, trained!.texts]).toEqual([2, 2]);
    expect([base!.duplicates, trained!.duplicates]).toEqual([
      { exact: 1 / 2, near: 1 / 2 },
      { exact: 0, near: 1 / 2 },
    ]);
    // All six programs lie in one cell.
    expect([base, trained].map((arm) => arm!.coverage!.cells.value)).toEqual([1, 1]);
  });

  it('tell what is new from all valid tasks, and their means', () => {
    write('label', '', ['return x + 1']);
    write('evaluate', 'base', ['return x[1:]', 'return x + 5', 'return x', 'return x[3:]']);
    const [base] = armDiversities(store, ['base']);
    expect(base!.novelty).toMatchObject({ share: 3 / 4, interval: wilsonInterval(3, 4) });
    expect(base!.effectiveTopics!.value).toBeCloseTo(2, 12);
    expect(base!.structure).toEqual({ depth: 6.75, cyclomatic: 1, lines: 2, variables: 0 });
  });

  it('are undefined, not zero, for an arm without a valid task and for a run without labels', () => {
    write('evaluate', 'base', ['return x']);
    write('evaluate', 'broken', [null]);
    const [base, broken] = armDiversities(store, ['base', 'broken']);
    expect(base).toMatchObject({ texts: 1, duplicates: { exact: 0, near: 0 }, novelty: null });
    expect(broken).toEqual({
      texts: 0,
      duplicates: null,
      novelty: null,
      effectiveTopics: null,
      coverage: null,
      structure: null,
    });
  });
});

it('rates are told apart by the type that was asked for, in the order of the settings', () => {
  const band = { min: 1, max: 3, of: 8 };
  const of = (type: string, passes: number | null) => ({ type, valid: passes !== null, passes, text: '', topic: 't' });
  const [o, i] = [[of('code_o', 2), of('code_o', null)], [of('code_i', 8)]];
  const byType = ratesByType([...i, ...o], ['code_o', 'code_i'], band);
  expect(Object.entries(byType)).toEqual([
    ['code_o', summariseRates(o, band)],
    ['code_i', summariseRates(i, band)],
  ]);
  expect(byType['code_o']).toMatchObject({ n: 2, valid: 1, frontierRate: 1 / 2, inBandOfValid: 1 });
});
