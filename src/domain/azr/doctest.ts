/** Doctest notation, of the micro-world's models: a program, then `>>> f(…)` on one line; the answer follows. */
import { answerEnd, taskEnd } from './doctest-ends.js';
import { tryParseLiteral } from './literal.js';
import type { Notation, ProgramAndInput } from './notation.js';

/** Every task, question and answer ends in a line break of its own. */
export const doctest: Notation = {
  taskEnd,
  answerEnd,
  needsInstructions: false,
  opening: { code_o: '# output\n', code_i: '# input\n', code_f: '# function\n' },
  drawsInputs: true,
  readProgramAndInput,
  writeProgramAndInput,
  writeProgramAndOutput: ({ snippet, output }) => `# input?\n${snippet}\n>>> f(?)\n${output}\n`,
  readFunction(completion) {
    const read = readProgramAndInput(completion);
    return read && { snippet: read.snippet, inputs: [read.input], message: '' };
  },
  writeFunction: ({ snippet, inputs }) => `${snippet}\n${inputs.map(call).join('')}`,
  writeExamples: ({ pairs }) =>
    `# function?\n${pairs.map(({ input, output }) => `${call(input)}${output}\n`).join('')}`,
  writeAnswer: (answer) => `${answer}\n`,
  readAnswer: (text, kind) => (kind === 'python' ? text.replace(/\n$/, '') : (text.split('\n', 1)[0] ?? null)),
};

function call(input: string): string {
  return `>>> f(${input})\n`;
}

function writeProgramAndInput({ snippet, input }: ProgramAndInput): string {
  return `${snippet}\n${call(input)}`;
}

function readProgramAndInput(completion: string): ProgramAndInput | null {
  const match = /^(?<snippet>def f\([^]*?)\n>>> f\((?<input>[^\n]*)\)\n?$/.exec(completion);
  const { snippet, input } = match?.groups ?? {};
  if (snippet === undefined || input === undefined || snippet.includes('>>>')) return null;
  // Positional literals that end on this line: in brackets of their own a comment would swallow the closing one.
  return tryParseLiteral(`[${input}]`) === null ? null : { snippet, input };
}
