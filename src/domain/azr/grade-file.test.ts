import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createFakeSandbox, failed, type FakeSandbox } from '../../../tests/fake-sandbox.js';
import { UserError } from '../../errors.js';
import { gradeFile, type GradeReport, type GradeType } from './grade-file.js';

const folder = mkdtempSync(join(tmpdir(), 'grade-file-'));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function fileOf(rows: readonly (object | string)[]): string {
  const path = join(folder, `${files++}.jsonl`);
  writeFileSync(path, rows.map((row) => `${typeof row === 'string' ? row : JSON.stringify(row)}\n`).join(''));
  return path;
}

async function grade(
  type: GradeType,
  tasks: readonly (object | string)[],
  answers: readonly (object | string)[],
  sandbox: FakeSandbox = createFakeSandbox((_, input) => input),
  shown: number | null = null,
): Promise<GradeReport> {
  return gradeFile(fileOf(tasks), fileOf(answers), async () => sandbox, {
    type,
    shown,
    limits: {},
    onProgress: () => {},
  });
}

const echo = (output: string, fields: object = {}) => ({
  snippet: 'def f(x): return x',
  input: '0',
  output,
  ...fields,
});

describe('grading a file', () => {
  it('gives a verdict an answer, a rate a task, and pass@1 with its interval over tasks', async () => {
    const report = await grade(
      'code_o',
      [echo('1', { id: 'a' }), echo("'x'", { id: 'b' }), echo('[2]', { id: 'c' })],
      [
        { id: 'b', answers: ['"x"', 'x', "'x'", "'y'"] },
        { id: 'a', answers: ['1', '1.0'] },
        { id: 'c', answers: ['(2,)'] },
      ],
    );
    expect(report).toEqual({
      type: 'code_o',
      tasks: 3,
      answers: 7,
      verdicts: { pass: 4, fail: 3, error: 0 },
      passAt1: 0.5,
      // 1.5 of 3 tasks, taken as 2 of 3.
      passAt1Interval: [expect.closeTo(0.2077, 4), expect.closeTo(0.9385, 4)],
      results: [
        { id: 'b', verdicts: ['pass', 'fail', 'pass', 'fail'], rate: 0.5 },
        { id: 'a', verdicts: ['pass', 'pass'], rate: 1 },
        { id: 'c', verdicts: ['fail'], rate: 0 },
      ],
    });
  });

  it('counts tasks without an id from 0, and takes an id for what it reads', async () => {
    const report = await grade(
      'code_o',
      [echo('5'), echo('6'), echo('7')],
      [
        { id: '2', answers: ['7'] },
        { id: 0, answers: ['5'] },
      ],
    );
    expect(report.results).toEqual([
      { id: '2', verdicts: ['pass'], rate: 1 },
      { id: 0, verdicts: ['pass'], rate: 1 },
    ]);
    expect(report.tasks).toBe(2);
  });

  it('takes an answer out of its block in a longer text', async () => {
    const { results } = await grade(
      'code_o',
      [echo('5')],
      [{ id: 0, answers: ['Thus:\n```output\n5\n```', '<think>```output\n5\n```</think>', '5\n'] }],
    );
    expect(results[0]?.verdicts).toEqual(['pass', 'fail', 'pass']);
  });

  it('takes an answer without the special tokens of a raw decode', async () => {
    const block = 'Result:\n```output\n[1, 1]\n```';
    const ends = [
      '<|im_end|>',
      '</s>',
      '\n<|endoftext|>',
      '<|eot_id|>\n',
      '<｜end▁of▁sentence｜>',
      '<end_of_turn><pad><pad>',
    ];
    const answers = [...ends.flatMap((end) => [`${block}${end}`, `[1, 1]${end}`]), '<pad> [1, 1]</s>'];
    const report = await grade('code_o', [echo('[1, 1]')], [{ id: 0, answers }]);
    expect(report.verdicts).toEqual({ pass: answers.length, fail: 0, error: 0 });
    const text = await grade('code_o', [echo("'</s>'")], [{ id: 0, answers: ["'</s>'", "'</s>'</s>", "''</s>"] }]);
    expect(text.results[0]?.verdicts).toEqual(['pass', 'pass', 'fail']);
  });

  it('runs inputs with the program, in CRUXEval’s fields too, whose function may have any name', async () => {
    const sandbox = createFakeSandbox((_, input) => input);
    const { results } = await grade(
      'code_i',
      [{ id: 's', code: 'def g(x): return x', input: '3', output: '[1, 2]' }],
      [{ id: 's', answers: ['f([1, 2])', '[1, 3]', '[1, 2]'] }],
      sandbox,
    );
    expect(results[0]?.verdicts).toEqual(['pass', 'fail', 'pass']);
    expect(sandbox.requests[0]?.program).toEqual({ code: 'def g(x): return x\nf = g', calls: ['[1, 2]'] });
    expect(JSON.stringify(sandbox.requests)).not.toContain('output');
  });

  it('judges functions by the inputs that were not shown: half of them, or as told', async () => {
    const task = {
      snippet: 'def f(x): return x',
      inputs: ['1', '2', '3', '4', '5'],
      outputs: ['1', '2', '3', '4', '5'],
    };
    const answers = [{ id: 0, answers: ['def f(x): return x'] }];
    const upTo3 = () => createFakeSandbox((_, input) => (input > '3' ? input : '0'));
    const byDefault = upTo3();
    expect((await grade('code_f', [task], answers, byDefault)).results[0]?.verdicts).toEqual(['fail']);
    expect(byDefault.requests.map(({ program }) => program)).toEqual([{ code: 'def f(x): return x', calls: ['3'] }]);
    expect((await grade('code_f', [task], answers, upTo3(), 3)).results[0]?.verdicts).toEqual(['pass']);
  });

  it('calls what the sandbox or the recording is to blame for an error, and counts it for nothing', async () => {
    const dead = createFakeSandbox((_, input) =>
      input === '2' ? failed('sandbox_failure', 'no worker starts') : input,
    );
    const report = await grade(
      'code_i',
      [echo('1'), echo('1'), echo('<object>'), echo('')],
      [
        { id: 0, answers: ['1', '2', '3'] },
        { id: 1, answers: ['2'] },
        { id: 2, answers: ['1'] },
        { id: 3, answers: ['1'] },
      ],
      dead,
    );
    const reason = 'the fake sandbox keeps failing: no worker starts';
    expect(report.results).toEqual([
      { id: 0, verdicts: ['pass', 'error', 'fail'], rate: 0.5, reason, sandboxFailed: true },
      { id: 1, verdicts: ['error'], rate: null, reason, sandboxFailed: true },
      {
        id: 2,
        verdicts: ['error'],
        rate: null,
        reason: "the task's output is no literal: <object>",
        sandboxFailed: false,
      },
      { id: 3, verdicts: ['error'], rate: null, reason: 'the task records no output', sandboxFailed: false },
    ]);
    expect(report).toMatchObject({ passAt1: 0.5, verdicts: { pass: 1, fail: 1, error: 4 } });
    expect(await grade('code_o', [echo('')], [{ id: 0, answers: ['1'] }])).toMatchObject({
      passAt1: null,
      passAt1Interval: null,
    });
  });
});

describe('a file that cannot be graded', () => {
  const answered = [{ id: 0, answers: ['1'] }];
  const induction = { snippet: 'def f(x): return x', inputs: ['1', '2'], outputs: ['1', '2'] };
  it.each<[string, GradeType, (object | string)[], (object | string)[], string]>([
    ['an id that no task has', 'code_o', [echo('1')], [{ id: 'b', answers: [] }], 'line 1: '],
    ['answers without an id', 'code_o', [echo('1')], [{ answers: ['1'] }], 'line 1: field id: '],
    ['answers that are no list', 'code_o', [echo('1')], [{ id: 0, answers: '1' }], 'line 1: field answers: '],
    ['an answer that is no text', 'code_o', [echo('1')], [{ id: 0, answers: [1] }], 'line 1: field answers.0: '],
    [
      'answers twice',
      'code_o',
      [echo('1')],
      [...answered, { id: '0', answers: [] }],
      'line 2: a second row of answers',
    ],
    [
      'a task twice',
      'code_o',
      [echo('1', { id: 'a' }), echo('2', { id: 'a' })],
      answered,
      'line 2: a second task of id a',
    ],
    ['a task without a field', 'code_o', [echo('1'), { snippet: 'x', input: '1' }], answered, 'line 2: field output: '],
    ['functions as code_o', 'code_o', [induction], answered, 'line 1: inputs and outputs are an induction task'],
    ['single calls as code_f', 'code_f', [echo('1')], answered, 'line 1: code_f needs the lists inputs and outputs'],
    ['no answers', 'code_o', [echo('1')], [], 'holds no rows'],
    ['a line that is no JSON', 'code_o', [echo('1')], ['{', '{}'], 'line 1: not valid JSON'],
  ])('is one clear line, before the sandbox starts: %s', async (_, type, tasks, answers, message) => {
    let isOpened = false;
    const open = async (): Promise<FakeSandbox> => {
      isOpened = true;
      return createFakeSandbox(() => '1');
    };
    const grading = gradeFile(fileOf(tasks), fileOf(answers), open, {
      type,
      shown: null,
      limits: {},
      onProgress: () => {},
    });
    const error: unknown = await grading.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UserError);
    expect((error as UserError).message).toContain(message);
    expect((error as UserError).message).toMatch(/^[^\n]*\.jsonl[^\n]*$/);
    expect(isOpened).toBe(false);
  });

  it('leaves an input to judge by', async () => {
    const one = { ...induction, inputs: ['1'], outputs: ['1'] };
    const grading = grade('code_f', [induction], answered, undefined, 2);
    await expect(grading).rejects.toThrow('line 1: 2 inputs, 2 shown: none is left to judge by; lower --shown');
    expect((await grade('code_f', [one], answered)).tasks).toBe(1);
  });
});
