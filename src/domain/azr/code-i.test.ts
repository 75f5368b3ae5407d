import { describe, expect, it } from 'vitest';
import { createFakeSandbox, failed, FAULTS } from '../../../tests/fake-sandbox.js';
import { TOPIC_RULES } from '../../../tests/topic-rules.js';
import { RunError } from '../../errors.js';
import { createCodeDomain } from './code-domain.js';
import { codeDomainSchema } from './settings.js';
import type { CallTask } from './task.js';

const create = (settings: object) => createCodeDomain(codeDomainSchema.parse(settings), TOPIC_RULES);
const fenced = create({ types: ['code_i'] });
const doctest = create({ types: ['code_i'], notation: 'doctest' });
const snippet = 'def f(x):\n    return x[::-1]';
const proposed: CallTask = { type: 'code_i', snippet, input: '[1, 2, 3]', output: null };
const checked: CallTask = { ...proposed, output: '[3, 2, 1]' };
/** Any program reverses a list of digits; anything else is an error. */
const reversing = () =>
  createFakeSandbox((code, input) =>
    code.includes('kwargs')
      ? input === '[1] + [2, 3]'
        ? '(([1, 2, 3],), {})'
        : failed('runtime_error', 'NameError')
      : `[${input.slice(1, -1).split(', ').toReversed().join(', ')}]`,
  );

describe('code_i', () => {
  it('asks for a program and an input, as doctest by a line of its own', () => {
    expect(fenced.prompt('code_i', 1)).toMatch(/an input that the reader will not see/);
    expect(fenced.prompt('code_i', 1).match(/^```input$/gm)).toHaveLength(3);
    expect(doctest.prompt('code_i', 1)).toBe('# input\n');
  });

  it('parses the completion of either notation into the same task', () => {
    expect(doctest.parse('code_i', `${snippet}\n>>> f([1, 2, 3])\n`)).toEqual(proposed);
    expect(fenced.parse('code_i', `\`\`\`python\n${snippet}\n\`\`\`\n\`\`\`input\nf([1, 2, 3])\n\`\`\`\n`)).toEqual(
      proposed,
    );
    expect(doctest.parse('code_i', snippet)).toBeNull();
  });

  it('shows the solver the program and the output, never the input', () => {
    const shown = `# input?\n${snippet}\n>>> f(?)\n[3, 2, 1]\n`;
    expect(doctest.render(checked)).toBe(shown);
    expect(doctest.question(checked)).toBe(shown);
    expect(fenced.render(checked)).toBe(`\`\`\`python\n${snippet}\n\`\`\`\n\n\`\`\`output\n[3, 2, 1]\n\`\`\`\n`);
    expect(fenced.question(checked)).toContain(fenced.render(checked));
    expect(fenced.question(checked)).not.toContain('[1, 2, 3]');
    expect(() => doctest.render(proposed)).toThrow('once it has been checked');
  });

  it('is checked as code_o is: its own call, then random ones where answers are guarded', async () => {
    const guarded = create({
      types: ['code_i'],
      notation: 'doctest',
      validity: { distinctOutputs: { of: 8, atLeast: 6 } },
    });
    const sandbox = createFakeSandbox((_, input) => input);
    const [check] = await guarded.check([proposed], sandbox);
    expect(check).toMatchObject({ valid: true, task: { type: 'code_i', output: '[1, 2, 3]' } });
    expect(sandbox.requests[0]?.program.calls).toHaveLength(8);
    const [same] = await guarded.check(
      [proposed],
      createFakeSandbox(() => '7'),
    );
    expect(same).toMatchObject({ outcome: 'guessable', task: null });
  });

  it('is a repeat when the solver would see the same, whatever the input was', async () => {
    const sandbox = createFakeSandbox(() => '7');
    const tasks = [proposed, { ...proposed, input: '[2]' }];
    const checks = await doctest.check(tasks, sandbox, { earlier: new Set() });
    expect(checks.map(({ outcome }) => outcome)).toEqual(['ok', 'repeat']);
  });
});

describe('an answer to code_i', () => {
  it('is right when the program gives an equal output on it: literals go to the program as they are', async () => {
    const sandbox = reversing();
    const answers = ['[1, 2, 3]\n', 'f([1, 2, 3])', '[1,2,3]', '[3, 2, 1]', ''];
    expect(await doctest.grade(checked, answers, sandbox)).toEqual(['pass', 'pass', 'pass', 'fail', 'fail']);
    expect(sandbox.requests.map(({ program }) => program.code)).toEqual(Array.from({ length: 5 }, () => snippet));
    expect(sandbox.requests.map(({ program }) => program.calls)).toEqual([
      ['[1, 2, 3]'],
      ['[1, 2, 3]'],
      ['[1, 2, 3]'],
      ['[3, 2, 1]'],
      [''],
    ]);
    expect(sandbox.requests[0]?.options).toMatchObject({ determinism: false, limits: { timeoutMs: 2000 } });
  });

  it('meets the program as data: code in it is evaluated on its own first', async () => {
    const sandbox = reversing();
    expect(await doctest.grade(checked, ['[1] + [2, 3]', 'x', 'f([3]) or [1]'], sandbox)).toEqual([
      'pass',
      'fail',
      'fail',
    ]);
    const programs = sandbox.requests.map(({ program }) => [program.code === snippet, program.calls]);
    expect(programs).toContainEqual([true, ['[1, 2, 3]']]);
    expect(programs.filter(([isTask]) => isTask === true)).toHaveLength(1);
  });

  it('keeps keyword arguments, whatever their names', async () => {
    const recorded = createFakeSandbox((code) => (code.includes('kwargs') ? "((1,), {'a b': 2})" : '[3, 2, 1]'));
    await doctest.grade(checked, ["1, **{'a b': 2}", '1, n=2'], recorded);
    const calls = recorded.requests
      .filter(({ program }) => program.code === snippet)
      .flatMap(({ program }) => program.calls);
    expect(calls.toSorted()).toEqual(["1, **{'a b': 2}", "1, **{'n': 2}"]);
  });

  it('may hold an integer that has no decimal digits in Python', async () => {
    const sandbox = createFakeSandbox(() => '[3, 2, 1]');
    const long = `0x${'f'.repeat(5000)}`;
    expect(await doctest.grade(checked, [long, `[-${long}]`], sandbox)).toEqual(['pass', 'pass']);
    expect(sandbox.requests.map(({ program }) => program.calls)).toEqual([[long], [`[-${long}]`]]);
  });

  it('of a recorded task whose own input is code meets the program as written', async () => {
    const sandbox = createFakeSandbox((code) =>
      code === snippet ? '[3, 2, 1]' : '((<function <lambda> at 0x…>,), {})',
    );
    const recorded = { ...checked, input: 'lambda x: x' };
    const answer = 'f(lambda x: [1])';
    expect(await doctest.grade(recorded, [answer], sandbox)).toEqual(['pass']);
    expect(sandbox.requests.at(-1)?.program).toEqual({ code: snippet, calls: ['lambda x: [1]'] });
    expect(await doctest.grade(checked, [answer], sandbox)).toEqual(['fail']);
  });

  it('is a fail whatever its run ends in, but never for the sandbox', async () => {
    for (const outcome of FAULTS) {
      expect(
        await doctest.grade(
          checked,
          ['[1]'],
          createFakeSandbox(() => failed(outcome, 'so')),
        ),
      ).toEqual(['fail']);
    }
    const dead = createFakeSandbox(() => failed('sandbox_failure', 'no worker starts'));
    await expect(doctest.grade(checked, ['[1]'], dead)).rejects.toThrow(RunError);
    await expect(doctest.grade(checked, ['[1] * 2'], dead)).rejects.toThrow('the fake sandbox keeps failing');
  });

  it('runs once however often it is given', async () => {
    const sandbox = reversing();
    expect(
      await doctest.grade(
        checked,
        Array.from({ length: 8 }, () => '[1, 2, 3]'),
        sandbox,
      ),
    ).toEqual(Array.from({ length: 8 }, () => 'pass'));
    expect(sandbox.requests).toHaveLength(1);
  });

  it('is what stands in an input block, of an instructed model', async () => {
    const sandbox = reversing();
    const answers = ['Thus\n```input\nf([1, 2, 3])\n```', '[1, 2, 3]', '```output\n[1, 2, 3]\n```'];
    expect(await fenced.grade(checked, answers, sandbox)).toEqual(['pass', 'fail', 'fail']);
  });
});
