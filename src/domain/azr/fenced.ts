/** Fenced notation, of instructed models: blocks of Markdown, of which the last of each label counts. */
import { withoutCall, type BlockName, type Notation } from './notation.js';

/** A model may think aloud first, `<think>…</think><answer>…</answer>`. */
export const fenced: Notation = {
  needsInstructions: true,
  opening: { code_o: '', code_i: '', code_f: '' },
  drawsInputs: false,
  readProgramAndInput(completion) {
    const snippet = lastBlock(completion, 'python');
    const input = lastBlock(completion, 'input');
    return snippet === null || input === null ? null : { snippet, input: withoutCall(input) };
  },
  writeProgramAndInput: ({ snippet, input }) => paragraphs([fence('python', snippet), fence('input', input)]),
  writeProgramAndOutput: ({ snippet, output }) => paragraphs([fence('python', snippet), fence('output', output)]),
  readFunction(completion) {
    const snippet = lastBlock(completion, 'python');
    const inputs = blocks(completion, 'input').map(withoutCall);
    const message = lastBlock(completion, 'message');
    return snippet === null || message === null || inputs.length === 0 ? null : { snippet, inputs, message };
  },
  writeFunction: ({ snippet, inputs, message }) =>
    paragraphs([fence('python', snippet), ...inputs.map((input) => fence('input', input)), fence('message', message)]),
  writeExamples: ({ pairs, message }) =>
    paragraphs([
      ...pairs.map(({ input, output }) => `${fence('input', input)}\n${fence('output', output)}`),
      ...(message === '' ? [] : [fence('message', message)]),
    ]),
  readAnswer: lastBlock,
};

function fence(label: BlockName, text: string): string {
  return `\`\`\`${label}\n${text}\n\`\`\``;
}

function paragraphs(parts: readonly string[]): string {
  return `${parts.join('\n\n')}\n`;
}

/** The inside of the last closed block of that label, in the last answer where the text has one, else after the thinking. */
export function lastBlock(text: string, label: BlockName): string | null {
  return blocks(text, label).at(-1) ?? null;
}

function blocks(text: string, label: BlockName): string[] {
  const answerStart = text.lastIndexOf('<answer>');
  const thinkingEnd = text.lastIndexOf('</think>');
  let final = text;
  if (answerStart !== -1) final = text.slice(answerStart + '<answer>'.length).split('</answer>', 1)[0] ?? '';
  else if (thinkingEnd !== -1) final = text.slice(thinkingEnd + '</think>'.length);
  const block = new RegExp(`^[ \\t]*\`\`\`${label}[ \\t]*\\n(?:([^]*?)\\n)?[ \\t]*\`\`\`[ \\t]*$`, 'gm');
  return [...final.replaceAll('\r\n', '\n').matchAll(block)].map((match) => match[1] ?? '');
}
