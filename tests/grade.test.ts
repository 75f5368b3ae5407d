/** Grading on the embedded sandbox: answers that try to get round it, the command, and real files where they are at hand. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkFile, codeDomainSchema, createCodeDomain, gradeFile, type CodeTask } from '../src/domain/azr/index.js';
import type { Sandbox } from '../src/sandbox/sandbox.js';
import { errorLine, propelIn, temporaryFolder } from './propel-process.js';
import { TOPIC_RULES } from './topic-rules.js';

/** Workers load compiled JavaScript, so the sandbox comes from the build. */
const built = new URL('../dist/sandbox/wasm/wasm-sandbox.js', import.meta.url).href;
const { createWasmSandbox } = (await import(built)) as typeof import('../src/sandbox/wasm/wasm-sandbox.js');

const domain = createCodeDomain(
  codeDomainSchema.parse({ notation: 'doctest', limits: { timeoutMs: 500, memoryMiB: 64 } }),
  TOPIC_RULES,
);

const SAYS_IT_IS_A_LIST = "type('T', (list,), {'__repr__': lambda self: '[4, 7]'})()";

describe('an answer that is code', () => {
  let sandbox: Sandbox;
  beforeAll(async () => {
    sandbox = await createWasmSandbox({ size: 2 });
  });
  afterAll(() => sandbox.close());
  const verdictsOf = async (task: CodeTask, answers: readonly string[]): Promise<Record<string, string>> => {
    const verdicts = await domain.grade(task, answers, sandbox);
    return Object.fromEntries(answers.map((answer, i) => [answer.slice(0, 60), verdicts[i]!]));
  };

  const sortTask: CodeTask = {
    type: 'code_i',
    snippet: 'COUNTS = []\n\ndef f(x, k=2):\n    COUNTS.append(1)\n    return [sorted(x)[:k], len(COUNTS)]',
    input: '[9, 4, 7]',
    output: '[[4, 7], 1]',
  };

  it('is an input when it evaluates to plain data', async () => {
    const answers = [
      '[4, 7]',
      'f([7, 4, 8])',
      '[4] + [7]',
      'list(range(4, 10, 3))',
      'x=[7, 4], k=2',
      '*[[4, 7]]',
      '(4, 7), 2',
    ];
    expect(Object.values(await verdictsOf(sortTask, answers))).toEqual(answers.map(() => 'pass'));
    const wrong = ['[4, 8]', '[4], 2', '[4, 7], 1', '', 'f()', '4, 7, 9', "'47'"];
    expect(Object.values(await verdictsOf(sortTask, wrong))).toEqual(wrong.map(() => 'fail'));
  });

  it('never meets the program: it cannot return the output in its stead, change it, or ask it twice', async () => {
    const tricks = [
      'f([1]) or [[4, 7], 1]',
      'f([1]), f([4, 7])',
      '[1]) or (lambda *a: [[4, 7], 1])([1]',
      '[4, 7]) if f([4, 7]) else (0',
      "(globals().__setitem__('f', lambda *a: [[4, 7], 1]), 1)",
      "f.__setattr__('__code__', (lambda *a: [[4, 7], 1]).__code__) or 1",
      'COUNTS',
      'COUNTS.append(1) or [4, 7]',
      "__import__('builtins').__dict__.__setitem__('sorted', lambda x: [4, 7]) or [1, 2]",
      SAYS_IT_IS_A_LIST,
      "type('S', (), {'__eq__': lambda a, b: True, '__repr__': lambda s: '[[4, 7], 1]'})()",
      '(lambda: [4, 7])',
      '# a comment',
      '[4, 7] # a comment',
      '[4, 7]\nf([1])',
    ];
    const verdicts = await domain.grade(sortTask, tricks, sandbox);
    const passed = tricks.filter((_, i) => verdicts[i] === 'pass');
    // These are data on their own, or say that they are: the program decides.
    expect(passed).toEqual([SAYS_IT_IS_A_LIST, '[4, 7] # a comment', '[4, 7]\nf([1])']);
  });

  it('fails when it raises, never ends, or grows without bound', async () => {
    const answers = [
      '1 / 0',
      '[1 for _ in iter(int, 1)]',
      "'a' * 10**9",
      "'a' * 3_000_000",
      '9 ** 9 ** 9',
      "open('/etc/passwd').read()",
      '['.repeat(5000),
      `[${'7, '.repeat(900_000)}]`,
      `'${'a'.repeat(5_000_000)}'`,
    ];
    expect(Object.values(await verdictsOf(sortTask, answers))).toEqual(answers.map(() => 'fail'));
  });

  it('is judged by the program’s own run on it: what raises, loops or is killed is a fail', async () => {
    const loops: CodeTask = {
      type: 'code_i',
      snippet: 'def f(n):\n    while n != 10:\n        n += 1\n    return 100 // (n - 9 if n else 0)',
      input: '3',
      output: '100',
    };
    expect(await verdictsOf(loops, ['10', '-5', '11', "'a'"])).toEqual({
      '10': 'pass',
      '-5': 'pass',
      '11': 'fail',
      "'a'": 'fail',
    });
  });

  it('to a task whose own input is code is data or functions over it, and no object that passes for any', async () => {
    const applied: CodeTask = {
      type: 'code_i',
      snippet: 'def f(x, op):\n    return op(op(x)) + 1',
      input: '3, lambda x: x * 2',
      output: '13',
    };
    const right = ['6, lambda x: x + 3', 'f(48, lambda x: x // 2)', '12, (lambda n: abs(n - 24))'];
    const itself = "'__call__': lambda s, *a: s, '__add__': lambda s, o: s, '__repr__': lambda s: '13'";
    const tricks = [
      `1, type('T', (int,), {${itself}})()`,
      `type('T', (), {${itself}})(), lambda x: x`,
      `1, (lambda t: t('T', (), {${itself}})())(type)`,
      `1, [c for c in ().__class__.__base__.__subclasses__()][0]`,
      '1, lambda x: (y for y in [1]).gi_frame.f_back.f_globals.update(f=13)',
      '1, lambda x: 12) or f(3, lambda x: 12',
      '1, f',
    ];
    expect(Object.values(await verdictsOf(applied, right))).toEqual(right.map(() => 'pass'));
    expect(Object.values(await verdictsOf(applied, tricks))).toEqual(tricks.map(() => 'fail'));
    // Where the recorded input comes to data, so must an answer.
    const ofData: CodeTask = {
      ...applied,
      snippet: 'def f(x):\n    return x(12) if callable(x) else x',
      input: '26 // 2',
      output: '13',
    };
    expect(Object.values(await verdictsOf(ofData, ['13', 'lambda x: 13']))).toEqual(['pass', 'fail']);
  });

  const doubled: CodeTask = {
    type: 'code_f',
    snippet: 'def f(x):\n    return x * 2',
    inputs: ['1', "'ab'", '[0]', '-4', '2.5'],
    outputs: ['2', "'abab'", '[0, 0]', '-8', '5.0'],
    message: '',
    shown: 2,
  };

  it('is a function when it is right on every hidden input', async () => {
    const right = [
      'def f(x):\n    return x + x',
      'f = lambda x: 2 * x',
      'def g(x):\n    return x * 2',
      'import math\ndef f(x): return x * 2',
    ];
    expect(Object.values(await verdictsOf(doubled, right))).toEqual(right.map(() => 'pass'));
    const wrong = [
      "def f(x):\n    return {1: 2, 'ab': 'abab'}.get(x)",
      'def f(x):\n    return x * 2 if x != 2.5 else 6',
      'def f(x):\n    return x *',
      'def f(x):\n    while True: pass',
      'def f(x):\n    return f(x)',
      'def f(x):\n    raise SystemExit',
      'import socket\ndef f(x): return x * 2',
      'class A:\n    __eq__ = lambda a, b: True\n    __repr__ = lambda a: "-8"\ndef f(x):\n    return A()',
      // What one call leaves behind answers no other.
      'N = []\ndef f(x):\n    N.append(x)\n    return [[0, 0], -8, 5.0][len(N) - 1]',
      'def f(x, n=iter([[0, 0], -8, 5.0])):\n    return next(n)',
      'def f(x):\n    f.n = getattr(f, "n", -1) + 1\n    return [[0, 0], -8, 5.0][f.n]',
      'no program',
      '',
      `x = '${'a'.repeat(3_000_000)}'`,
    ];
    expect(Object.values(await verdictsOf(doubled, wrong))).toEqual(wrong.map(() => 'fail'));
  });
});

describe('propel grade', () => {
  const folder = temporaryFolder();
  const write = (name: string, rows: readonly object[]): string => {
    writeFileSync(join(folder, name), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
    return name;
  };
  const tasks = write('tasks.jsonl', [
    { snippet: 'def f(x):\n    return x[::-1]', input: '[1, 2]', output: '[2, 1]', imports: [] },
  ]);
  const answers = write('answers.jsonl', [{ id: 0, answers: ['[1, 2]', '[2, 1]'] }]);
  const strangers = write('strangers.jsonl', [{ id: 'x', answers: ['1'] }]);

  it('prints one document', () => {
    for (const [type, verdicts] of [
      ['code_o', ['fail', 'pass']],
      ['code_i', ['pass', 'fail']],
    ] as const) {
      const ended = propelIn(folder, ['grade', '--type', type, '--tasks', tasks, '--answers', answers, '--json']);
      expect(ended.code).toBe(0);
      expect(JSON.parse(ended.stdout)).toMatchObject({
        tasks: 1,
        answers: 2,
        verdicts: { pass: 1, fail: 1, error: 0 },
        passAt1: 0.5,
        results: [{ id: 0, verdicts }],
      });
    }
  });

  it('prints pass@1 for people, its progress apart', () => {
    const { stdout, stderr } = propelIn(folder, ['grade', '--type', 'code_o', '--tasks', tasks, '--answers', answers]);
    expect(stdout).toBe(
      'pass@1 50.0% [20.7%, 100.0%] over 1 tasks of type code_o\n2 answers: 1 pass, 1 fail, 0 error\n',
    );
    expect(stderr).toMatch(/^grade: 1 of 2 answers pass \(.*\)$/m);
  });

  it('says in one line what is wrong, with exit code 2', () => {
    const refusal = (...args: string[]): string => {
      const ended = propelIn(folder, ['grade', ...args]);
      expect(ended.code).toBe(2);
      return errorLine(ended);
    };
    expect(refusal('--type', 'code_o', '--tasks', tasks, '--answers', strangers)).toBe(
      'propel: strangers.jsonl, line 1: tasks.jsonl has no task of id x; a task without an id has its row’s number, counted from 0'.replace(
        '’',
        "'",
      ),
    );
    expect(refusal('--type', 'code_o', '--tasks', 'none.jsonl', '--answers', answers)).toContain(
      'none.jsonl does not exist',
    );
    expect(refusal('--type', 'code_x', '--tasks', tasks, '--answers', answers)).toContain('code_o, code_i, code_f');
    expect(refusal('--tasks', tasks, '--answers', answers)).toContain('--type');
    expect(refusal('--type', 'code_f', '--tasks', tasks, '--answers', answers)).toContain('line 1: code_f needs');
  });
});

const data = process.env['PROPEL_CONFORMANCE_DATA'];
const isMissing = data === undefined || !existsSync(data);
if (isMissing) console.warn('SKIPPED: recorded answers are not graded; set PROPEL_CONFORMANCE_DATA to their folder');

describe.skipIf(isMissing)('recorded answers', () => {
  const path = (name: string): string => join(data ?? '', name);
  const open = (): Promise<Sandbox> => createWasmSandbox({ size: 2 });

  it.each([
    ['code_o', 'output', 1419],
    ['code_i', 'input', 1475],
  ] as const)(
    '%s: the 4,000 of a model to CRUXEval are graded as its authors did',
    { timeout: 1_200_000 },
    async (type, kind, passes) => {
      const answered = path(`cruxeval/codellama-7b-${kind}-first-400.jsonl`);
      const report = await gradeFile(path('cruxeval/cruxeval-first-400.jsonl'), answered, open, {
        type,
        shown: null,
        limits: {},
        onProgress: () => {},
      });
      const peers = readFileSync(answered, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { id: string; answers: string[]; passed: boolean[] });
      const differing = peers.flatMap(({ id, answers, passed }, row) =>
        answers.flatMap((answer, i) => {
          const verdict = report.results[row]!.verdicts[i];
          return verdict === (passed[i] ? 'pass' : 'fail') ? [] : [{ id, answer, peer: passed[i], verdict }];
        }),
      );
      expect(differing).toEqual([]);
      expect(report).toMatchObject({
        tasks: 400,
        answers: 4000,
        verdicts: { pass: passes, fail: 4000 - passes, error: 0 },
      });
      expect(report.passAt1).toBeCloseTo(passes / 4000, 10);
      console.log(`${type}: pass@1 ${(100 * report.passAt1!).toFixed(1)}% over 400 tasks`);
    },
  );

  it.each([
    ['7b_code_f_seed_io', 2544, 2543],
    ['7b_coder_code_f_seed_io', 2500, 2468],
    ['3b_coder_code_f_seed_io', 2419, 2418],
  ])(
    '%s: of %d calls that count at least %d give an equal value',
    { timeout: 600_000 },
    async (name, counted, equal) => {
      const report = await checkFile(path(`absolute-zero/${name}.jsonl`), open);
      expect(report.calls).toMatchObject({ total: 2556, counted });
      expect(report.calls.equal).toBeGreaterThanOrEqual(equal);
    },
  );
});
