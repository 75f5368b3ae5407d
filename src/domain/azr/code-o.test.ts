import { describe, expect, it } from 'vitest';
import { createFakeSandbox } from '../../../tests/fake-sandbox.js';
import { TOPIC_RULES } from '../../../tests/topic-rules.js';
import { createCodeDomain } from './code-domain.js';
import { codeDomainSchema } from './settings.js';
import type { CodeTask } from './task.js';

const fenced = createCodeDomain(codeDomainSchema.parse({}), TOPIC_RULES);
const doctest = createCodeDomain(codeDomainSchema.parse({ notation: 'doctest' }), TOPIC_RULES);
const CANARY = "'canary-7f3a91'";
const task: CodeTask = { type: 'code_o', snippet: 'def f(x):\n    return x * 2', input: '[1]', output: CANARY };

describe('code_o', () => {
  it('asks for a program and an input, with other examples for another seed', () => {
    const prompt = fenced.prompt('code_o', 1);
    expect(prompt.match(/^```python$/gm)).toHaveLength(3);
    expect(prompt.match(/^```input$/gm)).toHaveLength(3);
    expect(fenced.prompt('code_o', 1)).toBe(prompt);
    expect(new Set([1, 2, 3, 4, 5].map((seed) => fenced.prompt('code_o', seed))).size).toBe(5);
    const bare = createCodeDomain(codeDomainSchema.parse({ examples: 0 }), TOPIC_RULES);
    expect(bare.prompt('code_o', 1)).not.toContain('Example');
  });

  it('prompts a model of the micro-world with what the solver will be asked for', () => {
    expect(doctest.prompt('code_o', 1)).toBe('# output\n');
  });

  it('parses the completion of either notation into the same task', () => {
    const parsed = { type: 'code_o', snippet: 'def f(x):\n    return x * 2', input: '[1]', output: null };
    expect(doctest.parse('code_o', 'def f(x):\n    return x * 2\n>>> f([1])\n')).toEqual(parsed);
    expect(fenced.parse('code_o', `Here:\n${fenced.render(task)}`)).toEqual(parsed);
    expect(fenced.parse('code_o', 'no task')).toBeNull();
  });

  it('shows the solver the program and the input', () => {
    expect(doctest.question(task)).toBe('def f(x):\n    return x * 2\n>>> f([1])\n');
    expect(fenced.question(task)).toContain('```python\ndef f(x):\n    return x * 2\n```\n\n```input\n[1]\n```');
    expect(fenced.question(task)).toContain('```output');
  });

  it('never shows the answer', () => {
    for (const domain of [fenced, doctest]) {
      for (const shown of [domain.prompt('code_o', 1), domain.render(task), domain.question(task)])
        expect(shown).not.toContain('canary');
    }
  });

  it('takes off the special tokens that a server left on an answer', async () => {
    const sandbox = createFakeSandbox(() => '');
    const answers = ["```output\n'canary-7f3a91'\n```<|im_end|>", "<answer>'canary-7f3a91'</answer></s><pad>"];
    expect(await fenced.grade(task, answers, sandbox)).toEqual(['pass', 'pass']);
    expect(await doctest.grade(task, [`${CANARY}</s>`, `<s> ${CANARY}\n`], sandbox)).toEqual(['pass', 'pass']);
  });

  it('grades by literal equality, without the sandbox', async () => {
    const checked = { ...task, output: "{'a': 1, 'b': (2,)}" };
    const sandbox = createFakeSandbox(() => '0');
    const answers = ["{'b': (2,), 'a': 1.0}\ndef f(x)", "{'b': [2], 'a': 1}", '', "{'a': 1, 'b': (2,"];
    expect(await doctest.grade(checked, answers, sandbox)).toEqual(['pass', 'fail', 'fail', 'fail']);
    const fencedAnswers = [
      '```output\n{"a": 1, "b": (2,)}\n```',
      '{"a": 1, "b": (2,)}',
      "```output\n{'a': 1, 'b': (2,)} or True\n```",
    ];
    expect(await fenced.grade(checked, fencedAnswers, sandbox)).toEqual(['pass', 'fail', 'fail']);
    expect(sandbox.requests).toEqual([]);
    await expect(doctest.grade({ ...task, output: null }, ['1'], sandbox)).rejects.toThrow('once it has been checked');
  });
});
