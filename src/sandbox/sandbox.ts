/** The Sandbox interface: untrusted Python in, one outcome a call out. Every sandbox gives the same outcomes for the same program. */

/** The closed set of outcomes. `sandbox_failure` is the infrastructure's fault: retry it, never count it against a program or solver. */
export const OUTCOMES = [
  'ok',
  'syntax_error',
  'runtime_error',
  'timeout',
  'memory',
  'output_limit',
  'nondeterministic',
  'forbidden',
  'sandbox_failure',
] as const;
export type Outcome = (typeof OUTCOMES)[number];

export interface Limits {
  /**
   * Milliseconds of processor time for all calls of one program on one interpreter, so that a busy machine changes no outcome;
   * of the clock's where a system does not tell a thread's processor time.
   */
  readonly timeoutMs: number;
  /** Interpreter memory, in MiB. */
  readonly memoryMiB: number;
  /** Bytes a program may print before it is stopped. */
  readonly outputBytes: number;
  /** Bytes of one result's repr. */
  readonly resultBytes: number;
}

export const DEFAULT_LIMITS: Limits = { timeoutMs: 2000, memoryMiB: 256, outputBytes: 16 << 20, resultBytes: 1 << 20 };

/** A program that defines a function `f`, and the calls to make: each the text between the brackets of `f(…)`. */
export interface Program {
  readonly code: string;
  readonly calls: readonly string[];
}

export interface RunOptions {
  readonly limits?: Partial<Limits>;
  /** Run again in reverse order on a second interpreter with another hash seed, clock, entropy and addresses. Default true. */
  readonly determinism?: boolean;
  /** Compute syntax facts before any code of the program runs. Default false. */
  readonly facts?: boolean;
}

export interface CallResult {
  readonly outcome: Outcome;
  /** `repr` of the result; null unless `ok`. */
  readonly repr: string | null;
  /** What happened, for people: the exception's type and message, the limit that was hit. Empty when `ok`. */
  readonly detail: string;
}

/** What CPython's own `ast` says of a program, computed before it runs; topics, complexity and validity rules read this. */
export interface SyntaxFacts {
  /** Module body, one ast class name an item. */
  readonly topLevel: readonly string[];
  /**
   * Functions defined at the top level, `name = lambda …` too, in order; `used` holds the parameters that the returned value can depend
   * on by data or control, as far as the syntax tree tells.
   */
  readonly functions: readonly {
    readonly name: string;
    readonly parameters: readonly string[];
    readonly used: readonly string[];
  }[];
  /** ast class name → how many nodes of it (operators and contexts too: `Mod`, `While`, `ListComp`, `Slice`, …). */
  readonly nodes: Readonly<Record<string, number>>;
  /** Names called directly, `sorted(…)`, and attributes called, `x.append(…)`, with counts. */
  readonly calledNames: Readonly<Record<string, number>>;
  readonly calledAttributes: Readonly<Record<string, number>>;
  /** Every attribute name that appears. */
  readonly attributes: readonly string[];
  /** Modules imported anywhere, dotted names whole. */
  readonly imports: readonly string[];
  /** Slices whose step is the constant −1. */
  readonly reversedSlices: number;
  /** Largest absolute integer constant, as a decimal string (integers may be huge). */
  readonly largestInteger: string;
  /** Depth of the syntax tree, cyclomatic complexity (1 + decision points), non-blank source lines, distinct assigned names. */
  readonly depth: number;
  readonly cyclomatic: number;
  readonly lines: number;
  readonly variables: number;
}

export interface ProgramResult {
  /** One result a call, in the order asked. */
  readonly calls: readonly CallResult[];
  /** Null when not asked for, or when the program does not parse. */
  readonly facts: SyntaxFacts | null;
  /** Milliseconds in the sandbox, queueing excluded, of the first pass. */
  readonly milliseconds: number;
}

export interface Sandbox {
  readonly name: string;
  /** Never rejects for what a program does; an infrastructure fault is `sandbox_failure` after bounded retries. */
  run(program: Program, options?: RunOptions): Promise<ProgramResult>;
  /**
   * Each text as canonical call arguments, `[1,2],x = 3` → `[1, 2], x=3`, or null unless every argument is a literal. Nothing is
   * executed: an untrusted answer passes here before it meets a program that its author knows. Sets come out sorted.
   */
  literals(texts: readonly string[]): Promise<(string | null)[]>;
  /** Programs that can run at once. */
  readonly size: number;
  /** Interpreter and build, for a run's record: e.g. `{ python: '3.12.0', image: 'sha256:…' }`. */
  readonly versions: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** The sandbox itself keeps failing. For callers that must stop rather than go on without results. */
export class SandboxError extends Error {
  override readonly name = 'SandboxError';
}
