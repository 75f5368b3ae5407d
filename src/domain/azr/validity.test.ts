import { describe, expect, it } from 'vitest';
import { createFakeSandbox, failed, PLAIN_FACTS, type Scripted } from '../../../tests/fake-sandbox.js';
import { TOPIC_RULES } from '../../../tests/topic-rules.js';
import { RunError } from '../../errors.js';
import type { SyntaxFacts } from '../../sandbox/sandbox.js';
import { createCodeDomain } from './code-domain.js';
import { codeDomainSchema } from './settings.js';
import { computedOutput, type CallTask } from './task.js';

const MICRO_WORLD = {
  allowedImports: [],
  forbiddenSyntax: ['Lambda', 'Pow', 'ClassDef', 'Global'],
  allowedCalls: ['sum', 'sorted'],
  largestInteger: 9999,
  onlyFunction: true,
  maxReprLength: 36,
  distinctOutputs: { of: 8, atLeast: 6 },
};
const domainWith = (validity: object = MICRO_WORLD) =>
  createCodeDomain(codeDomainSchema.parse({ notation: 'doctest', validity }), TOPIC_RULES);
const task = (input = '[1, 2]', snippet = 'def f(x):\n    return x'): CallTask => ({
  type: 'code_o',
  snippet,
  input,
  output: null,
});
const echo = (_: string, input: string): string => input;

async function outcomeOf(
  call: (code: string, input: string, index: number) => Scripted,
  facts: Partial<SyntaxFacts> = {},
  validity?: object,
): Promise<string> {
  const sandbox = createFakeSandbox(call, () => ({ ...PLAIN_FACTS, ...facts }));
  const [check] = await domainWith(validity).check([task()], sandbox);
  return check?.valid === true ? 'ok' : `${check?.outcome}: ${check?.detail}`;
}

describe('validity', () => {
  it('fills in the output of a valid task', async () => {
    const [check] = await domainWith().check([task()], createFakeSandbox(echo));
    expect(check).toEqual({
      valid: true,
      outcome: 'ok',
      detail: '',
      task: { ...task(), output: '[1, 2]' },
      topic: 'other',
      facts: PLAIN_FACTS,
    });
  });

  it('takes a task without comments, in the sandbox and after it', async () => {
    const sandbox = createFakeSandbox(echo);
    const padded = task('[1, 2]  ', 'def f(x): # one\n    "two"\n\n    return x');
    const domain = domainWith();
    const [check, again] = await domain.check([padded, task()], sandbox, { earlier: new Set() });
    expect(sandbox.requests.map(({ program }) => program.code)).toEqual([task().snippet]);
    expect(domain.render(check!.task!)).toBe('def f(x):\n    return x\n>>> f([1, 2])\n');
    expect(again!.outcome).toBe('repeat');
  });

  it('asks the sandbox once a task: the input, then seven random ones of its types', async () => {
    const sandbox = createFakeSandbox(echo);
    await domainWith().check([task()], sandbox);
    expect(sandbox.requests).toHaveLength(1);
    const [{ program, options }] = sandbox.requests as [(typeof sandbox.requests)[0]];
    expect(program.calls[0]).toBe('[1, 2]');
    expect(program.calls.slice(1).every((input) => /^\[\d, \d(, \d)?\]$/.test(input))).toBe(true);
    expect(program.calls).toHaveLength(8);
    expect(options).toEqual({ limits: { timeoutMs: 2000, memoryMiB: 256 }, facts: true });
  });

  it('asks for the input alone where answers are not guarded', async () => {
    const sandbox = createFakeSandbox(echo);
    await domainWith({}).check([task()], sandbox);
    expect(sandbox.requests[0]?.program.calls).toEqual(['[1, 2]']);
  });

  it('takes no unparsed completion and no input but literals, without asking the sandbox', async () => {
    const sandbox = createFakeSandbox(echo);
    const checks = await domainWith().check([null, task('g(1)'), task('1); import os; (')], sandbox);
    expect(checks.map(({ outcome, topic, facts }) => [outcome, topic, facts])).toEqual([
      ['unparsable', 'unparsable', null],
      ['unparsable', 'unparsable', null],
      ['unparsable', 'unparsable', null],
    ]);
    expect(sandbox.requests).toEqual([]);
  });

  it('reports a program that does not parse, and one that was ended before its facts were read', async () => {
    const broken = createFakeSandbox(
      () => failed('syntax_error', 'invalid syntax (line 1)'),
      () => null,
    );
    expect(await domainWith().check([task()], broken)).toMatchObject([
      { outcome: 'syntax_error', topic: 'unparsable' },
    ]);
    const endless = createFakeSandbox(
      () => failed('timeout', 'ran longer than 2000 ms'),
      () => null,
    );
    expect(await domainWith().check([task()], endless)).toMatchObject([{ outcome: 'timeout', topic: 'unparsable' }]);
  });

  it.each([
    [{ topLevel: ['FunctionDef', 'Expr'] }, 'the program is not the function f alone'],
    [{ functions: [{ name: 'g', parameters: [], used: [] }] }, 'the program is not the function f alone'],
    [{ imports: ['os.path'] }, 'import of os.path'],
    [{ nodes: { Lambda: 1 } }, 'syntax: Lambda'],
    [{ attributes: ['append', '__class__'] }, 'attribute __class__'],
    [{ largestInteger: '100000000000000000000' }, 'a large integer'],
    [{ calledNames: { f: 1, sum: 2, print: 1 } }, 'call of print'],
  ])('forbids %j', async (facts, detail) => {
    expect(await outcomeOf(echo, facts)).toBe(`forbidden: ${detail}`);
  });

  it('allows by its settings', async () => {
    const facts = {
      topLevel: ['Import', 'FunctionDef'],
      imports: ['collections.abc'],
      calledNames: { print: 1 },
      nodes: { Lambda: 1 },
    };
    expect(await outcomeOf(echo, facts, { allowedImports: ['collections'] })).toBe('ok');
    expect(await outcomeOf(echo, facts, { allowedImports: ['math'] })).toBe('forbidden: import of collections.abc');
    expect(await outcomeOf(echo, { largestInteger: '9999', calledNames: { f: 1, sum: 1 } })).toBe('ok');
  });

  it('wants every parameter used, unless told otherwise', async () => {
    const facts = { functions: [{ name: 'f', parameters: ['x', 'n'], used: ['x'] }] };
    expect(await outcomeOf(echo, facts)).toBe('unused_parameter: what f returns does not depend on parameter n');
    expect(await outcomeOf(echo, facts, { everyParameterUsed: false })).toBe('ok');
  });

  it.each([
    ['None', 'none_result: f returned None'],
    ['<function f>', 'not_literal: the result is no literal: <function f>'],
    ['inf', 'not_literal: the result is no literal: inf'],
    [`'${'a'.repeat(35)}'`, 'too_long: a result of 37 characters'],
  ])('refuses the result %s', async (repr, outcome) => {
    expect(await outcomeOf((_, input, index) => (index === 0 ? repr : input))).toBe(outcome);
  });

  it('counts 36 characters, not bytes, and takes None where told', async () => {
    const repr = `'${'😀'.repeat(34)}'`;
    expect(await outcomeOf((_, input, index) => (index === 0 ? repr : input))).toBe('ok');
    expect(await outcomeOf(() => 'None', {}, { noneResult: 'allow' })).toBe('ok');
  });

  it('wants six distinct outputs of eight, all exceptions together being one', async () => {
    const distinct = (count: number) => (_: string, __: string, index: number) => String(Math.min(index, count - 1));
    expect(await outcomeOf(distinct(5))).toBe('guessable: 5 distinct outputs on 8 inputs');
    expect(await outcomeOf(distinct(6))).toBe('ok');
    const raising = (until: number) => (_: string, __: string, index: number) =>
      index < until ? String(index) : failed('runtime_error', `IndexError ${index}`);
    expect(await outcomeOf(raising(5))).toBe('ok');
    expect(await outcomeOf(raising(4))).toBe('guessable: 5 distinct outputs on 8 inputs');
  });

  it('holds a program to what it does on random inputs, exceptions apart', async () => {
    const onThird = (outcome: 'timeout' | 'nondeterministic') => (_: string, input: string, index: number) =>
      index === 3 ? failed(outcome, 'so it was') : input;
    expect(await outcomeOf(onThird('timeout'))).toBe('timeout: on a random input: so it was');
    expect(await outcomeOf(onThird('nondeterministic'))).toBe('nondeterministic: on a random input: so it was');
  });

  it('gives the first reason that applies, in the documented order', async () => {
    const raise = (): Scripted => failed('runtime_error', 'IndexError: 3');
    const unused = { functions: [{ name: 'f', parameters: ['x'], used: [] }] };
    expect(await outcomeOf(raise, { ...unused, imports: ['os'] })).toBe('forbidden: import of os');
    expect(await outcomeOf(raise, unused)).toBe('unused_parameter: what f returns does not depend on parameter x');
    expect(await outcomeOf(raise)).toBe('runtime_error: IndexError: 3');
    expect(await outcomeOf(() => 'None')).toBe('none_result: f returned None');
    expect(await outcomeOf(() => `'${'a'.repeat(40)}'`)).toBe('too_long: a result of 42 characters');
  });
});

describe('repeats', () => {
  const text = domainWith().render(task());

  it('are invalid within a run, in the order in which they were written', async () => {
    const sandbox = createFakeSandbox(echo);
    const tasks = [task('[1]'), task('[1, 2]'), task('[1]'), null, task('[3]')];
    const checks = await domainWith().check(tasks, sandbox, { earlier: new Set([domainWith().render(task('[3]'))]) });
    expect(checks.map(({ outcome }) => outcome)).toEqual(['ok', 'ok', 'repeat', 'unparsable', 'repeat']);
    expect(checks[2]).toMatchObject({ valid: false, task: null, topic: 'other', facts: PLAIN_FACTS });
    expect(sandbox.requests).toHaveLength(3);
  });

  it('are valid outside a run, or where the settings allow them', async () => {
    const twice = [task(), task()];
    const valid = async (validity: object, earlier?: ReadonlySet<string>): Promise<boolean[]> =>
      (await domainWith(validity).check(twice, createFakeSandbox(echo), earlier && { earlier })).map(
        (check) => check.valid,
      );
    expect(await valid({})).toEqual([true, true]);
    expect(await valid({}, new Set())).toEqual([true, false]);
    expect(await valid({ rejectRepeats: false }, new Set([text]))).toEqual([true, true]);
  });

  it('keep the reason that they had the first time', async () => {
    const sandbox = createFakeSandbox(() => failed('runtime_error', 'ZeroDivisionError'));
    const checks = await domainWith().check([task(), task()], sandbox, { earlier: new Set([text]) });
    expect(checks.map(({ outcome }) => outcome)).toEqual(['runtime_error', 'runtime_error']);
  });
});

describe('a batch', () => {
  it('keeps the sandbox busy and its results in order', async () => {
    const sandbox = createFakeSandbox(echo, undefined, 3);
    const tasks = Array.from({ length: 20 }, (_, index) => task(`[${index}]`));
    const checks = await domainWith({}).check(tasks, sandbox);
    expect(checks.map((check) => computedOutput(check.task!))).toEqual(tasks.map(({ input }) => input));
    expect(sandbox.peak()).toBe(6);
  });

  it('fails as a whole when the sandbox does: no task is invalid for that', async () => {
    const dead = createFakeSandbox((_, input, index) =>
      index === 2 ? failed('sandbox_failure', 'no worker starts') : input,
    );
    const checking = domainWith().check([task()], dead);
    await expect(checking).rejects.toThrow(RunError);
    await expect(checking).rejects.toThrow('the fake sandbox keeps failing: no worker starts');
  });
});
