/** code_f: given some inputs with their outputs and a message, write the function. Right if the outputs on the hidden inputs are equal. */
import type { CallResult } from '../../sandbox/sandbox.js';
import { badCall, failedBeyondException, guessable } from './call-results.js';
import { drawExamples, FUNCTION_EXAMPLES, withExamples } from './examples.js';
import { runCalls } from './grading.js';
import { literalEqual, tryParseArguments } from './literal.js';
import { perturbedInputs } from './perturb.js';
import { nameF } from './program.js';
import { DEFAULT_RANGES, type ValiditySettings } from './settings.js';
import type { Fault, InductionTask, TaskType } from './task.js';

/** Random inputs drawn at most, for each that a task lacks. */
const DRAWN_PER_INPUT = 3;
/** A hidden output this long does not stand in a message by chance. */
const TELLING_LENGTH = 6;

const propose = (
  inputs: number,
): string => `Write one task for a reader who knows Python: a program, ${inputs} inputs for it, and a message. The reader sees your message and half
of the inputs with what the program returns for them, and must write a program that returns the same on the other half.

A good task can be solved by careful reasoning over the examples, but not at a glance: the inputs show every branch of the program,
and differ enough to tell apart what it might be. Prefer logic to arithmetic with large numbers, and invent something of your own
instead of a textbook algorithm.

Rules
- Define a function \`f\`; helper functions and imports of the standard library may stand before it.
- Use every parameter of \`f\`, and return a value that depends on it: a number, string, list, tuple, dict or set.
- No randomness, no clock, no files, no network, no printing, no reading of input. It must end within a second.
- An input is what stands between the brackets of \`f(…)\`: literals only, separated by commas. No two inputs are the same, and most
  lead to different results; the program must not fail on any of them.
- Keep the results short. The message gives a hint at what the function is about; it holds no code, no output and no input.

Give the program in a block that starts with \`\`\`python, each input in a block of its own that starts with \`\`\`input, and the message in a
block that starts with \`\`\`message.`;

const SOLVE = `A Python function \`f\` returned the given outputs on the given inputs; an input is the text between the brackets of \`f(…)\`. Work out what
the function does, reasoning step by step, and write it: it must also return the right values on inputs that you do not see, so do not
list the given ones. Give the program, and nothing else, in a block that starts with \`\`\`python.`;

export const codeF: TaskType<InductionTask> = {
  name: 'code_f',
  answer: 'python',

  prompt({ notation, settings }, seed) {
    if (!notation.needsInstructions) return notation.opening.code_f;
    const examples = drawExamples(FUNCTION_EXAMPLES, settings.examples, seed).map((example) =>
      notation.writeFunction({ ...example, inputs: example.inputs.slice(0, settings.induction.inputs) }),
    );
    return withExamples(propose(settings.induction.inputs), examples);
  },

  parse({ notation, settings }, completion) {
    const read = notation.readFunction(completion);
    return read && { type: 'code_f', ...read, outputs: null, shown: settings.induction.shown };
  },

  written: (notation, task) =>
    notation.writeFunction({ ...task, inputs: notation.drawsInputs ? task.inputs.slice(0, 1) : task.inputs }),
  rightAnswer: ({ snippet }) => snippet,
  proposal: (notation, task) => notation.writeFunction(task),

  calls({ inputs }, proposal, { notation, settings }) {
    const own = inputs.slice(0, settings.induction.inputs);
    const read = own.map(tryParseArguments);
    const [first] = read;
    if (!first || read.includes(null)) return null;
    const lacking = notation.drawsInputs ? settings.induction.inputs - own.length : 0;
    const ranges = settings.validity.distinctOutputs ?? DEFAULT_RANGES;
    return [...own, ...perturbedInputs(first, lacking * DRAWN_PER_INPUT, proposal, ranges)];
  },

  settle(task, calls, results, { settings }) {
    const kept = keepInputs(task, calls, results, settings.validity, settings.induction.inputs);
    if (kept.fault) return { task: null, fault: kept.fault };
    const { inputs, outputs } = kept;
    const settled = { ...task, inputs, outputs: outputs.map(({ repr }) => repr ?? '') };
    const fault = guessable(outputs, settings.validity) ?? tellingMessage(settled);
    return fault ? { task: null, fault } : { task: settled, fault: null };
  },

  render: (notation, task) => notation.writeExamples({ pairs: shownPairs(task), message: task.message }),

  question(notation, task) {
    const written = codeF.render(notation, task);
    return notation.needsInstructions ? `${SOLVE}\n\n${written}` : written;
  },

  async grade(task, answer, grader) {
    const code = nameF(answer);
    const expected = checkedOutputs(task);
    // A call an interpreter: what one call leaves behind, a counter say, cannot answer the next. Most wrong answers end at the first.
    for (const [i, input] of task.inputs.entries()) {
      if (i < task.shown) continue;
      const [result] = await runCalls({ code, calls: [input] }, grader);
      if (result?.outcome !== 'ok' || !literalEqual(expected[i]!, result.repr ?? '')) return 'fail';
    }
    return 'pass';
  },
};

type Kept =
  | { readonly fault: Fault }
  | { readonly fault: null; readonly inputs: readonly string[]; readonly outputs: readonly CallResult[] };

/**
 * The task's inputs, each once and with a result that can be an expected output: its own, all of which must do, then as many drawn
 * ones as it lacks; a drawn one that repeats another, raises or gives a result that cannot be one is passed over.
 */
function keepInputs(
  task: InductionTask,
  calls: readonly string[],
  results: readonly CallResult[],
  settings: ValiditySettings,
  wanted: number,
): Kept {
  const kept = new Map<string, CallResult>();
  for (const [i, input] of calls.entries()) {
    if (kept.size === wanted) break;
    const result = results[i]!;
    const isOwn = i < task.inputs.length;
    const fault = isOwn ? badCall(result, settings) : failedBeyondException(result);
    if (fault) return { fault };
    if (!kept.has(input) && badCall(result, settings) === null) kept.set(input, result);
  }
  if (kept.size < wanted) return { fault: { outcome: 'too_few_inputs', detail: `${kept.size} inputs of ${wanted}` } };
  return { fault: null, inputs: [...kept.keys()], outputs: [...kept.values()] };
}

/** A message must not be the answer: no code, and none of the hidden outputs. */
function tellingMessage(task: InductionTask): Fault | null {
  const { message } = task;
  const fault = (what: string): Fault => ({ outcome: 'telling_message', detail: `the message holds ${what}` });
  if (/\bdef\s+\w+\s*\(/.test(message) || message.split('\n').some(holdsLambda)) return fault('code');
  const outputs = checkedOutputs(task);
  const shown = new Set(outputs.slice(0, task.shown));
  const told = outputs
    .slice(task.shown)
    .some((output) => output.length >= TELLING_LENGTH && message.includes(output) && !shown.has(output));
  return told ? fault('a hidden output') : null;
}

function holdsLambda(line: string): boolean {
  const start = line.search(/\blambda\b/);
  return start !== -1 && line.includes(':', start);
}

function shownPairs(task: InductionTask): { readonly input: string; readonly output: string }[] {
  const outputs = checkedOutputs(task);
  return task.inputs.slice(0, task.shown).map((input, i) => ({ input, output: outputs[i]! }));
}

function checkedOutputs({ outputs }: InductionTask): readonly string[] {
  if (outputs === null) throw new Error('a task has outputs only once it has been checked');
  return outputs;
}
