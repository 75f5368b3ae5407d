/** The micro-world's documents: how tasks of each type, the questions about them and the answers are written, in the doctest notation. */
import { deriveSeed, seededRandom } from '../../metrics/random.js';
import { canBeGuessed, LONGEST_OUTPUT, type CorpusDocument } from './corpus.js';
import { perturbedInputs, type Evaluate } from './evaluation.js';
import { sampleFunction, type SampledProgram } from './language.js';

/** What a generator is prompted with for a task of each type: what the solver will be asked for. */
export const PROPOSAL_PROMPTS = { code_o: '# output\n', code_i: '# input\n', code_f: '# function\n' } as const;
const QUESTIONS = { code_i: '# input?\n', code_f: '# function?\n' } as const;

/** Pairs of input and output that a question about a function shows. */
export const SHOWN_PAIRS = 5;
/** Inputs a function is tried on: the shown ones, and more to see that its output depends on them. */
const TRIED_INPUTS = 10;
/** Inputs drawn for them; the function raises on some. */
const DRAWN_INPUTS = 20;
const BATCH = 1000;
const LONGEST_QUESTION = 240;

/** A code_o question with its answer, taken apart again. */
export function readDocument({ task, output }: CorpusDocument): SampledProgram & { readonly output: string } {
  const [snippet, call] = task.split('\n>>> f(') as [string, string];
  return { snippet, input: call.slice(0, call.lastIndexOf(')')), output: output.trimEnd() };
}

/** A proposal of that type: its prompt, the program and its call, as a code_o question has them; the output follows. */
export function proposal(type: keyof typeof PROPOSAL_PROMPTS, document: CorpusDocument): CorpusDocument {
  return { task: PROPOSAL_PROMPTS[type] + document.task, output: document.output };
}

/** code_i: program and output are given, an input is the answer. */
export function inputQuestion(document: CorpusDocument): CorpusDocument {
  const { snippet, input, output } = readDocument(document);
  return { task: `${QUESTIONS.code_i}${snippet}\n>>> f(?)\n${output}\n`, output: `${input}\n` };
}

/** code_f: five pairs are given, the program is the answer. */
export function functionQuestion(
  snippet: string,
  pairs: readonly (readonly [input: string, output: string])[],
): CorpusDocument {
  const shown = pairs.slice(0, SHOWN_PAIRS).map(([input, output]) => `>>> f(${input})\n${output}\n`);
  return { task: QUESTIONS.code_f + shown.join(''), output: `${snippet}\n` };
}

/** The pairs that a question about a function shows. */
export function shownPairs({ task }: CorpusDocument): (readonly [input: string, output: string])[] {
  return [...task.matchAll(/^>>> f\((.*)\)\n(.*)$/gm)].map(([, input, output]) => [input!, output!] as const);
}

export interface FunctionsRequest {
  readonly seed: number | string;
  readonly count: number;
  readonly evaluate: Evaluate;
  readonly onProgress?: (documents: number) => void;
}

/** The program of a question about a function with its first input, as a code_o question. */
export function functionTask({ task, output: program }: CorpusDocument): CorpusDocument {
  const [, call, output] = task.split('\n', 3) as [string, string, string];
  return { task: `${program}${call}\n`, output: `${output}\n` };
}

/**
 * Sample questions about functions with at least ten different inputs on which they do not raise; the same seed gives the same ones, a
 * larger count only adds some.
 */
export async function sampleFunctionQuestions(request: FunctionsRequest): Promise<CorpusDocument[]> {
  const { seed, count, evaluate } = request;
  const questions: CorpusDocument[] = [];
  for (let batch = 0; questions.length < count; batch++) {
    const random = seededRandom(deriveSeed(seed, 'micro-world functions', batch));
    const programs = Array.from({ length: BATCH }, () => sampleFunction(random));
    const inputs = programs.map((program) => [
      ...new Set([program.input, ...perturbedInputs(program, DRAWN_INPUTS - 1)]),
    ]);
    const evaluations = await evaluate(programs.map(({ snippet }, i) => ({ snippet, inputs: inputs[i]! })));
    for (const [i, outputs] of evaluations.entries()) {
      const question = functionDocument(programs[i]!.snippet, inputs[i]!, outputs);
      if (question !== null) questions.push(question);
    }
    request.onProgress?.(Math.min(questions.length, count));
  }
  return questions.slice(0, count);
}

function functionDocument(
  snippet: string,
  inputs: readonly string[],
  outputs: readonly (string | null)[],
): CorpusDocument | null {
  const pairs = inputs.flatMap((input, i) => ((outputs[i] ?? null) === null ? [] : [[input, outputs[i]!] as const]));
  const tried = pairs.slice(0, TRIED_INPUTS);
  if ((outputs[0] ?? null) === null || tried.length < TRIED_INPUTS) return null;
  const results = tried.map(([, output]) => output);
  if (results.some((output) => output.length > LONGEST_OUTPUT) || canBeGuessed(results)) return null;
  const question = functionQuestion(snippet, tried);
  return question.task.length > LONGEST_QUESTION ? null : question;
}
