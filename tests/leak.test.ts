/**
 * No role is told what it must find out, and no expected output enters a sandbox. Canary tasks, whose outputs are computed and stand
 * nowhere in their text, go through propose, check, attempt and grade; everything that is said on the way is recorded and searched.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { codeDomainSchema, createCodeDomain, type CodeTask } from '../src/domain/azr/index.js';
import type { Domain } from '../src/domain/domain.js';
import { attemptTasks } from '../src/pipeline/attempts.js';
import { propose, type ProposeOptions } from '../src/pipeline/propose.js';
import type { Workspace } from '../src/pipeline/workspace.js';
import type { Program, Sandbox } from '../src/sandbox/sandbox.js';
import { TOPIC_RULES } from './topic-rules.js';

/** Workers load compiled JavaScript, so the sandbox comes from the build. */
const built = new URL('../dist/sandbox/wasm/wasm-sandbox.js', import.meta.url).href;
const { createWasmSandbox } = (await import(built)) as typeof import('../src/sandbox/wasm/wasm-sandbox.js');

const TYPES = ['code_o', 'code_i', 'code_f'] as const;
type TypeName = (typeof TYPES)[number];
const NOTATIONS = ['doctest', 'fenced'] as const;
type NotationName = (typeof NOTATIONS)[number];

/** Letters A–F become letters T–Y with dashes between, so no output shares more than a letter with a program or an input. */
const PROGRAM = "def f(x):\n    return '-'.join(chr(ord(c) + 19) for c in x.upper())";
const INPUT = "'FACADE'";
const INPUTS = [INPUT, "'ABBA'", "'DEAF'", "'CAFE'", "'BEAD'", "'FADED'", "'DECADE'", "'ACCEDE'", "'BEEF'", "'FEED'"];
/** Right, and written another way than the canaries' own: what the grading is sent must come from here, not from the task. */
const ANSWERS: Readonly<Record<TypeName, readonly string[]>> = {
  code_o: ["'Y-T-V-T-W-X'", "'Z'"],
  code_i: ["'fac' + 'ade'", "f('facade')", "'bad'"],
  code_f: ["def f(text):\n    return '-'.join([chr(ord(c) + 19) for c in text.upper()])", 'def f(x):\n    return x'],
};
const ANSWER_BLOCK = { code_o: 'output', code_i: 'input', code_f: 'python' } as const;

const block = (label: string, text: string): string => `\`\`\`${label}\n${text}\n\`\`\`\n`;

function completionOf(type: TypeName, notation: NotationName): string {
  if (notation === 'doctest') return `${PROGRAM}\n>>> f(${INPUT})\n`;
  const inputs = type === 'code_f' ? INPUTS : [INPUT];
  const message = type === 'code_f' ? block('message', 'Letters move on.') : '';
  return block('python', PROGRAM) + inputs.map((input) => block('input', input)).join('') + message;
}

/** Whom something was said to. */
const PLACES = ['prompt', 'render', 'question', 'check', 'grading'] as const;
type Place = (typeof PLACES)[number];
type Said = Readonly<Record<Place, string[]>>;

/** Runs one canary of a type through the pipeline's own propose and attempts. */
async function follow(
  domain: Domain<CodeTask>,
  type: TypeName,
  notation: NotationName,
  real: Sandbox,
): Promise<{ readonly task: CodeTask; readonly said: Said; readonly verdicts: readonly string[] }> {
  const said: Said = { prompt: [], render: [], question: [], check: [], grading: [] };
  let asked: 'check' | 'grading' = 'check';
  const sandbox: Sandbox = {
    ...real,
    size: real.size,
    run(program: Program, options) {
      said[asked].push(program.code, ...program.calls);
      return real.run(program, options);
    },
    literals(texts) {
      said[asked].push(...texts);
      return real.literals(texts);
    },
  };
  const codes = (text: string): number[] => Array.from(text, (character) => character.codePointAt(0)!);
  const tokenizer = {
    ends: [0],
    question: (text: string) => {
      said.prompt.push(text);
      return codes(text);
    },
    decode: (tokens: readonly number[]) => String.fromCodePoint(...tokens),
    controlToken: () => undefined,
    tokenBytes: () => Array.from({ length: 128 }, (_, code) => (code === 0 ? null : Uint8Array.of(code))),
  };
  const tokens = codes(completionOf(type, notation));
  const policy = {
    tokenizer,
    sample: async () => [{ tokens, logProbs: new Float32Array(tokens.length), stopped: true }],
  };
  const solver = {
    name: 'scripted',
    attempt: async (questions: readonly string[]) => {
      said.question.push(...questions);
      const answers = ANSWERS[type].map((answer) =>
        notation === 'fenced' ? block(ANSWER_BLOCK[type], answer) : answer,
      );
      return questions.map(() => answers.map((answer) => ({ answer, status: 'answered' as const })));
    },
  };
  const workspace = {
    domain,
    config: {
      seed: 0,
      policy: { maxNewTokens: 1000, stops: [] },
      band: { min: 1, max: 1, of: ANSWERS[type].length },
      solver: { endpoint: null },
    },
    policy: async () => policy,
    solver: async () => solver,
    sandbox: async () => sandbox,
    check: (tasks: readonly (CodeTask | null)[], earlier: ReadonlySet<string> | null) =>
      domain.check(tasks, sandbox, earlier ? { earlier } : {}),
  } as unknown as Workspace;

  const key = { phase: 'label', arm: '', batch: 0 } as const;
  const [proposal] = await propose(workspace, {
    key,
    policy: policy as unknown as ProposeOptions['policy'],
    size: 1,
    adapter: null,
    temperature: 1,
    earlier: new Set(),
  });
  const { row, task } = proposal!;
  if (task === null) throw new Error(`the canary is invalid: ${row.outcome}, ${row.detail}`);
  said.render.push(row.rendered!);
  asked = 'grading';
  const { attempts } = await attemptTasks(workspace, [{ id: row.id, task }], {
    key,
    purpose: 'attempt',
    index: 0,
    split: 'label',
  });
  return { task, said, verdicts: attempts.map(({ verdict }) => verdict) };
}

/** What must not be said, and where. */
function secretsOf(
  task: CodeTask,
): { readonly name: string; readonly text: string; readonly places: readonly Place[] }[] {
  if (task.type === 'code_f') {
    return [
      { name: 'program', text: task.snippet, places: ['prompt', 'render', 'question', 'grading'] },
      ...task.outputs!.map((text, i) => {
        const isHidden = i >= task.shown;
        return { name: `output ${i}`, text, places: isHidden ? PLACES : (['prompt', 'check', 'grading'] as const) };
      }),
    ];
  }
  if (task.type === 'code_o') return [{ name: 'output', text: task.output!, places: PLACES }];
  return [
    { name: 'input', text: task.input, places: ['prompt', 'render', 'question', 'grading'] },
    { name: 'output', text: task.output!, places: ['prompt', 'check', 'grading'] },
  ];
}

/** A secret is looked for without its quotes, so that it is found within other text. */
function leaks(task: CodeTask, said: Said): string[] {
  return secretsOf(task).flatMap(({ name, text, places }) => {
    const inner = text.replaceAll(/^'|'$/g, '');
    return places
      .filter((place) => said[place].some((spoken) => spoken.includes(inner)))
      .map((at) => `${name} in ${at}`);
  });
}

describe.each(NOTATIONS)('in %s notation', (notation) => {
  const settings = codeDomainSchema.parse({
    types: [...TYPES],
    notation,
    validity: { distinctOutputs: { of: 8, atLeast: 6 } },
    limits: { timeoutMs: 1000, memoryMiB: 64 },
  });
  const whole = createCodeDomain(settings, TOPIC_RULES);
  let sandbox: Sandbox;
  beforeAll(async () => {
    sandbox = await createWasmSandbox({ size: 1 });
  });
  afterAll(() => sandbox.close());
  const followed = (type: TypeName, changed: Partial<Domain<CodeTask>> = {}) =>
    follow({ ...whole, kinds: [type], ...changed }, type, notation, sandbox);

  it.each(TYPES)('%s tells nobody what is to be found out', async (type) => {
    const { task, said, verdicts } = await followed(type);
    expect(leaks(task, said)).toEqual([]);
    // The canaries went all the way: each was asked, and the right answers passed.
    expect(said.check.join('\n')).toContain('chr(ord(c) + 19)');
    expect(said.question).toHaveLength(1);
    expect(verdicts).toEqual(ANSWERS[type].map((_, i) => (i === ANSWERS[type].length - 1 ? 'fail' : 'pass')));
    expect(said.grading.length > 0).toBe(type !== 'code_o');
  });

  it.each(TYPES)('%s: a domain that tells is caught', async (type) => {
    const secret = (task: CodeTask): string => {
      if (task.type === 'code_f') return `${task.snippet}\n${task.outputs!.at(-1)}`;
      return task.type === 'code_i' ? task.input : task.output!;
    };
    const found = type === 'code_f' ? ['program', 'output 9'] : [type === 'code_i' ? 'input' : 'output'];
    const telling: [Place, Partial<Domain<CodeTask>>][] = [
      ['render', { render: (task) => `${whole.render(task)}${secret(task)}\n` }],
      ['question', { question: (task) => `${whole.question(task)}# it is ${secret(task)}\n` }],
      [
        'grading',
        {
          async grade(task, answers, asked) {
            await asked.run({ code: `def f(x):\n    return x == ${JSON.stringify(secret(task))}`, calls: ['1'] });
            await asked.run({ code: secret(task), calls: [secret(task)] });
            return whole.grade(task, answers, asked);
          },
        },
      ],
    ];
    for (const [place, changed] of telling) {
      const { task, said } = await followed(type, changed);
      expect(leaks(task, said)).toEqual(found.map((name) => `${name} in ${place}`));
    }
  });

  it.each(TYPES)('%s: a prompt or a check that tells is caught', async (type) => {
    const { task } = await followed(type);
    const output = task.type === 'code_f' ? task.outputs!.at(-1)! : task.output!;
    const name = type === 'code_f' ? 'output 9' : 'output';
    const prompted = await followed(type, { prompt: (kind, seed) => `${whole.prompt(kind, seed)}# not ${output}\n` });
    expect(leaks(prompted.task, prompted.said)).toEqual([`${name} in prompt`]);
    const checked = await followed(type, {
      async check(tasks, asked, options) {
        await asked.run({ code: 'def f(x):\n    return x', calls: [output] });
        return whole.check(tasks, asked, options);
      },
    });
    expect(leaks(checked.task, checked.said)).toEqual([`${name} in check`]);
  });
});
