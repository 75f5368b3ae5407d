/** code_i: given a program and an output, give an input. Right if the program returns an equal output on the answered input. */
import { answeredArguments } from './answered-arguments.js';
import { CALL_EXAMPLES, drawExamples, withExamples } from './examples.js';
import { runCalls } from './grading.js';
import { literalEqual, tryParseArguments } from './literal.js';
import { withoutCall } from './notation.js';
import { callsToCheck, checkedOutput, proposedCall, settleCall } from './one-call.js';
import { isPlainCode } from './plain-code.js';
import type { CallTask, Grader, TaskType } from './task.js';

const PROPOSE = `Write one task for a reader of Python code: a program, and an input that the reader will not see. The reader sees the program and
what it returns for your input, and must find an input that leads to the same output, without running anything.

A good task can be solved by reasoning backwards from the output, step by step, but not at a glance: few inputs lead to that
output, and the program does more than hand its input back. Prefer logic to arithmetic with large numbers, and invent something
of your own instead of a textbook algorithm.

Rules
- Define a function \`f\`; helper functions and imports of the standard library may stand before it.
- Use every parameter of \`f\`, and return a value that depends on it: a number, string, list, tuple, dict or set.
- No randomness, no clock, no files, no network, no printing, no reading of input. It must end within a second.
- The input is what stands between the brackets of \`f(…)\`: literals only, separated by commas.
- Keep input and result short. Write neither of them into the program, not even in a comment or as a default.

Give the program in a block that starts with \`\`\`python and the input in a block that starts with \`\`\`input.`;

const SOLVE = `This Python program returned the given output. Work out an input that leads to it; any input will do for which the program returns an
equal value. Do not run it; reason step by step. Then give the input, the text between the brackets of \`f(…)\` with literals separated
by commas, and nothing else, in a block that starts with \`\`\`input.`;

export const codeI: TaskType<CallTask & { readonly type: 'code_i' }> = {
  name: 'code_i',
  answer: 'input',

  prompt({ notation, settings }, seed) {
    if (!notation.needsInstructions) return notation.opening.code_i;
    const examples = drawExamples(CALL_EXAMPLES, settings.examples, seed).map(notation.writeProgramAndInput);
    return withExamples(PROPOSE, examples);
  },

  parse({ notation }, completion) {
    const read = notation.readProgramAndInput(completion);
    return read && { type: 'code_i', ...read, output: null };
  },

  written: (notation, task) => notation.writeProgramAndInput(task),
  rightAnswer: (task) => task.input,
  proposal: proposedCall,
  calls: callsToCheck,
  settle: (task, _, results, writing) => settleCall(task, results, writing),

  render: (notation, task) => notation.writeProgramAndOutput({ snippet: task.snippet, output: checkedOutput(task) }),

  question(notation, task) {
    const written = codeI.render(notation, task);
    return notation.needsInstructions ? `${SOLVE}\n\n${written}` : written;
  },

  async grade(task, answer, grader) {
    const expected = checkedOutput(task);
    const input = (await answeredArguments(answer, grader)) ?? (await codeAsAnswered(task, answer, grader));
    if (input === null) return 'fail';
    const [result] = await runCalls({ code: task.snippet, calls: [input] }, grader);
    return result?.outcome === 'ok' && literalEqual(expected, result.repr ?? '') ? 'pass' : 'fail';
  },
};

/**
 * A recorded task whose own input is code, say a lambda, may have no answer that is data: answers to it that are plain code meet the
 * program as they are written, if they are the arguments of one call. A task that a domain has checked is never one of these.
 */
async function codeAsAnswered(task: CallTask, answer: string, grader: Grader): Promise<string | null> {
  const input = withoutCall(answer);
  if (tryParseArguments(task.input) !== null || !isPlainCode(input, task.input)) return null;
  return (await answeredArguments(task.input, grader)) === null ? input : null;
}
