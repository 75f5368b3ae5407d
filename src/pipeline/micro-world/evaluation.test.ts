import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seededRandom } from '../../metrics/random.js';
import type { Sandbox } from '../../sandbox/sandbox.js';
import { createWasmSandbox } from '../../sandbox/wasm/wasm-sandbox.js';
import { evaluateInSandbox, perturbedInputs, readEvaluations } from './evaluation.js';
import { sampleProgram } from './language.js';

const program = { snippet: 'def f(x, n):\n    return x[n]', input: '[4, 0, 9], 12' };

describe('perturbedInputs', () => {
  it('gives seven inputs of the same types, in range, with lengths near', () => {
    for (const input of perturbedInputs(program)) expect(input).toMatch(/^\[\d(, \d){1,3}\], (\d|[1-3]\d|40)$/);
    expect(perturbedInputs(program)).toHaveLength(7);
    const text = { snippet: 'def f(x):\n    return x', input: "'ABCDE'" };
    for (const input of perturbedInputs(text)) expect(input).toMatch(/^'[A-F]{4,6}'$/);
  });

  it('never goes under two elements or letters', () => {
    const short = { snippet: 'def f(x, n):\n    return x + n', input: "'A', [3]" };
    for (const input of perturbedInputs(short)) expect(input).toMatch(/^'[A-F]{2}', \[\d, \d\]$/);
  });

  it('follows from the text of the task', () => {
    expect(perturbedInputs(program)).toEqual(perturbedInputs({ ...program }));
    expect(perturbedInputs(program)).not.toEqual(perturbedInputs({ ...program, input: '[4, 0, 9], 13' }));
  });
});

describe('readEvaluations', () => {
  it('reads one line a program from hexadecimal text', () => {
    const hex = Buffer.from("8\t[3, 2, 1]\n1\tNone\n6\t'É\\t'").toString('hex');
    expect(readEvaluations(`'${hex}'`)).toEqual([
      { output: '[3, 2, 1]', distinctOutputs: 8 },
      { output: null, distinctOutputs: 1 },
      { output: "'É\\t'", distinctOutputs: 6 },
    ]);
  });
});

describe('evaluateInSandbox', () => {
  let sandbox: Sandbox;
  beforeAll(async () => {
    sandbox = await createWasmSandbox({ size: 1 });
  });
  afterAll(() => sandbox.close());

  it('gives the repr of each answer and how many of the eight are distinct', async () => {
    const evaluations = await evaluateInSandbox(sandbox)([
      { snippet: "def f(x):\n    return x[::-1] + 'F'", input: "'ABCDE'" },
      { snippet: 'def f(x):\n    x.sort()\n    return x', input: '[3, 1, 2, 9, 0, 4]' },
      { snippet: 'def f(x, n):\n    return 7', input: '[3, 1, 2], 5' },
      { snippet: 'def f(x):\n    return x % 2 == 0', input: '40' },
    ]);
    expect(evaluations.map(({ output }) => output)).toEqual(["'EDCBAF'", '[0, 1, 2, 3, 4, 9]', '7', 'True']);
    expect(evaluations.map(({ distinctOutputs }) => distinctOutputs)).toEqual([8, 8, 1, 2]);
  });

  it('has no output for a program that raises, and counts raising as one output', async () => {
    const [evaluation] = await evaluateInSandbox(sandbox)([
      { snippet: 'def f(x):\n    return x[9]', input: '[1, 2, 3]' },
    ]);
    expect(evaluation).toEqual({ output: null, distinctOutputs: 1 });
  });

  it('evaluates more programs than one run takes, in order', async () => {
    const programs = Array.from({ length: 600 }, (_, index) => ({
      snippet: `def f(x):\n    return x * 0 + ${index}`,
      input: '1',
    }));
    const evaluations = await evaluateInSandbox(sandbox)(programs);
    expect(evaluations.map(({ output }) => output)).toEqual(programs.map((_, index) => String(index)));
  });

  it('finds an answer to nearly every sampled program, more than half of them hard to guess', async () => {
    const random = seededRandom('evaluation');
    const evaluations = await evaluateInSandbox(sandbox)(Array.from({ length: 1000 }, () => sampleProgram(random)));
    const share = (test: (evaluation: (typeof evaluations)[number]) => boolean): number =>
      evaluations.filter(test).length / evaluations.length;
    expect(share(({ output }) => output !== null)).toBeGreaterThan(0.97);
    expect(share(({ distinctOutputs }) => distinctOutputs >= 6)).toBeGreaterThan(0.5);
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
    await expect(evaluateInSandbox(failing)([program])).rejects.toThrow(
      'evaluating 1 micro-world programs failed: timeout, ran longer than 60000 ms',
    );
  });
});
