/** How code tasks and answers are written down: fenced blocks for instructed models, doctest lines in the micro-world. */
import { tryParseLiteral } from './literal.js';

export const NOTATIONS = ['fenced', 'doctest'] as const;
export type NotationName = (typeof NOTATIONS)[number];

/** A program and the text between the brackets of its call. */
export interface ProgramAndInput {
  readonly snippet: string;
  readonly input: string;
}

export interface Notation {
  readonly name: NotationName;
  /** Whether the generator must be told what to write; a model of the micro-world writes nothing but tasks. */
  readonly needsInstructions: boolean;
  /** The program and input of a completion; null when either is missing or cut off. */
  readProgramAndInput(completion: string): ProgramAndInput | null;
  writeProgramAndInput(task: ProgramAndInput): string;
  /** The answer in a solver's text; null when there is none. */
  readAnswer(text: string, kind: BlockName): string | null;
}

/** The labels of fenced blocks. */
export type BlockName = 'python' | 'input' | 'output' | 'message';

/** Blocks of Markdown, the last of each label counts; a model may think aloud first, `<think>…</think><answer>…</answer>`. */
const fenced: Notation = {
  name: 'fenced',
  needsInstructions: true,
  readProgramAndInput(completion) {
    const snippet = lastBlock(completion, 'python');
    const input = lastBlock(completion, 'input');
    return snippet === null || input === null ? null : { snippet, input: withoutCall(input) };
  },
  writeProgramAndInput: ({ snippet, input }) => `${fence('python', snippet)}\n\n${fence('input', input)}\n`,
  readAnswer: lastBlock,
};

/** The program, then `>>> f(…)` on one line; the answer is the next line. */
const doctest: Notation = {
  name: 'doctest',
  needsInstructions: false,
  readProgramAndInput(completion) {
    const match = /^(?<snippet>def f\([^]*?)\n>>> f\((?<input>[^\n]*)\)\n?$/.exec(completion);
    const { snippet, input } = match?.groups ?? {};
    if (snippet === undefined || input === undefined || snippet.includes('>>>')) return null;
    // Positional literals that end on this line: in brackets of their own a comment would swallow the closing one.
    return tryParseLiteral(`[${input}]`) === null ? null : { snippet, input };
  },
  writeProgramAndInput: ({ snippet, input }) => `${snippet}\n>>> f(${input})\n`,
  readAnswer: (text) => text.split('\n', 1)[0] ?? null,
};

export function notationOf(name: NotationName): Notation {
  return name === 'fenced' ? fenced : doctest;
}

export function fence(label: BlockName, text: string): string {
  return `\`\`\`${label}\n${text}\n\`\`\``;
}

/** The inside of the last closed block of that label, in the last answer where the text has one, else after the thinking. */
export function lastBlock(text: string, label: BlockName): string | null {
  const answerStart = text.lastIndexOf('<answer>');
  const thinkingEnd = text.lastIndexOf('</think>');
  let final = text;
  if (answerStart !== -1) final = text.slice(answerStart + '<answer>'.length).split('</answer>', 1)[0] ?? '';
  else if (thinkingEnd !== -1) final = text.slice(thinkingEnd + '</think>'.length);
  const block = new RegExp(`^[ \\t]*\`\`\`${label}[ \\t]*\\n(?:([^]*?)\\n)?[ \\t]*\`\`\`[ \\t]*$`, 'gm');
  const last = [...final.replaceAll('\r\n', '\n').matchAll(block)].at(-1);
  return last === undefined ? null : (last[1] ?? '');
}

/** `f(1, 2)` stands for its arguments `1, 2`. */
export function withoutCall(input: string): string {
  const call = /^\s*f\s*\(([^]*)\)\s*$/.exec(input);
  return call?.[1] ?? input;
}
