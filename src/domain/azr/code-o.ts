/** code_o: given a program and an input, predict the output. Right if the answer is a literal equal to the output. */
import { CALL_EXAMPLES, drawExamples, withExamples } from './examples.js';
import { literalEqual } from './literal.js';
import { callsToCheck, checkedOutput, proposedCall, settleCall } from './one-call.js';
import type { CallTask, TaskType } from './task.js';

const PROPOSE = `Write one task for a reader of Python code: a program and an input for it. The reader sees both and must work out, without
running anything, what the program returns.

A good task can be solved by careful step-by-step reasoning, but not at a glance: the result depends on the whole program and
on the input, so that it cannot be guessed. Prefer logic to arithmetic with large numbers, and invent something of your own
instead of a textbook algorithm.

Rules
- Define a function \`f\`; helper functions and imports of the standard library may stand before it.
- Use every parameter of \`f\`, and return a value that depends on it: a number, string, list, tuple, dict or set.
- No randomness, no clock, no files, no network, no printing, no reading of input. It must end within a second.
- The input is what stands between the brackets of \`f(…)\`: literals only, separated by commas.
- Keep the result short. Do not write the result anywhere, not even in a comment.

Give the program in a block that starts with \`\`\`python and the input in a block that starts with \`\`\`input.`;

const SOLVE = `Work out what this Python program returns for the given input, that is, the value of \`f(input)\`. Do not run it; reason step by step.
Then give the value as a Python literal, and nothing else, in a block that starts with \`\`\`output.`;

export const codeO: TaskType<CallTask & { readonly type: 'code_o' }> = {
  name: 'code_o',
  answer: 'output',

  prompt({ notation, settings }, seed) {
    if (!notation.needsInstructions) return notation.opening.code_o;
    const examples = drawExamples(CALL_EXAMPLES, settings.examples, seed).map(notation.writeProgramAndInput);
    return withExamples(PROPOSE, examples);
  },

  parse({ notation }, completion) {
    const read = notation.readProgramAndInput(completion);
    return read && { type: 'code_o', ...read, output: null };
  },

  written: (notation, task) => notation.writeProgramAndInput(task),
  rightAnswer: (task) => checkedOutput(task),
  proposal: proposedCall,
  calls: callsToCheck,
  settle: (task, _, results, writing) => settleCall(task, results, writing),
  render: (notation, task) => notation.writeProgramAndInput(task),

  question(notation, task) {
    const written = notation.writeProgramAndInput(task);
    return notation.needsInstructions ? `${SOLVE}\n\n${written}` : written;
  },

  async grade(task, answer) {
    return literalEqual(checkedOutput(task), answer) ? 'pass' : 'fail';
  },
};
