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

/** What a program gave. */
export interface Evaluation {
  /** `repr` of the result; null when the program raised or returned `None`. */
  readonly output: string | null;
  /** Distinct outputs over the input and its perturbations; raising counts as one output. */
  readonly distinctOutputs: number;
}

/** Evaluates programs, in the order given. */
export type Evaluate = (programs: readonly SampledProgram[]) => Promise<Evaluation[]>;

/**
 * Other inputs of the same types: integers 0–40, strings over A–F and lists of digits whose length differs by at most one (and
 * is at least 2). They follow from the task's text alone.
 */
export function perturbedInputs(program: SampledProgram): string[] {
  const random = seededRandom(deriveSeed(taskText(program), 'perturbed inputs', 0));
  const literals = program.input.match(/\[[^\]]*\]|'[^']*'|-?\d+/g) ?? [];
  return Array.from({ length: PERTURBATIONS }, () => literals.map((literal) => perturbed(literal, random)).join(', '));
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
 * Python that evaluates the programs when its `f()` is called: one line a program, `distinct outputs<TAB>output`, all of it as
 * hexadecimal UTF-8, so that its `repr` needs no unescaping. Errors stay within their program.
 */
export function evaluationCode(programs: readonly SampledProgram[]): string {
  // Inputs are literals that JSON has too, but for the quotes; reading JSON is much quicker than compiling literals.
  const tasks = programs.map((program) => {
    const inputs = [program.input, ...perturbedInputs(program)].map((input) => `[${input.replaceAll("'", '"')}]`);
    return `[${JSON.stringify(program.snippet)}, [${inputs.join(', ')}]]`;
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
    lines = []
    for snippet, inputs in TASKS:
        results = list(outputs(snippet, inputs))
        lines.append(str(len(set(results))) + '\\t' + results[0])
    return '\\n'.join(lines).encode().hex()
`;
}

/** Reads the `repr` of what `evaluationCode`'s `f()` returned. */
export function readEvaluations(representation: string): Evaluation[] {
  const text = Buffer.from(representation.slice(1, -1), 'hex').toString('utf8');
  return text.split('\n').map((line) => {
    const [distinct, output] = line.split('\t') as [string, string];
    return { output: output === 'None' ? null : output, distinctOutputs: Number(distinct) };
  });
}

/**
 * Evaluates programs in the product's own sandbox, as many runs at once as it has room for. Rejects with an `Error` when a run
 * fails, since no sampled program should be able to make it.
 */
export function evaluateInSandbox(sandbox: Sandbox): Evaluate {
  const evaluateRun = async (programs: readonly SampledProgram[]): Promise<Evaluation[]> => {
    const program = { code: evaluationCode(programs), calls: [''] };
    const { calls } = await sandbox.run(program, { limits: { timeoutMs: TIMEOUT_MS }, determinism: false });
    const { outcome, repr, detail } = calls[0]!;
    if (repr === null)
      throw new Error(`evaluating ${programs.length} micro-world programs failed: ${outcome}, ${detail}`);
    return readEvaluations(repr);
  };
  return async (programs) => {
    const runs: SampledProgram[][] = [];
    for (let start = 0; start < programs.length; start += PROGRAMS_A_RUN) {
      runs.push(programs.slice(start, start + PROGRAMS_A_RUN));
    }
    return (await Promise.all(runs.map(evaluateRun))).flat();
  };
}
