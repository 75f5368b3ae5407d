import { describe, expect, it } from 'vitest';
import { perturbedInputs, readEvaluations } from './evaluation.js';

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
