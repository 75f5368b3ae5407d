/** One program over several interpreters, the same in every sandbox: which passes it gets and what comes of them. */
import { markNondeterministic, mergePass, PASSES } from './determinism.js';
import type { CallResult, Outcome, Program, ProgramResult, RunOptions, SyntaxFacts } from './sandbox.js';

/** An interpreter as passes tell them apart: they differ in everything that a program must not depend on. */
export interface Variant {
  readonly hashSeed: number;
  readonly entropySeed: number;
  readonly epochMs: number;
  /** Objects allocated before any program, which moves the addresses of all later ones. */
  readonly addressShift: number;
}

/** The first is where results come from. */
export const VARIANTS: readonly Variant[] = [
  { hashSeed: 1, entropySeed: 1, epochMs: 1_700_000_000_000, addressShift: 0 },
  { hashSeed: 20_011, entropySeed: 7919, epochMs: 1_810_203_040_500, addressShift: 4099 },
  { hashSeed: 300_007, entropySeed: 104_729, epochMs: 1_500_102_030_400, addressShift: 1031 },
  { hashSeed: 4_000_037, entropySeed: 1_299_709, epochMs: 1_600_504_030_200, addressShift: 2053 },
];

export interface PassReply {
  readonly calls: readonly CallResult[];
  readonly facts: SyntaxFacts | null;
  /** The program may depend on hash order: it deserves more hash seeds. */
  readonly usesHash: boolean;
  /** The program may see addresses as numbers, whose order must not matter. */
  readonly usesId: boolean;
  /** Uses of the clock and of entropy while the program's code ran. */
  readonly clockCalls: number;
  readonly entropyCalls: number;
  readonly milliseconds: number;
}

/** What a pass is over and above its interpreter. */
export interface PassKind {
  readonly variant: number;
  /** Make the calls last to first. */
  readonly reverse: boolean;
  /** Let `id` give other numbers, every two of them in the opposite order. */
  readonly oppositeIds: boolean;
  /** Compute syntax facts. */
  readonly facts: boolean;
}

/** Runs one pass. */
export type RunPass = (kind: PassKind) => Promise<PassReply>;

/** All passes that a program needs, as one result a call. */
export async function runPasses(program: Program, options: RunOptions, pass: RunPass): Promise<ProgramResult> {
  const { code, calls } = program;
  if (![code, ...calls].every((text) => text.isWellFormed())) {
    return wholeProgram(program, 'syntax_error', 'the program holds a lone surrogate: it is not Unicode text');
  }
  const plain: PassKind = { variant: 0, reverse: false, oppositeIds: false, facts: options.facts ?? false };
  const first = await pass(plain);
  const { facts, milliseconds } = first;
  if (options.determinism === false) return { calls: first.calls, facts, milliseconds };

  let results = settlePass(first);
  const passes = first.usesHash ? PASSES.hashed : PASSES.plain;
  const later: PassKind[] = Array.from({ length: passes - 1 }, (_, i) => ({
    ...plain,
    variant: i + 1,
    reverse: true,
    facts: false,
  }));
  // The first pass once more, where the same objects lie in the same places: what depends on the order of addresses comes out otherwise.
  if (first.usesId) later.push({ ...plain, oppositeIds: true });
  for (const kind of later) {
    if (!results.some(({ outcome }) => outcome === 'ok')) break;
    results = mergePass(results, settlePass(await pass(kind)));
  }
  return { calls: results, facts, milliseconds };
}

/** One pass as results: what read the clock or entropy is not deterministic, whatever it returned. */
function settlePass(pass: PassReply): CallResult[] {
  if (pass.clockCalls > 0) return markNondeterministic(pass.calls, 'the program read the clock');
  if (pass.entropyCalls > 0) return markNondeterministic(pass.calls, 'the program read random bytes');
  return [...pass.calls];
}

/** A pass in which every call ended alike. */
export function failedPass(program: Program, outcome: Outcome, detail: string, milliseconds = 0): PassReply {
  const { calls } = wholeProgram(program, outcome, detail);
  return { calls, facts: null, usesHash: false, usesId: false, clockCalls: 0, entropyCalls: 0, milliseconds };
}

function wholeProgram(program: Program, outcome: Outcome, detail: string): ProgramResult {
  return { calls: program.calls.map(() => ({ outcome, repr: null, detail })), facts: null, milliseconds: 0 };
}
