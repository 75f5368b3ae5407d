/** Answers of sampled programs, many to one sandbox run, and whether an answer could be guessed. */
import { deriveSeed, seededRandom } from '../../metrics/random.js';
import type { Sandbox } from '../../sandbox/sandbox.js';
import { taskText, type SampledProgram } from './language.js';

/** The task's own input and this many others like it are put to each program. */
const PERTURBATIONS = 7;
const LETTERS = 'ABCDEF';
const LARGEST_INTEGER = 40;
const SHORTEST = 2;

/** Programs to one sandbox run; they end by construction, so the time limit is only for a machine under load. */
const PROGRAMS_A_RUN = 250;
const TIMEOUT_MS = 60_000;

/** A program and the inputs to put to it, each the text between the brackets of `f(…)`. */
export interface Calls {
  readonly snippet: string;
  readonly inputs: readonly string[];
}

/** For each program, in the order given, the `repr` of every result; null where it raised or returned `None`. */
export type Evaluate = (programs: readonly Calls[]) => Promise<(string | null)[][]>;

/** A program's own input, then the perturbed ones. */
export function guardedCalls(program: SampledProgram): Calls {
  return { snippet: program.snippet, inputs: [program.input, ...perturbedInputs(program, PERTURBATIONS)] };
}

/**
 * Other inputs of the same types: integers 0–40, strings over A–F and lists of digits whose length differs by at most one (and
 * is at least 2). They follow from the task's text alone.
 */
export function perturbedInputs(program: SampledProgram, count: number): string[] {
  const random = seededRandom(deriveSeed(taskText(program), 'perturbed inputs', 0));
  const literals = program.input.match(/\[[^\]]*\]|'[^']*'|-?\d+/g) ?? [];
  return Array.from({ length: count }, () => literals.map((literal) => perturbed(literal, random)).join(', '));
}

function perturbed(literal: string, random: () => number): string {
  const draw = (count: number): number => Math.floor(random() * count);
  const near = (length: number): number => Math.max(SHORTEST, length + draw(3) - 1);
  if (literal.startsWith("'")) {
    return `'${Array.from({ length: near(literal.length - 2) }, () => LETTERS[draw(LETTERS.length)]).join('')}'`;
  }
  if (literal.startsWith('[')) {
    const length = literal === '[]' ? 0 : literal.split(',').length;
    return `[${Array.from({ length: near(length) }, () => draw(10)).join(', ')}]`;
  }
  return String(draw(LARGEST_INTEGER + 1));
}

/**
 * Python that evaluates the programs when its `f()` is called: one line a program, its outputs between tabs, all of it as
 * hexadecimal UTF-8, so that its `repr` needs no unescaping. Errors stay within their program.
 */
export function evaluationCode(programs: readonly Calls[]): string {
  // Inputs are literals that JSON has too, but for the quotes; reading JSON is much quicker than compiling literals.
  const tasks = programs.map(({ snippet, inputs }) => {
    const lists = inputs.map((input) => `[${input.replaceAll("'", '"')}]`);
    return `[${JSON.stringify(snippet)}, [${lists.join(', ')}]]`;
  });
  return `
import json

TASKS = json.loads(${JSON.stringify(`[${tasks.join(', ')}]`)})

def outputs(snippet, inputs):
    scope = {}
    exec(snippet, scope)
    for arguments in inputs:
        try:
            yield repr(scope['f'](*arguments))
        except Exception:
            yield 'None'

def f():
    return '\\n'.join('\\t'.join(outputs(snippet, inputs)) for snippet, inputs in TASKS).encode().hex()
`;
}

/** Reads the `repr` of what `evaluationCode`'s `f()` returned. */
export function readEvaluations(representation: string): (string | null)[][] {
  const text = Buffer.from(representation.slice(1, -1), 'hex').toString('utf8');
  return text.split('\n').map((line) => line.split('\t').map((output) => (output === 'None' ? null : output)));
}

/**
 * Evaluates programs in the product's own sandbox, as many runs at once as it has room for. Rejects with an `Error` when a run
 * fails, since no sampled program should be able to make it.
 */
export function evaluateInSandbox(sandbox: Sandbox): Evaluate {
  const evaluateRun = async (programs: readonly Calls[]): Promise<(string | null)[][]> => {
    const program = { code: evaluationCode(programs), calls: [''] };
    const { calls } = await sandbox.run(program, { limits: { timeoutMs: TIMEOUT_MS }, determinism: false });
    const { outcome, repr, detail } = calls[0]!;
    if (repr === null)
      throw new Error(`evaluating ${programs.length} micro-world programs failed: ${outcome}, ${detail}`);
    return readEvaluations(repr);
  };
  return async (programs) => {
    const runs: Calls[][] = [];
    for (let start = 0; start < programs.length; start += PROGRAMS_A_RUN) {
      runs.push(programs.slice(start, start + PROGRAMS_A_RUN));
    }
    return (await Promise.all(runs.map(evaluateRun))).flat();
  };
}
