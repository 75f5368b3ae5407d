/** Fuzzing of what models and users write: answers, programs, literals, and files of tasks, answers and attempts. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  checkFile,
  codeDomainSchema,
  createCodeDomain,
  gradeFile,
  readTopicRules,
} from '../../dist/domain/azr/index.js';
import { fenced } from '../../dist/domain/azr/fenced.js';
import { literalEqual, tryParseArguments, tryParseLiteral } from '../../dist/domain/azr/literal.js';
import { fencedBlocks } from '../../dist/domain/azr/markdown.js';
import { isPlainCode } from '../../dist/domain/azr/plain-code.js';
import { nameF } from '../../dist/domain/azr/program.js';
import { pythonSource } from '../../dist/domain/azr/value-text.js';
import { USUAL_SPECIAL_TOKENS } from '../../dist/domain/special-tokens.js';
import { skeleton } from '../../dist/metrics/python-tokens.js';
import { readAttempts } from '../../dist/pipeline/attempts-file.js';
import { loadConfig } from '../../dist/pipeline/config-file.js';

const decoder = new TextDecoder();
const rules = readTopicRules(codeDomainSchema.parse({}).topics);
const domains = ['fenced', 'doctest'].map((notation) =>
  createCodeDomain(codeDomainSchema.parse({ notation, types: ['code_o', 'code_i', 'code_f'] }), rules),
);
const config = loadConfig('pipelines/azr-micro.yaml', ['domain.types=[code_o, code_i, code_f]']);

/** A sandbox that runs nothing: every call comes to the same list. */
const sandbox = {
  name: 'none',
  size: 2,
  versions: {},
  run: async ({ calls }) => ({
    calls: calls.map(() => ({ outcome: 'ok', repr: '[1, 2]', detail: '' })),
    facts: null,
    milliseconds: 0,
  }),
  literals: async (texts) => texts.map(() => null),
  close: async () => {},
};

/** Hands the bytes over as a file. */
const inFile = (read) => async (bytes) => {
  const folder = mkdtempSync(join(tmpdir(), 'fuzz-answers-'));
  try {
    const path = join(folder, 'rows.jsonl');
    writeFileSync(path, bytes);
    return await read(path, folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
};
const ofText = (read) => (bytes) => read(decoder.decode(bytes));
/** A piece as often as a megabyte holds it. */
const megabyteOf = (piece) => () => piece.repeat(Math.ceil(1e6 / piece.length));
const lines = (rows) => rows.map((row) => `${JSON.stringify(row)}\n`).join('');

const PROGRAM = 'def f(x, n=2):\n    return [y * n for y in x if y]';
const ANSWERS = [
  'Result:\n```output\n[1, 1]\n```<|im_end|>',
  '<think>```output\n[9]\n```</think>\n<answer>output: [1, {2: (3.5, None)}]</answer>',
  '1. So\n2. ```input\n   [1], n=2\n   ```\n',
  '> ```python\n> def f(x):\n>     return x\n> ```\n\n```python\ndef test_f():\n    assert f(1) == 1\n```',
  '````markdown\n~~~output\n{1, 2}\n~~~\n````',
  '[1, 1]</s><pad>',
];
const COMPLETIONS = [
  `\`\`\`python\n${PROGRAM}\n\`\`\`\n\`\`\`input\n[1, 2], n=3\n\`\`\`\n\`\`\`input\n[]\n\`\`\`\n\`\`\`message\nIt doubles.\n\`\`\``,
  `${PROGRAM}\n>>> f([1, 2], 3)\n`,
];
const LITERALS = [
  `[1, -2.5e-3, 'a\\n\\x41\\u00e9', b"\\xff", {1: (2,), 'k': {3, 4}}, None, True, ...]`,
  `{'a': [1, [2, [3]]], (1, 2): 1+2j, 0x_ff: "it's" 'so'}`,
  ' # c\n\\\n(1_000,\n 0b101, ) # d\n',
  `'''a''b\\''''`,
];
const ARGUMENTS = ['[1], key={"a": 2}, n=-1', "f('x', (lambda x: x.sort()))", '1, # c\n2,'];
const TASK_ROWS = [
  { id: 'a', snippet: PROGRAM, input: '[1]', output: '[1, 2]', imports: ['import math'] },
  { snippet: PROGRAM, inputs: ['[1]', '[2]'], outputs: ['[2]', 'dict(k=1)'], message: 'doubles', imports: [] },
  { id: 3, code: 'def g(x):\n    return x', input: '1', output: "float('inf')" },
];
const ANSWER_ROWS = [{ id: 'a', answers: ['[1, 2]', '```output\n[1]\n```'] }];
const CALL_TASKS = lines([TASK_ROWS[0]]);
const ATTEMPT_ROWS = [
  { type: 'code_i', snippet: PROGRAM, input: '[1]', output: '[2]', passes: 3, k: 8 },
  {
    snippet: PROGRAM,
    inputs: ['[1]', '[2]'],
    outputs: ['[2]', '[4]'],
    message: 'm',
    verdicts: ['pass', 'fail', 'error'],
  },
];

const HOSTILE_TEXT = [
  '```output\n',
  '~~~\n',
  '```',
  '`',
  '> ',
  '- ',
  '1. ',
  '- ```output\n',
  '<think>',
  '<answer>',
  '</s>',
  '<pad> ',
  ' ',
  '\n',
  '\r\n',
  'output:',
  'f(',
  ')',
  '>>> f(1)\n',
  'def f(',
  'def ',
  'f = ',
  'from a import ',
  'import a as f\n',
  'lambda ',
  'async\n',
  'f, f ',
  "\\'",
  "'\\",
  '"""\\',
  '"',
  "'a",
  '0.',
  '#\n',
  '\\\n',
  '[',
  '(',
  '{1:',
  '-',
  '1,',
  "'',",
  '{},',
  '1_',
  '0x1',
  '\u{1F642}',
  '\0',
].map(megabyteOf);
const nested = (open, inside, close, depth) => () => open.repeat(depth) + inside + close.repeat(depth);
const HOSTILE_LITERALS = [
  () => `0x${'f'.repeat(1_200_000)}`,
  () => `0b${'1'.repeat(1_200_000)}`,
  () => '1'.repeat(1_200_000),
  () => `-1e${'9'.repeat(1_000_000)}`,
  nested('[', "''", ']', 200),
  nested('[', `'${'a'.repeat(1_000_000)}'`, ']', 199),
  nested('{1:', `'${'a'.repeat(1_000_000)}'`, '}', 199),
  nested('((', '1', '),)', 99),
  nested('{(', '1', ',)}', 99),
  () => `'${'\\n'.repeat(600_000)}'`,
  () => `{${Array.from({ length: 150_000 }, (_, i) => i).join()}}`,
  () => `{${Array.from({ length: 100_000 }, (_, i) => `${i}:()`).join()}}`,
];
const wrapped = (depth) => () =>
  Array.from({ length: depth }, (_, i) => `${i % 2 ? '```' : '~~~'}markdown\n`).join('') +
  Array.from({ length: depth }, (_, i) => `${i % 2 ? '~~~' : '```'}\n`).join('');
const HOSTILE_FILES = [
  '',
  '\n\n',
  '{',
  '[]\n',
  'null\n',
  '"a"\n',
  '{"__proto__": 1}\n',
  '{"id": 1e999, "answers": []}\n',
  () => `${'['.repeat(200_000)}${']'.repeat(200_000)}\n`,
  () => `{"snippet": ${JSON.stringify('a'.repeat(1_000_000))}, "input": "1", "output": "1"}\n`,
  () => `{"snippet": "a", "input": "1", "output": "1", "imports": [${'"import a",'.repeat(100_000)}"b"]}\n`,
  () => `{"snippet": "a", "inputs": [${'"1",'.repeat(100_000)}"1"], "outputs": []}\n`,
  () => `{"id": "a", "answers": [${'"1",'.repeat(100_000)}"1"]}\n`,
  megabyteOf('{"id":0,"answers":[]}\n'),
  megabyteOf('\n'),
  Uint8Array.of(0xff, 0xfe, 0x0a),
];

const progress = () => {};
const gradeAll = async (tasks, answers) => {
  for (const type of ['code_o', 'code_i'])
    await gradeFile(tasks, answers, async () => sandbox, { type, shown: null, limits: {}, onProgress: progress });
};

export const parsers = [
  {
    name: 'fences',
    seeds: ANSWERS,
    hostile: [...HOSTILE_TEXT, wrapped(60_000)],
    parse: ofText((text) => fencedBlocks(text)),
  },
  {
    name: 'answers',
    seeds: ANSWERS,
    hostile: [...HOSTILE_TEXT, wrapped(60_000)],
    parse: ofText((text) => {
      const written = USUAL_SPECIAL_TOKENS.withoutEnds(text);
      return ['output', 'input', 'python', 'message'].map((kind) => fenced.readAnswer(written, kind));
    }),
  },
  {
    name: 'graded answers',
    seeds: ANSWERS,
    hostile: HOSTILE_TEXT,
    parse: ofText(async (text) => {
      const calls = { snippet: PROGRAM, input: '[1]', output: '[1, 2]' };
      const functions = {
        snippet: PROGRAM,
        inputs: ['[1]', '[2]'],
        outputs: ['[1, 2]', '[1, 2]'],
        message: '',
        shown: 1,
      };
      for (const domain of domains) {
        await domain.grade({ type: 'code_o', ...calls }, [text], sandbox);
        await domain.grade({ type: 'code_i', ...calls }, [text], sandbox);
        await domain.grade({ type: 'code_f', ...functions }, [text], sandbox);
      }
    }),
  },
  ...domains[0].kinds.map((kind) => ({
    name: `completions ${kind}`,
    seeds: COMPLETIONS,
    hostile: HOSTILE_TEXT,
    parse: ofText(async (text) => {
      for (const domain of domains) await domain.check([domain.parse(kind, text)], sandbox, { earlier: new Set() });
    }),
  })),
  {
    name: 'literals',
    seeds: LITERALS,
    hostile: [...HOSTILE_TEXT, ...HOSTILE_LITERALS],
    parse: ofText((text) => {
      const value = tryParseLiteral(text);
      return value === null ? null : literalEqual(pythonSource(value), text);
    }),
  },
  {
    name: 'arguments',
    seeds: ARGUMENTS,
    hostile: [...HOSTILE_TEXT, ...HOSTILE_LITERALS],
    parse: ofText((text) => {
      const read = tryParseArguments(text);
      return [read?.positional.map(pythonSource), isPlainCode(text, 'g(lambda x: x)')];
    }),
  },
  {
    name: 'programs',
    seeds: [PROGRAM, ...COMPLETIONS],
    hostile: HOSTILE_TEXT,
    parse: ofText((text) => [nameF(text), skeleton(text)]),
  },
  {
    name: 'task files',
    seeds: [lines(TASK_ROWS)],
    hostile: HOSTILE_FILES,
    parse: inFile((path) => checkFile(path, async () => sandbox)),
  },
  {
    name: 'graded task files',
    seeds: [CALL_TASKS],
    hostile: HOSTILE_FILES,
    parse: inFile((path, folder) => {
      const answers = join(folder, 'answers.jsonl');
      writeFileSync(answers, lines(ANSWER_ROWS));
      return gradeAll(path, answers);
    }),
  },
  {
    name: 'answer files',
    seeds: [lines(ANSWER_ROWS)],
    hostile: HOSTILE_FILES,
    parse: inFile((path, folder) => {
      const tasks = join(folder, 'tasks.jsonl');
      writeFileSync(tasks, CALL_TASKS);
      return gradeAll(tasks, path);
    }),
  },
  {
    name: 'attempt files',
    seeds: [lines(ATTEMPT_ROWS)],
    hostile: HOSTILE_FILES,
    parse: inFile(async (path) => {
      for await (const _ of readAttempts(path, config)) continue;
    }),
  },
];
