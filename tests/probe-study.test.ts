/** Labels from a file, and the study of probes, as commands: what they write, what they leave alone, and what they refuse. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeAll, describe, expect, it } from 'vitest';
import type { ImportSummary } from '../src/pipeline/label-from.js';
import type { StudySummary } from '../src/pipeline/probe-study.js';
import { readProbeCard } from '../src/probe/probe-file.js';
import type { ProbeSummary } from '../src/pipeline/train-probe.js';
import { seededRandom } from '../src/metrics/random.js';
import type { TaskRow } from '../src/store/rows.js';
import { RunStore } from '../src/store/store.js';
import { errorLine, propelIn, sets, temporaryFolder } from './propel-process.js';

const folder = temporaryFolder();
const SHORT = sets({ 'label.tasks': 220, 'label.batch': 64, 'probe.l2': [0.03, 0.1] });

function propel(args: readonly string[]): string {
  const { code, stdout, stderr } = propelIn(folder, args);
  if (code !== 0) throw new Error(stderr);
  return stdout;
}

function refusal(...args: string[]): string {
  const ended = propelIn(folder, args);
  expect(ended.code).toBe(2);
  return errorLine(ended).replace(/^propel: /, '');
}

function reading<Result>(out: string, read: (store: RunStore) => Result): Result {
  const store = RunStore.read(join(folder, out));
  try {
    return read(store);
  } finally {
    store.close();
  }
}

const dump = (out: string) => reading(out, (store) => store.dumpRows());
const labelled = (out: string) => reading(out, (store) => store.labelledTasks({ phase: 'label' }));

/** A file of attempts, a row an object. */
function attemptsFile(name: string, rows: readonly object[]): string {
  writeFileSync(join(folder, name), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  return name;
}

let exported: object[];
beforeAll(() => {
  propel(['label', '--out', 'own', ...SHORT]);
  exported = labelled('own').map(({ task, passes, k }) => ({ ...(task as object), passes, k }));
  attemptsFile('attempts.jsonl', exported);
}, 300_000);

describe('labels from a file', () => {
  let summary: ImportSummary;
  beforeAll(() => {
    summary = JSON.parse(
      propel(['label', '--from', 'attempts.jsonl', '--json', '--out', 'imported', ...SHORT]),
    ) as ImportSummary;
  }, 300_000);

  it('are those that were exported, with the same tasks behind them', () => {
    expect(summary).toMatchObject({ generations: exported.length, valid: exported.length, invalid: {}, unlabelled: 0 });
    expect(summary.solverTrials).toBe(8 * exported.length);
    const kept = ({ type, valid, outcome, topic, structure, rendered, task, output }: TaskRow) => ({
      type,
      valid,
      outcome,
      topic,
      structure,
      rendered,
      task,
      output,
    });
    const own = labelled('own').map((row) => ({ ...kept(row), passes: row.passes, k: row.k, split: row.split }));
    const imported = labelled('imported').map((row) => ({
      ...kept(row),
      passes: row.passes,
      k: row.k,
      split: row.split,
    }));
    expect(imported).toEqual(own);
  });

  it('train the probe that the run’s own train', () => {
    const probes = ['own', 'imported'].map((out) => {
      propel(['train-probe', '--out', out, ...SHORT]);
      return readFileSync(join(folder, out, 'probes', 'probe-0.safetensors'));
    });
    expect(probes[1]!.equals(probes[0]!)).toBe(true);

    // What edits that keep the answers are worth follows from the labels too; comments are worth nothing.
    const [own, imported] = ['own', 'imported'].map((out) =>
      readProbeCard(join(folder, out, 'probes/probe-0.safetensors')),
    );
    expect(imported!.edits).toEqual(own!.edits);
    const { tasks, rise, kinds } = own!.edits!;
    expect(tasks).toBe(Math.min(48, own!.tasks.test));
    expect(rise.value).toBeGreaterThan(0);
    const comments = kinds.find(({ kind }) => kind === 'comment')!;
    expect(comments).toMatchObject({ kept: comments.tried, mean: 0, least: 0, most: 0 });
  }, 300_000);

  it('go on where an import was broken off, from the same file only', () => {
    const out = 'broken-off';
    const command = ['label', '--from', 'attempts.jsonl', '--out', out, ...SHORT];
    propel(command);
    const whole = dump(out);
    const database = new Database(join(folder, out, 'propel.db'));
    database.pragma('foreign_keys = ON');
    database.exec('DELETE FROM phases; DELETE FROM batches WHERE batch > 0; DELETE FROM tasks WHERE batch > 0');
    database.close();

    attemptsFile('changed.jsonl', [...exported.slice(1), exported[0]!]);
    expect(refusal('label', '--from', 'changed.jsonl', '--out', out, ...SHORT)).toMatch(
      /^changed.jsonl is not the file that broken-off takes its labels from, or has changed since; start over with --fresh/,
    );
    expect(refusal('label', '--out', out, ...SHORT)).toMatch(/go on with 'propel label --from'/);
    propel(command);
    expect(dump(out)).toEqual(whole);
  }, 300_000);

  it('do not mix with a run’s own', () => {
    expect(refusal('label', '--from', 'attempts.jsonl', '--out', 'own', ...SHORT)).toMatch(
      /^own has labels of its own/,
    );
  });

  it('are kept apart from what is invalid or not wholly graded', () => {
    const reverse = { snippet: 'def f(x):\n    return x[::-1]', input: '[1, 2, 3]', output: '[3, 2, 1]' };
    attemptsFile('mixed.jsonl', [
      { ...reverse, verdicts: ['pass', 'fail', 'pass', 'fail', 'fail', 'fail', 'fail', 'fail'] },
      { ...reverse, passes: 1, k: 8 },
      { ...reverse, input: '[4, 5, 6, 7]', output: '[7, 6, 5]', passes: 1, k: 8 },
      { ...reverse, snippet: 'def f(x):\n    return x[', passes: 1, k: 8 },
      { ...reverse, input: '[0, 8, 9]', output: '[9,8,0]', verdicts: [...Array<string>(7).fill('pass'), 'error'] },
      { ...reverse, input: '[0, 8, 1]', output: '[1, 8, 0]', verdicts: ['pass'] },
    ]);
    const mixed = JSON.parse(propel(['label', '--from', 'mixed.jsonl', '--json', '--out', 'mixed'])) as ImportSummary;
    expect(mixed).toMatchObject({
      generations: 6,
      valid: 3,
      labelled: 1,
      unlabelled: 2,
      inBand: 1,
      solverTrials: 8 + 7 + 1,
    });
    expect(mixed.invalid).toEqual({ repeat: 1, recorded_output_differs: 1, syntax_error: 1 });
    expect(labelled('mixed').map(({ id, passes }) => ({ id, passes }))).toEqual([
      { id: 'label//000000/000000', passes: 2 },
    ]);
  }, 300_000);

  it('are of every kind that the domain writes, with the inputs that the attempts were graded by', () => {
    const snippet = 'def f(x):\n    return sorted(x)';
    const inputs = [
      '[3, 1]',
      '[4, 2, 9]',
      '[5, 5, 1]',
      '[7, 0]',
      '[8, 8, 2]',
      '[1]',
      '[9, 3]',
      '[2, 6]',
      '[0, 5]',
      '[6, 1]',
    ];
    const outputs = [
      '[1, 3]',
      '[2, 4, 9]',
      '[1, 5, 5]',
      '[0, 7]',
      '[2, 8, 8]',
      '[1]',
      '[3, 9]',
      '[2, 6]',
      '[0, 5]',
      '[1, 6]',
    ];
    attemptsFile('kinds.jsonl', [
      { type: 'code_i', snippet, input: '[3, 1, 2]', output: '[1, 2, 3]', passes: 1, k: 8 },
      { snippet, inputs, outputs, passes: 2, k: 8 },
      { snippet, inputs: inputs.slice(0, 3), outputs: outputs.slice(0, 3), passes: 3, k: 8 },
    ]);
    const kinds = sets({ 'domain.types': ['code_o', 'code_i', 'code_f'] });
    const ended = propel(['label', '--from', 'kinds.jsonl', '--json', '--out', 'kinds', ...kinds]);
    expect(JSON.parse(ended)).toMatchObject({ labelled: 2, invalid: { recorded_inputs_differ: 1 } });
    expect(labelled('kinds').map(({ type, passes, output }) => ({ type, passes, output }))).toEqual([
      { type: 'code_i', passes: 1, output: '[1, 2, 3]' },
      { type: 'code_f', passes: 2, output: JSON.stringify(outputs) },
    ]);
  }, 300_000);

  it('are refused at the line that is wrong, before anything is written', () => {
    attemptsFile('other-k.jsonl', [exported[0]!, { ...exported[1]!, k: 10 }]);
    expect(refusal('label', '--from', 'other-k.jsonl', '--out', 'never')).toBe(
      'other-k.jsonl, line 2: k is 10, and band.of is 8; give outcomes of 8 attempts, or set band to 10',
    );
    expect(refusal('label', '--from', 'absent.jsonl', '--out', 'never')).toMatch(/^absent.jsonl does not exist/);
    expect(existsSync(join(folder, 'never'))).toBe(false);
  });
});

describe('labels that nothing can be learnt from', () => {
  const random = seededRandom('labels by chance');
  const out = (...args: string[]) => [...args, '--out', 'chance', ...SHORT];
  const LABELS = 118;

  beforeAll(() => {
    // In band by chance, whatever the task.
    const rows = exported.slice(0, LABELS).map((row) => ({ ...row, passes: random() < 0.4 ? 2 : 8 }));
    attemptsFile('chance.jsonl', rows);
    propel(out('label', '--from', 'chance.jsonl'));
  }, 300_000);

  it('make probes that are refused below probe.minimum, with nothing kept', () => {
    const ended = propelIn(folder, out('train-probe', '--fresh', ...sets({ 'probe.minimum': 0.95 })));
    expect(ended.code).toBe(1);
    expect(errorLine(ended)).toMatch(
      /^propel: probe-0 has AUROC 0\.\d+ \(.*\) on \d+ held-out labels.*, below probe\.minimum = 0\.95: label more tasks, .*; no probe was kept$/,
    );
    expect(reading('chance', (store) => store.probes())).toEqual([]);
  }, 300_000);

  it('make probes that are warned of: on standard error, in their cards, and by a study that recommends nothing', () => {
    const { code, stdout, stderr } = propelIn(folder, out('train-probe', '--json', '--fresh'));
    expect(code).toBe(0);
    const { probes, warnings } = JSON.parse(stdout) as ProbeSummary;
    const [first] = probes;
    expect(first!.heldOut.auroc.interval[0]).toBeLessThan(0.5);
    expect(first!.warnings![0]).toMatch(/^is no better than chance: AUROC /);
    expect(warnings[0]).toBe(`probe-0 ${first!.warnings![0]}`);
    expect(stderr).toContain(`warning: ${warnings[0]}\n`);
    const card = JSON.parse(readFileSync(join(folder, 'chance/probes/probe-0.json'), 'utf8')) as { warnings: string[] };
    expect(card.warnings).toEqual(first!.warnings);

    const study = propelIn(folder, out('train-probe', '--sweep', '--layers', '3'));
    expect(study.code).toBe(0);
    expect(study.stdout).toContain('nothing is recommended, as the warnings say');
    expect(study.stderr).toMatch(/^warning: the chosen probe, .* is no better than chance: AUROC /m);
    expect(readFileSync(join(folder, 'chance/probe-study.html'), 'utf8')).toContain('So nothing is recommended.');
  }, 300_000);
});

describe('a study of probes', () => {
  const command = ['train-probe', '--sweep', '--out', 'own', ...SHORT];

  it('compares layers, poolings, heads and numbers of labels, and changes nothing of the run', () => {
    const before = dump('own');
    const study = JSON.parse(
      propel([...command, '--json', '--layers', '0,3', '--label-counts', '130']),
    ) as StudySummary;
    expect(dump('own')).toEqual(before);
    expect(JSON.parse(readFileSync(join(folder, 'own', 'probe-study.json'), 'utf8'))).toEqual(study);
    expect(readFileSync(join(folder, 'own', 'probe-study.html'), 'utf8')).toContain('The choice');

    const { train, validation, test } = study.tasks;
    expect(train + validation + test).toBe(exported.length);
    expect(study.curve.map(({ labels }) => labels)).toEqual([130, train + validation]);
    // Two layers three ways, the first one's mean beside the last of layer 3, and the configuration's three; three heads; baselines.
    expect(study.rows.filter(({ labels }) => labels === 130)).toHaveLength((2 * 3 + 1 + 3) * 3 + 2 * 3);
    expect(study.yaml).toMatch(/^probe:\n {2}head: \w+\n {2}features:\n {4}- \[\{ layer: \d, pooling: \w+ \}/);
  }, 300_000);

  it('prints the choice and the settings for it', () => {
    const printed = propel([...command, '--layers', '3', '--label-counts', '130']);
    expect(printed).toMatch(/to train on what was chosen(, write into the configuration| all the same)/);
    expect(printed).toMatch(/^130 labels +\d+ /m);
  }, 300_000);

  it('needs labels that are there and come from the same settings', () => {
    expect(refusal('train-probe', '--sweep', '--out', 'nowhere')).toMatch(/^no run in nowhere/);
    expect(refusal('train-probe', '--sweep', '--out', 'own')).toMatch(
      /^the labels of own come from other settings \(label.tasks \d+ → \d+, label.batch \d+ → \d+\)/,
    );
  });

  it('refuses layers and numbers of labels that there are not, and options that are not its own', () => {
    expect(refusal(...command, '--layers', '1,4')).toBe(
      '--layers: generator has no layer 4; give 0, the embeddings, to 3, its last layer',
    );
    expect(refusal(...command, '--label-counts', '5000')).toMatch(/^--label-counts: 5000 labels are more than the \d+/);
    expect(refusal(...command, '--layers', 'one')).toMatch(/--layers/);
    expect(refusal(...command, '--fresh')).toBe('--sweep changes nothing of a run: leave --fresh out');
    expect(refusal('train-probe', '--out', 'own', '--layers', '1', ...SHORT)).toBe(
      '--layers belongs to a study: give --sweep too',
    );
  });
});
