import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seededRandom } from '../../metrics/random.js';
import type { Sandbox } from '../../sandbox/sandbox.js';
import { createWasmSandbox } from '../../sandbox/wasm/wasm-sandbox.js';
import { canBeGuessed } from './corpus.js';
import { evaluateInSandbox, guardedCalls, perturbedInputs, readEvaluations } from './evaluation.js';
import { sampleProgram } from './language.js';

const program = { snippet: 'def f(x, n):\n    return x[n]', input: '[4, 0, 9], 12' };

describe('perturbedInputs', () => {
  it('gives inputs of the same types, in range, with lengths near', () => {
    for (const input of perturbedInputs(program, 7)) expect(input).toMatch(/^\[\d(, \d){1,3}\], (\d|[1-3]\d|40)$/);
    expect(perturbedInputs(program, 7)).toHaveLength(7);
    const text = { snippet: 'def f(x):\n    return x', input: "'ABCDE'" };
    for (const input of perturbedInputs(text, 7)) expect(input).toMatch(/^'[A-F]{4,6}'$/);
  });

  it('never goes under two elements or letters', () => {
    const short = { snippet: 'def f(x, n):\n    return x + n', input: "'A', [3]" };
    for (const input of perturbedInputs(short, 7)) expect(input).toMatch(/^'[A-F]{2}', \[\d, \d\]$/);
  });

  it('follows from the text of the task', () => {
    expect(perturbedInputs(program, 7)).toEqual(perturbedInputs({ ...program }, 7));
    expect(perturbedInputs(program, 7)).not.toEqual(perturbedInputs({ ...program, input: '[4, 0, 9], 13' }, 7));
  });
});

describe('readEvaluations', () => {
  it('reads one line a program from hexadecimal text', () => {
    const hex = Buffer.from("[3, 2, 1]\t7\nNone\tNone\n'É\\t'\tNone").toString('hex');
    expect(readEvaluations(`'${hex}'`)).toEqual([
      ['[3, 2, 1]', '7'],
      [null, null],
      ["'É\\t'", null],
    ]);
  });
});

describe('evaluateInSandbox', () => {
  let sandbox: Sandbox;
  beforeAll(async () => {
    sandbox = await createWasmSandbox({ size: 1 });
  });
  afterAll(() => sandbox.close());

  it('gives the repr of every result', async () => {
    const evaluations = await evaluateInSandbox(sandbox)([
      { snippet: "def f(x):\n    return x[::-1] + 'F'", inputs: ["'ABCDE'", "'A'"] },
      { snippet: 'def f(x):\n    x.sort()\n    return x', inputs: ['[3, 1, 2]'] },
      { snippet: 'def f(x, n):\n    return x[n]', inputs: ['[3, 1, 2], 0', '[4], 0', "'AB', 1"] },
    ]);
    expect(evaluations).toEqual([["'EDCBAF'", "'AF'"], ['[1, 2, 3]'], ['3', '4', "'B'"]]);
  });

  it('has no output where a program raises or returns None', async () => {
    const snippet = 'def f(x):\n    return x[2] if x[0] else None';
    const [evaluation] = await evaluateInSandbox(sandbox)([{ snippet, inputs: ['[1, 2]', '[0]', '[1, 2, 3]'] }]);
    expect(evaluation).toEqual([null, null, '3']);
  });

  it('evaluates more programs than one run takes, in order', async () => {
    const programs = Array.from({ length: 600 }, (_, index) => ({
      snippet: `def f(x):\n    return x * 0 + ${index}`,
      inputs: ['1'],
    }));
    const evaluations = await evaluateInSandbox(sandbox)(programs);
    expect(evaluations).toEqual(programs.map((_, index) => [String(index)]));
  });

  it('finds an answer to nearly every sampled program, more than half of them hard to guess', async () => {
    const random = seededRandom('evaluation');
    const programs = Array.from({ length: 1000 }, () => guardedCalls(sampleProgram(random)));
    const evaluations = await evaluateInSandbox(sandbox)(programs);
    const share = (test: (outputs: (string | null)[]) => boolean): number =>
      evaluations.filter(test).length / evaluations.length;
    expect(share(([own]) => own !== null)).toBeGreaterThan(0.97);
    expect(share((outputs) => !canBeGuessed(outputs))).toBeGreaterThan(0.5);
  });

  it('says what failed when a run does', async () => {
    const failing: Sandbox = {
      name: 'failing',
      size: 1,
      versions: {},
      run: () =>
        Promise.resolve({
          calls: [{ outcome: 'timeout', repr: null, detail: 'ran longer than 60000 ms' }],
          facts: null,
          milliseconds: 60_000,
        }),
      literals: () => Promise.resolve([]),
      close: () => Promise.resolve(),
    };
    await expect(evaluateInSandbox(failing)([guardedCalls(program)])).rejects.toThrow(
      'evaluating 1 micro-world programs failed: timeout, ran longer than 60000 ms',
    );
  });
});
