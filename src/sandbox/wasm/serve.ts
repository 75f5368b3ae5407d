/** One request on one interpreter: restore, prepare, run the program, only then open the channel for its results. */
import { randomBytes } from 'node:crypto';
import { blameMemory, failure, frameLimit, parseFrame, type Prepared } from '../results.js';
import type { CallResult } from '../sandbox.js';
import type { Interpreter, Stack, StepEnd } from './interpreter.js';
import type { LiteralsReply, LiteralsRequest, PassReply, PassRequest } from './protocol.js';

const TOKEN_CHARACTERS = 32;
/** Replies that hold no results: facts, messages. */
const PREPARE_REPLY_BYTES = 64 << 20;
/** Exit codes by which the boot script says that the runner could not go on. */
const EXIT = { damaged: 97, noMemory: 98 } as const;
/** With less than this left an interpreter cannot go on. */
const NEARLY_FULL_BYTES = 1 << 20;

type Pass = Omit<PassReply, 'milliseconds'>;

/**
 * Runs a program; one whose recursion leaves the small stack runs again from the start on the deep one.
 * @param begin called once the interpreter is set up and the program's time begins
 */
export function servePass(
  interpreter: Interpreter,
  memoryBytes: number,
  request: PassRequest,
  begin: () => void,
): Pass {
  interpreter.restore('own');
  begin();
  const onOwnStack = tryPass(interpreter, memoryBytes, request, 'own');
  if (onOwnStack !== 'stack') return onOwnStack;
  interpreter.restore('deep');
  return tryPass(interpreter, memoryBytes, request, 'deep') as Pass;
}

/** `stack` only ever comes back from the module's own stack. */
function tryPass(interpreter: Interpreter, memoryBytes: number, request: PassRequest, stack: Stack): Pass | 'stack' {
  const { code, calls, reverse, oppositeIds, facts, resultBytes } = request;
  const everyCall = (result: CallResult): CallResult[] => calls.map(() => result);
  const isFull = (): boolean => interpreter.memoryBytes >= memoryBytes - NEARLY_FULL_BYTES;

  const preparation = prepare(interpreter, { code, calls, reverse, oppositeIds, facts, resultBytes });
  if (typeof preparation !== 'string') {
    if (preparation.kind === 'stack' && stack === 'own') return 'stack';
    // No code of the program has run: the parser overflowed its stack or the memory.
    const stopped = describeEnd(preparation, isFull());
    const outcome = stopped.outcome === 'memory' ? 'memory' : 'syntax_error';
    return unrun(everyCall({ ...stopped, outcome }));
  }
  const prepared = JSON.parse(preparation) as Prepared;
  if (prepared.error !== null) return unrun(everyCall(failure('syntax_error', prepared.error)));
  if (calls.length === 0) return { ...unrun([]), facts: prepared.facts };

  interpreter.host.beginProgram(request.outputBytes);
  const end = interpreter.step('execute');
  if (end.kind === 'stack' && stack === 'own') return 'stack';
  const results =
    end.kind === 'returned' ? collect(interpreter, calls.length, resultBytes) : describeEnd(end, isFull());
  return {
    kind: 'pass',
    calls: calls.map((_, index) => {
      const syntaxError = prepared.callErrors[index];
      if (typeof syntaxError === 'string') return failure('syntax_error', syntaxError);
      const result = results === null ? damaged(isFull()) : Array.isArray(results) ? results[index] : results;
      return blameMemory(result as CallResult, isFull());
    }),
    facts: prepared.facts,
    usesHash: prepared.hashed,
    usesId: prepared.ids,
    clockCalls: interpreter.host.clockCalls,
    entropyCalls: interpreter.host.entropyCalls,
  };
}

/** A pass in which no code of the program ran. */
function unrun(calls: readonly CallResult[]): Pass {
  return { kind: 'pass', calls, facts: null, usesHash: false, usesId: false, clockCalls: 0, entropyCalls: 0 };
}

/**
 * The program's results; null when they are not framed as they must be. No frame of the program is on the stack any more. Only now
 * does a token exist, and only now is the channel open, so nothing that the program has written passes for a result.
 */
function collect(interpreter: Interpreter, count: number, resultBytes: number): CallResult[] | null {
  const token = randomBytes(TOKEN_CHARACTERS / 2).toString('hex');
  const replyLimit = TOKEN_CHARACTERS + frameLimit(count, resultBytes);
  interpreter.host.beginExchange(Buffer.from(token), replyLimit);
  const end = interpreter.step('emit');
  const frame = interpreter.host.reply;
  if (end.kind !== 'returned' || frame.toString('latin1', 0, TOKEN_CHARACTERS) !== token) return null;
  return parseFrame(frame.subarray(TOKEN_CHARACTERS), count, resultBytes);
}

export function serveLiterals(interpreter: Interpreter, request: LiteralsRequest): Omit<LiteralsReply, 'milliseconds'> {
  const question = { literals: request.texts };
  interpreter.restore('own');
  let answer = prepare(interpreter, question);
  if (typeof answer !== 'string' && answer.kind === 'stack') {
    interpreter.restore('deep');
    answer = prepare(interpreter, question);
  }
  if (typeof answer !== 'string') return { kind: 'literals', literals: null };
  return { kind: 'literals', literals: (JSON.parse(answer) as { literals: (string | null)[] }).literals };
}

/** Hands a request over to a restored interpreter; its answer in JSON, or how it ended without one. */
function prepare(interpreter: Interpreter, request: object): string | StepEnd {
  interpreter.host.beginExchange(Buffer.from(JSON.stringify(request)), PREPARE_REPLY_BYTES);
  const end = interpreter.step('prepare');
  if (end.kind !== 'returned') return end;
  // An empty reply: Python raised where it must not, which only a lack of memory can do.
  const { reply } = interpreter.host;
  return reply.length > 0 ? reply.toString('utf8') : { kind: 'trap', detail: 'no memory was left to read the program' };
}

function describeEnd(end: StepEnd, isFull: boolean): CallResult {
  switch (end.kind) {
    case 'exit':
      if (end.code === EXIT.noMemory) return failure('memory', 'no memory was left for the program');
      if (end.code === EXIT.damaged) return damaged(isFull);
      return failure(
        'runtime_error',
        `the program ended its interpreter with exit code ${end.code} before giving a result`,
      );
    case 'output':
      return failure('output_limit', 'the program printed more than it may');
    case 'stack':
      return failure('runtime_error', 'RecursionError: the interpreter ran out of stack');
    case 'trap':
      return failure(isFull ? 'memory' : 'runtime_error', `the interpreter gave up: ${end.detail}`);
    case 'returned':
      return damaged(isFull);
  }
}

function damaged(isFull: boolean): CallResult {
  if (isFull) return failure('memory', 'no memory was left for the result');
  return failure('runtime_error', 'the program damaged its interpreter: it gave no valid result');
}
