/** A sandbox whose programs are TypeScript functions, for tests of what stands above it. */
import type { CallResult, Program, ProgramResult, RunOptions, Sandbox, SyntaxFacts } from '../src/sandbox/sandbox.js';

/** A call's result; a plain text is an `ok` repr. */
export type Scripted = string | Partial<CallResult>;

export interface FakeSandbox extends Sandbox {
  /** Every request made, in order. */
  readonly requests: { readonly program: Program; readonly options: RunOptions | undefined }[];
  /** Most programs that were under way at once. */
  readonly peak: () => number;
}

/** What CPython's ast would say of `def f(x): return x`. */
export const PLAIN_FACTS: SyntaxFacts = {
  topLevel: ['FunctionDef'],
  functions: [{ name: 'f', parameters: ['x'], used: ['x'] }],
  nodes: { FunctionDef: 1, Return: 1, Name: 1 },
  calledNames: {},
  calledAttributes: {},
  attributes: [],
  imports: [],
  reversedSlices: 0,
  largestInteger: '0',
  depth: 4,
  cyclomatic: 1,
  lines: 2,
  variables: 1,
};

/** Outcomes of a run that are the program's own fault. */
export const FAULTS: readonly CallResult['outcome'][] = [
  'runtime_error',
  'timeout',
  'memory',
  'output_limit',
  'syntax_error',
  'forbidden',
];

export function failed(outcome: CallResult['outcome'], detail: string): CallResult {
  return { outcome, repr: null, detail };
}

/** `call` gives the result of one call (its index among the program's calls); `facts` those of a program. */
export function createFakeSandbox(
  call: (code: string, input: string, index: number) => Scripted,
  facts: (code: string) => SyntaxFacts | null = () => PLAIN_FACTS,
  size = 2,
): FakeSandbox {
  const requests: FakeSandbox['requests'] = [];
  let running = 0;
  let peak = 0;
  return {
    name: 'fake',
    size,
    versions: {},
    requests,
    peak: () => peak,
    async run(program, options): Promise<ProgramResult> {
      requests.push({ program, options });
      const milliseconds = requests.length;
      running += 1;
      peak = Math.max(peak, running);
      // Later programs end first, so that order can only come from the caller.
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, 20 - requests.length)));
      running -= 1;
      const calls = program.calls.map((input, index): CallResult => {
        const scripted = call(program.code, input, index);
        if (typeof scripted === 'string') return { outcome: 'ok', repr: scripted, detail: '' };
        return { outcome: 'ok', repr: null, detail: '', ...scripted };
      });
      return { calls, facts: options?.facts === true ? facts(program.code) : null, milliseconds };
    },
    literals: async (texts) => texts.map((text) => text),
    close: async () => undefined,
  };
}
