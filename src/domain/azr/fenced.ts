/** Fenced notation, of instructed models: blocks of Markdown, of which the last of each label counts. */
import { fencedBlocks, type FencedBlock } from './markdown.js';
import { withoutCall, type BlockName, type Notation } from './notation.js';
import { lastWithF, programAmong } from './program.js';

/** A model may think aloud first, `<think>…</think><answer>…</answer>`. */
export const fenced: Notation = {
  needsInstructions: true,
  opening: { code_o: '', code_i: '', code_f: '' },
  drawsInputs: false,
  readProgramAndInput(completion) {
    const found = blocksOf(completion);
    const snippet = programAmong(labelled(found, 'python'));
    const input = labelled(found, 'input').at(-1);
    return snippet === null || input === undefined ? null : { snippet, input: withoutCall(input) };
  },
  writeProgramAndInput: ({ snippet, input }) => paragraphs([fence('python', snippet), fence('input', input)]),
  writeProgramAndOutput: ({ snippet, output }) => paragraphs([fence('python', snippet), fence('output', output)]),
  readFunction(completion) {
    const found = blocksOf(completion);
    const snippet = programAmong(labelled(found, 'python'));
    const inputs = labelled(found, 'input').map(withoutCall);
    const message = labelled(found, 'message').at(-1);
    return snippet === null || message === undefined || inputs.length === 0 ? null : { snippet, inputs, message };
  },
  writeFunction: ({ snippet, inputs, message }) =>
    paragraphs([fence('python', snippet), ...inputs.map((input) => fence('input', input)), fence('message', message)]),
  writeExamples: ({ pairs, message }) =>
    paragraphs([
      ...pairs.map(({ input, output }) => `${fence('input', input)}\n${fence('output', output)}`),
      ...(message === '' ? [] : [fence('message', message)]),
    ]),
  readAnswer,
};

function fence(label: BlockName, text: string): string {
  return `\`\`\`${label}\n${text}\n\`\`\``;
}

function paragraphs(parts: readonly string[]): string {
  return `${parts.join('\n\n')}\n`;
}

/** The closed blocks of the last answer where the text has one, else of what comes after the thinking. */
function blocksOf(text: string): FencedBlock[] {
  return fencedBlocks(finalPart(text));
}

const PYTHON = new Set(['python', 'py', 'python3']);
/** Labels of a block that does not say what it is. */
const UNSAID = new Set(['', 'text', 'txt', 'plaintext', 'plain']);

/** The insides of the blocks of that label. */
function labelled(blocks: readonly FencedBlock[], label: BlockName): string[] {
  const isOne = (name: string): boolean => (label === 'python' ? PYTHON.has(name) : name === label);
  return blocks.filter((block) => isOne(block.label)).map((block) => block.text);
}

/**
 * The last block of that label, of Python the one that `programAmong` finds; without any, the one block that does not say what it is; of
 * two such nothing is guessed, but that one which defines `f` is Python. What is marked as the answer, `<answer>…</answer>`, may stand
 * there without a block.
 */
function readAnswer(text: string, label: BlockName): string | null {
  const marked = markedAnswer(text);
  if (marked !== null && !marked.includes('```') && !marked.includes('~~~')) return withoutName(marked.trim(), label);
  const found = blocksOf(text);
  const named = labelled(found, label);
  const unsaid = found.filter((block) => UNSAID.has(block.label)).map((block) => block.text);
  const answers = named.length === 0 && unsaid.length === 1 ? unsaid : named;
  if (label === 'python') return lastWithF(named) ?? lastWithF(unsaid) ?? programAmong(answers);
  const answer = answers.at(-1);
  return answer === undefined ? null : withoutName(answer, label);
}

/** `output: 5` is 5; `output = 5` too, but `input = 5` stays: it may be a keyword. */
function withoutName(text: string, label: BlockName): string {
  const name = label === 'output' ? /^\s*output\s*(?::|=(?!=))/i : /^\s*input\s*:/i;
  return text.replace(name, '');
}

/** The inside of the last answer that is marked, and closed, after any thinking; null without one. */
function markedAnswer(text: string): string | null {
  const start = text.lastIndexOf('<answer>');
  const end = text.indexOf('</answer>', start);
  const inThinking = text.indexOf('</think>', start) !== -1;
  return start === -1 || end === -1 || inThinking ? null : text.slice(start + '<answer>'.length, end);
}

/** What a model means to say after its thinking: its last answer where it marks one. */
function finalPart(text: string): string {
  const thinkingEnd = text.lastIndexOf('</think>');
  const said = thinkingEnd === -1 ? text : text.slice(thinkingEnd + '</think>'.length);
  const answerStart = said.lastIndexOf('<answer>');
  if (answerStart !== -1) return said.slice(answerStart + '<answer>'.length).split('</answer>', 1)[0] ?? '';
  // Thinking that never ends holds drafts, no answer.
  return said.split('<think>', 1)[0] ?? '';
}
