import { describe, expect, it } from 'vitest';
import type { Calls, Evaluate } from './evaluation.js';
import { codeDomainSchema, createCodeDomain, readTopicRules } from '../../domain/azr/index.js';
import { findFile } from '../paths.js';
import {
  functionQuestion,
  functionTask,
  inputQuestion,
  proposal,
  PROPOSAL_PROMPTS,
  sampleFunctionQuestions,
} from './documents.js';

const document = { task: 'def f(x):\n    return x[::-1]\n>>> f([1, 2, 3])\n', output: '[3, 2, 1]\n' };

describe('the questions', () => {
  it('of code_i show program and output; the answer is the input', () => {
    expect(inputQuestion(document)).toEqual({
      task: '# input?\ndef f(x):\n    return x[::-1]\n>>> f(?)\n[3, 2, 1]\n',
      output: '[1, 2, 3]\n',
    });
  });

  it('of code_f show the first five pairs; the answer is the program', () => {
    const pairs = Array.from({ length: 10 }, (_, n) => [`${n}`, `${2 * n}`] as const);
    expect(functionQuestion('def f(x):\n    return x * 2', pairs)).toEqual({
      task: '# function?\n>>> f(0)\n0\n>>> f(1)\n2\n>>> f(2)\n4\n>>> f(3)\n6\n>>> f(4)\n8\n',
      output: 'def f(x):\n    return x * 2\n',
    });
  });
});

describe('the proposals', () => {
  it('follow their prompt with a program, its call and the output', () => {
    expect(proposal('code_i', document)).toEqual({ task: `# input\n${document.task}`, output: '[3, 2, 1]\n' });
    expect(proposal('code_o', document)).toEqual({ task: `# output\n${document.task}`, output: '[3, 2, 1]\n' });
  });

  it('of code_f hold the program of a question with its first pair', () => {
    const question = functionQuestion('def f(x):\n    return x * 2', [
      ['4', '8'],
      ['5', '10'],
    ]);
    expect(functionTask(question)).toEqual({ task: 'def f(x):\n    return x * 2\n>>> f(4)\n', output: '8\n' });
  });
});

describe('sampleFunctionQuestions', () => {
  const echo: Evaluate = (programs) => Promise.resolve(programs.map(({ inputs }) => [...inputs]));

  it('gives the same questions for the same seed, and a larger count only adds some', async () => {
    const few = await sampleFunctionQuestions({ seed: 5, count: 50, evaluate: echo });
    const many = await sampleFunctionQuestions({ seed: 5, count: 1500, evaluate: echo });
    expect(few).toHaveLength(50);
    expect(many.slice(0, 50)).toEqual(few);
  });

  it('shows five different inputs', async () => {
    for (const { task } of await sampleFunctionQuestions({ seed: 5, count: 200, evaluate: echo })) {
      const inputs = [...task.matchAll(/>>> f\((.*)\)/g)].map((match) => match[1]);
      expect(new Set(inputs).size).toBe(5);
    }
  });

  it('leaves out functions that raise on their own input or on too many, and those that can be guessed', async () => {
    const first = await sampleFunctionQuestions({ seed: 5, count: 1, evaluate: echo });
    const refuse = async (outputs: (call: Calls) => (string | null)[]): Promise<boolean> => {
      let asked = 0;
      const evaluate: Evaluate = (programs) =>
        Promise.resolve(
          programs.map((call, index) => (asked === 0 && index === 0 ? outputs(call) : [...call.inputs])),
        ).finally(() => asked++);
      const [question] = await sampleFunctionQuestions({ seed: 5, count: 1, evaluate });
      return question!.output !== first[0]!.output || question!.task !== first[0]!.task;
    };
    expect(await refuse(({ inputs }) => inputs.map((input, i) => (i === 0 ? null : input)))).toBe(true);
    expect(await refuse(({ inputs }) => inputs.map((input, i) => (i < 9 ? input : null)))).toBe(true);
    expect(await refuse(({ inputs }) => inputs.map((_, i) => `${i % 5}`))).toBe(true);
    expect(await refuse(({ inputs }) => [...inputs])).toBe(false);
  });
});

describe('the domain', () => {
  const domain = createCodeDomain(
    codeDomainSchema.parse({ notation: 'doctest', types: ['code_o', 'code_i', 'code_f'] }),
    readTopicRules(findFile('data/topics/code-1.json', 'domain.topics')),
  );
  const [snippet, input, output] = ['def f(x):\n    return x[::-1]', '[1, 2, 3]', '[3, 2, 1]'];

  it('prompts with what the proposals begin with, and reads what follows', () => {
    for (const [kind, prompt] of Object.entries(PROPOSAL_PROMPTS)) {
      expect(domain.prompt(kind, 1)).toBe(prompt);
      const written = proposal(kind as keyof typeof PROPOSAL_PROMPTS, document).task;
      expect(domain.parse(kind, written.slice(prompt.length))).toMatchObject({ type: kind, snippet });
    }
  });

  it('asks what the questions ask', () => {
    expect(domain.question({ type: 'code_o', snippet, input, output })).toBe(document.task);
    expect(domain.question({ type: 'code_i', snippet, input, output })).toBe(inputQuestion(document).task);
    const inputs = Array.from({ length: 10 }, (_, n) => `[${n}, 1]`);
    const outputs = Array.from({ length: 10 }, (_, n) => `[1, ${n}]`);
    const pairs = inputs.map((value, n) => [value, outputs[n]!] as const);
    expect(domain.question({ type: 'code_f', snippet, inputs, outputs, message: '', shown: 5 })).toBe(
      functionQuestion(snippet, pairs).task,
    );
  });
});
