import { describe, expect, it } from 'vitest';
import { createFakeSandbox, failed, FAULTS, type Scripted } from '../../../tests/fake-sandbox.js';
import { TOPIC_RULES } from '../../../tests/topic-rules.js';
import { RunError } from '../../errors.js';
import { createCodeDomain } from './code-domain.js';
import { codeDomainSchema } from './settings.js';
import type { InductionTask } from './task.js';

const create = (settings: object) =>
  createCodeDomain(codeDomainSchema.parse({ types: ['code_f'], ...settings }), TOPIC_RULES);
const fenced = create({ induction: { inputs: 4, shown: 2 } });
const doctest = create({ notation: 'doctest', induction: { inputs: 4, shown: 2 } });
const snippet = 'def f(x):\n    return x + 1';
const proposed: InductionTask = { type: 'code_f', snippet, inputs: ['5'], outputs: null, message: '', shown: 2 };
const checked: InductionTask = { ...proposed, inputs: ['5', '8', '0', '30'], outputs: ['6', '9', '1', '31'] };
const increment = (_: string, input: string): string => String(Number(input) + 1);
const block = (label: string, text: string): string => `\`\`\`${label}\n${text}\n\`\`\``;
const written = (inputs: readonly string[], message = 'one more'): string =>
  [block('python', snippet), ...inputs.map((input) => block('input', input)), block('message', message)].join('\n');

describe('code_f', () => {
  it('asks for a program, inputs and a message, as doctest by a line of its own', () => {
    const prompt = create({}).prompt('code_f', 1);
    expect(prompt.match(/^```python$/gm)).toHaveLength(3);
    expect(prompt.match(/^```input$/gm)).toHaveLength(30);
    expect(prompt.match(/^```message$/gm)).toHaveLength(3);
    expect(prompt).toContain('10 inputs');
    expect(fenced.prompt('code_f', 1).match(/^```input$/gm)).toHaveLength(12);
    expect(doctest.prompt('code_f', 1)).toBe('# function\n');
  });

  it('parses a program with all its inputs, as doctest with one', () => {
    expect(doctest.parse('code_f', `${snippet}\n>>> f(5)\n`)).toEqual(proposed);
    expect(fenced.parse('code_f', written(['5', 'f(8)', '0']))).toEqual({
      ...proposed,
      inputs: ['5', '8', '0'],
      message: 'one more',
    });
    expect(fenced.parse('code_f', `${block('python', snippet)}\n${block('input', '5')}`)).toBeNull();
    expect(fenced.parse('code_f', `${block('python', snippet)}\n${block('message', 'm')}`)).toBeNull();
  });

  it('shows the solver the first pairs, neither the program nor the rest', () => {
    const shown = '# function?\n>>> f(5)\n6\n>>> f(8)\n9\n';
    expect(doctest.render(checked)).toBe(shown);
    expect(doctest.question(checked)).toBe(shown);
    expect(fenced.render({ ...checked, message: 'one more' })).toBe(
      '```input\n5\n```\n```output\n6\n```\n\n```input\n8\n```\n```output\n9\n```\n\n```message\none more\n```\n',
    );
    expect(fenced.question(checked)).toContain(fenced.render(checked));
    for (const hidden of ['31', 'return']) expect(fenced.render(checked)).not.toContain(hidden);
    expect(() => doctest.render(proposed)).toThrow('once it has been checked');
  });
});

describe('the check of code_f', () => {
  const outcomeOf = async (
    task: InductionTask,
    call: (code: string, input: string, index: number) => Scripted,
    domain = fenced,
  ): Promise<string> => {
    const [check] = await domain.check([task], createFakeSandbox(call));
    return check!.valid ? JSON.stringify(check!.task) : `${check!.outcome}: ${check!.detail}`;
  };
  const own = (...inputs: string[]): InductionTask => ({ ...proposed, inputs });

  it('runs all inputs in one run of the program and fills in every output', async () => {
    const sandbox = createFakeSandbox(increment);
    const [check] = await fenced.check([own('5', '8', '0', '30')], sandbox);
    expect(check?.task).toEqual(checked);
    expect(sandbox.requests.map(({ program }) => program)).toEqual([{ code: snippet, calls: ['5', '8', '0', '30'] }]);
  });

  it('draws what a micro-world task lacks, by its own text: three for each missing one', async () => {
    const sandbox = createFakeSandbox(increment);
    const [check] = await doctest.check([proposed], sandbox);
    const { calls } = sandbox.requests[0]!.program;
    expect(calls).toHaveLength(1 + 3 * 3);
    expect(calls[0]).toBe('5');
    const distinct = [...new Set(calls)].slice(0, 4);
    expect(check?.task).toMatchObject({ inputs: distinct, outputs: distinct.map((input) => increment('', input)) });
    const again = createFakeSandbox(increment);
    await doctest.check([proposed], again);
    expect(again.requests[0]?.program.calls).toEqual(calls);
  });

  it('passes over drawn inputs that raise or give what cannot be an output', async () => {
    const [check] = await doctest.check(
      [proposed],
      createFakeSandbox((_, input, index) =>
        index === 1 ? failed('runtime_error', 'ValueError') : index === 2 ? '<object>' : increment('', input),
      ),
    );
    expect(check?.valid).toBe(true);
    expect((check!.task as InductionTask).outputs).not.toContain('<object>');
    expect((check!.task as InductionTask).inputs).toHaveLength(4);
  });

  it('wants as many different inputs as the settings say', async () => {
    expect(await outcomeOf(own('5', '8', '0'), increment)).toBe('too_few_inputs: 3 inputs of 4');
    expect(await outcomeOf(own('5', '8', '5', '0'), increment)).toBe('too_few_inputs: 3 inputs of 4');
    const raising = (_: string, input: string, index: number): Scripted =>
      index === 0 ? increment('', input) : failed('runtime_error', 'ValueError');
    expect(await outcomeOf(proposed, raising, doctest)).toBe('too_few_inputs: 1 inputs of 4');
    expect(JSON.parse(await outcomeOf(own('5', '8', '0', '30', '31'), increment))).toEqual(checked);
  });

  it('holds every input of the task’s own to a result that can be an output', async () => {
    const onLast = (result: Scripted) => (_: string, input: string, index: number) =>
      index === 3 ? result : increment('', input);
    const four = own('5', '8', '0', '30');
    expect(await outcomeOf(four, onLast(failed('runtime_error', 'ValueError')))).toBe('runtime_error: ValueError');
    expect(await outcomeOf(four, onLast('None'))).toBe('none_result: f returned None');
    expect(await outcomeOf(four, onLast('<f>'))).toBe('not_literal: the result is no literal: <f>');
    expect(await outcomeOf(own('5', 'x'), increment)).toBe('unparsable: an input is not a list of literals');
    const timeout = (_: string, input: string, index: number): Scripted =>
      index === 1 ? failed('timeout', 'ran longer') : increment('', input);
    expect(await outcomeOf(proposed, timeout, doctest)).toBe('timeout: on a random input: ran longer');
  });

  it('is guarded against answers that can be guessed, over its own inputs', async () => {
    const guarded = create({
      induction: { inputs: 4, shown: 2 },
      validity: { distinctOutputs: { of: 8, atLeast: 4 } },
    });
    const parity = (_: string, input: string): string => String(Number(input) % 2);
    expect(await outcomeOf(own('5', '8', '0', '30'), parity, guarded)).toBe(
      'guessable: 2 distinct outputs on 4 inputs',
    );
    expect(JSON.parse(await outcomeOf(own('5', '8', '0', '30'), increment, guarded))).toEqual(checked);
  });

  it('refuses a message that is the answer', async () => {
    const withMessage = (message: string) => ({ ...own('5', '8', '0', '123455'), message });
    expect(await outcomeOf(withMessage('def f(x): return x + 1'), increment)).toBe(
      'telling_message: the message holds code',
    );
    expect(await outcomeOf(withMessage('it ends in 123456'), increment)).toBe(
      'telling_message: the message holds a hidden output',
    );
    expect(await outcomeOf(withMessage('it is\nlambda x: x + 1'), increment)).toBe(
      'telling_message: the message holds code',
    );
    expect(JSON.parse(await outcomeOf(withMessage('each gets 1 more'), increment)).message).toBe('each gets 1 more');
    expect(JSON.parse(await outcomeOf(withMessage('lambda\nis: a letter'), increment)).outputs).toEqual([
      '6',
      '9',
      '1',
      '123456',
    ]);
    const started = performance.now();
    await outcomeOf(withMessage('lambda '.repeat(40_000)), increment);
    expect(performance.now() - started).toBeLessThan(3000);
  });

  it('bounds what the solver must read', async () => {
    const bounded = (maxQuestionLength: number) =>
      create({ notation: 'doctest', induction: { inputs: 4, shown: 2 }, validity: { maxQuestionLength } });
    const four = own('5', '8', '0', '30');
    expect(await outcomeOf(four, increment, bounded(33))).toBe('too_long: a task of 34 characters');
    expect(JSON.parse(await outcomeOf(four, increment, bounded(34)))).toEqual(checked);
  });
});

describe('an answer to code_f', () => {
  const answer = 'def f(x):\n    return 1 + x';

  it('is right when it is right on every hidden input', async () => {
    const sandbox = createFakeSandbox((code, input) => (code === answer || input === '0' ? increment('', input) : '0'));
    expect(await doctest.grade(checked, [`${answer}\n`, 'def f(x):\n    return 1\n'], sandbox)).toEqual([
      'pass',
      'fail',
    ]);
    const callsOf = (code: string) =>
      sandbox.requests.filter(({ program }) => program.code === code).flatMap(({ program }) => [program.calls]);
    // Each in an interpreter of its own, up to the first wrong one.
    expect(callsOf(answer)).toEqual([['0'], ['30']]);
    expect(callsOf('def f(x):\n    return 1')).toEqual([['0'], ['30']]);
    const wrong = createFakeSandbox(() => '2');
    expect(await doctest.grade(checked, [answer], wrong)).toEqual(['fail']);
    expect(wrong.requests).toHaveLength(1);
    expect(sandbox.requests[0]?.options).toMatchObject({ determinism: false });
  });

  it('is compared by value, and runs once however often it is given', async () => {
    const sandbox = createFakeSandbox((_, input) => `${increment('', input)}.0`);
    expect(await doctest.grade(checked, [answer, answer, answer], sandbox)).toEqual(['pass', 'pass', 'pass']);
    expect(sandbox.requests.map(({ program }) => program.calls)).toEqual([['0'], ['30']]);
  });

  it('may give its one function another name', async () => {
    const sandbox = createFakeSandbox(increment);
    const named = '```python\ndef increment(x):\n    return x + 1\n```';
    expect(await fenced.grade(checked, [named, 'no program'], sandbox)).toEqual(['pass', 'fail']);
    expect(sandbox.requests[0]?.program.code).toBe('def increment(x):\n    return x + 1\nf = increment');
  });

  it('is a fail whatever its run ends in, but never for the sandbox', async () => {
    for (const outcome of FAULTS) {
      const onLast = createFakeSandbox((_, input) => (input === '30' ? failed(outcome, '') : increment('', input)));
      expect(await doctest.grade(checked, [answer], onLast)).toEqual(['fail']);
    }
    const dead = createFakeSandbox(() => failed('sandbox_failure', 'no worker starts'));
    await expect(doctest.grade(checked, [answer], dead)).rejects.toThrow(RunError);
  });
});

describe('a domain of several types', () => {
  it('treats every task by its own type', async () => {
    const mixed = create({ types: ['code_f', 'code_o'], notation: 'doctest', induction: { inputs: 4, shown: 2 } });
    expect(mixed.kinds).toEqual(['code_f', 'code_o']);
    const text = `${snippet}\n>>> f(5)\n`;
    const tasks = [mixed.parse('code_o', text), mixed.parse('code_f', text), mixed.parse('code_i', text)];
    const sandbox = createFakeSandbox(increment);
    const checks = await mixed.check(tasks, sandbox, { earlier: new Set() });
    expect(checks.map((check) => mixed.render(check.task!).split('\n')[0])).toEqual([
      'def f(x):',
      '# function?',
      '# input?',
    ]);
    expect(sandbox.requests).toHaveLength(3);
  });
});
