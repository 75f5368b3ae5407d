/** One request on one interpreter: restore, prepare, run the program, only then open the channel for its results. */
import { randomBytes } from 'node:crypto';
import type { CallResult, Outcome, SyntaxFacts } from '../sandbox.js';
import type { Interpreter, StepEnd } from './interpreter.js';
import type { LiteralsReply, LiteralsRequest, PassReply, PassRequest } from './protocol.js';

const TOKEN_CHARACTERS = 32;
const FRAME_HEAD = 9;
/** Replies that hold no results: facts, messages. */
const PREPARE_REPLY_BYTES = 64 << 20;
/** Longest detail of one call in UTF-8, with room to spare. */
const DETAIL_BYTES = 4096;

interface Prepared {
  readonly error: string | null;
  /** For each call that does not parse, why. */
  readonly callErrors: readonly (string | null)[];
  readonly facts: SyntaxFacts | null;
  readonly hashed: boolean;
}

type Pass = Omit<PassReply, 'milliseconds'>;

export function servePass(interpreter: Interpreter, memoryBytes: number, request: PassRequest): Pass {
  const everyCall = (result: CallResult): CallResult[] => request.calls.map(() => result);
  const reply = (calls: readonly CallResult[], prepared: Prepared | null, ran: boolean): Pass => ({
    kind: 'pass',
    calls,
    facts: prepared?.facts ?? null,
    usesHash: prepared?.hashed ?? false,
    clockCalls: ran ? interpreter.host.clockCalls : 0,
    entropyCalls: ran ? interpreter.host.entropyCalls : 0,
  });

  const { code, calls, reverse, facts, resultBytes } = request;
  const preparedText = prepare(interpreter, { code, calls, reverse, facts, resultBytes });
  if (typeof preparedText !== 'string') {
    // No code of the program has run: the parser overflowed its stack or the memory.
    const stopped = describeEnd(preparedText, interpreter, memoryBytes);
    const outcome = stopped.outcome === 'memory' ? 'memory' : 'syntax_error';
    return reply(everyCall({ ...stopped, outcome }), null, false);
  }
  const prepared = JSON.parse(preparedText) as Prepared;
  if (prepared.error !== null) return reply(everyCall(failure('syntax_error', prepared.error)), prepared, false);
  const withCallErrors = (results: readonly CallResult[]): CallResult[] =>
    results.map((result, index) => {
      const error = prepared.callErrors[index];
      return typeof error === 'string' ? failure('syntax_error', error) : result;
    });
  if (calls.length === 0) return reply([], prepared, false);

  interpreter.host.beginProgram(request.outputBytes);
  const end = interpreter.step('execute');
  if (end.kind !== 'returned') {
    return reply(withCallErrors(everyCall(describeEnd(end, interpreter, memoryBytes))), prepared, true);
  }

  // No frame of the program is on the stack any more. Only now does a token exist and only now is the channel open.
  const token = randomBytes(TOKEN_CHARACTERS / 2).toString('hex');
  const replyLimit = TOKEN_CHARACTERS + calls.length * (FRAME_HEAD + Math.max(resultBytes, DETAIL_BYTES));
  interpreter.host.beginExchange(Buffer.from(token), replyLimit);
  const emitted = interpreter.step('emit');
  const frame = interpreter.host.reply;
  const framed = emitted.kind === 'returned' && frame.toString('latin1', 0, TOKEN_CHARACTERS) === token;
  const results = framed ? parseFrame(frame.subarray(TOKEN_CHARACTERS), calls.length, resultBytes) : null;
  if (results !== null) return reply(withCallErrors(results), prepared, true);
  if (isFull(interpreter, memoryBytes)) {
    return reply(withCallErrors(everyCall(failure('memory', 'no memory was left for the result'))), prepared, true);
  }
  const damaged = failure('runtime_error', 'the program damaged its interpreter: it gave no valid result');
  return reply(withCallErrors(everyCall(damaged)), prepared, true);
}

export function serveLiterals(interpreter: Interpreter, request: LiteralsRequest): Omit<LiteralsReply, 'milliseconds'> {
  const text = prepare(interpreter, { literals: request.texts });
  if (typeof text !== 'string') return { kind: 'literals', literals: request.texts.map(() => null) };
  const { literals } = JSON.parse(text) as { literals: (string | null)[] };
  return { kind: 'literals', literals };
}

/** Hands a request over to a fresh interpreter; its answer in JSON, or how it ended without one. */
function prepare(interpreter: Interpreter, request: object): string | StepEnd {
  interpreter.restore();
  interpreter.host.beginExchange(Buffer.from(JSON.stringify(request)), PREPARE_REPLY_BYTES);
  const end = interpreter.step('prepare');
  if (end.kind !== 'returned') return end;
  // An empty reply: Python raised where it must not, which only a lack of memory can do.
  const { reply } = interpreter.host;
  return reply.length > 0 ? reply.toString('utf8') : { kind: 'trap', detail: 'no memory was left to read the program' };
}

const OUTCOME_OF_STATUS: Readonly<Record<string, Outcome>> = {
  o: 'ok',
  e: 'runtime_error',
  m: 'memory',
  b: 'forbidden',
  s: 'syntax_error',
  l: 'output_limit',
};

/** Statuses, lengths and texts of `count` calls, as `frame` in runner.py writes them; null when malformed. */
export function parseFrame(frame: Buffer, count: number, resultBytes: number): CallResult[] | null {
  const results: CallResult[] = [];
  let at = 0;
  for (let call = 0; call < count; call++) {
    const outcome = OUTCOME_OF_STATUS[frame.toString('latin1', at, at + 1)];
    const digits = frame.toString('latin1', at + 1, at + FRAME_HEAD);
    if (outcome === undefined || !/^\d{8}$/.test(digits)) return null;
    const start = at + FRAME_HEAD;
    const end = start + Number(digits);
    if (end > frame.length) return null;
    if (end - start > (outcome === 'ok' ? resultBytes : DETAIL_BYTES)) return null;
    const text = frame.toString('utf8', start, end);
    results.push(outcome === 'ok' ? { outcome, repr: text, detail: '' } : failure(outcome, text));
    at = end;
  }
  return at === frame.length ? results : null;
}

function describeEnd(end: StepEnd, interpreter: Interpreter, memoryBytes: number): CallResult {
  switch (end.kind) {
    case 'exit':
      return failure('runtime_error', `the program ended its interpreter with exit code ${end.code} before giving a result`);
    case 'output':
      return failure('output_limit', 'the program printed more than it may');
    case 'trap':
      if (isFull(interpreter, memoryBytes)) return failure('memory', `the interpreter gave up: ${end.detail}`);
      if (end.detail.includes('call stack')) return failure('runtime_error', 'RecursionError: the interpreter ran out of stack');
      return failure('runtime_error', `the interpreter gave up: ${end.detail}`);
    case 'returned':
      return failure('runtime_error', 'the interpreter returned without a result');
  }
}

/** Within 1 MiB of its limit: too little to go on with. */
function isFull(interpreter: Interpreter, memoryBytes: number): boolean {
  return interpreter.memoryBytes >= memoryBytes - (1 << 20);
}

function failure(outcome: Outcome, detail: string): CallResult {
  return { outcome, repr: null, detail };
}
