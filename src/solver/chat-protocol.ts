/** The OpenAI chat API as vLLM, SGLang, llama.cpp and TGI speak it: one request's body, and what its response says. */
import { z } from 'zod';
import type { Attempt } from './solver.js';
import type { SolverUsage } from './usage.js';

/** What every request of a solver has in common. */
export interface ChatSettings {
  readonly model: string;
  readonly temperature: number;
  readonly maxNewTokens: number;
  readonly stops: readonly string[];
  /** Sent as the system message; empty: none. */
  readonly system: string;
  /** Further fields as the server takes them: `top_p`, `top_k`, `chat_template_kwargs`. */
  readonly body: Readonly<Record<string, unknown>>;
}

export function chatRequest(settings: ChatSettings, question: string, n: number, seed: number): string {
  const { model, temperature, maxNewTokens, stops, system, body } = settings;
  return JSON.stringify({
    ...body,
    model,
    messages: [...(system === '' ? [] : [{ role: 'system', content: system }]), { role: 'user', content: question }],
    temperature,
    max_tokens: maxNewTokens,
    ...(stops.length === 0 ? {} : { stop: stops }),
    // Servers that do not know `n` need not see it.
    ...(n === 1 ? {} : { n }),
    seed,
    stream: false,
  });
}

/** A text, or its parts: of those that are no text nothing is read. */
const contentSchema = z.union([
  z.string(),
  z
    .array(z.object({ type: z.string(), text: z.string().nullish().catch(null) }))
    .transform((parts) => parts.map(({ type, text }) => (type === 'text' ? (text ?? '') : '')).join('')),
]);

const tokenCount = z.number().min(0).nullish().catch(null);

const responseSchema = z.object({
  choices: z.array(
    z.object({
      index: z.int().nullish(),
      message: z.object({ content: contentSchema.nullish() }),
      finish_reason: z.string().nullish(),
    }),
  ),
  // What a server says of tokens never costs an answer: what is not a count is none.
  usage: z.object({ prompt_tokens: tokenCount, completion_tokens: tokenCount }).nullish().catch(null),
});

/** Finish reasons of an answer that ended by itself. TGI names its own. A tool call is an answer too: one that holds none. */
const ENDED = new Set(['stop', 'eos_token', 'stop_sequence', 'tool_calls', 'function_call']);
const CUT_OFF = new Set(['length', 'max_tokens', 'model_length']);

function statusOf(finishReason: string): 'answered' | 'cut_off' | null {
  if (ENDED.has(finishReason)) return 'answered';
  return CUT_OFF.has(finishReason) ? 'cut_off' : null;
}

export interface ChatResponse {
  /** Whole choices only: one that the server aborted or filtered is none. */
  readonly attempts: readonly Attempt[];
  readonly usage: Partial<SolverUsage>;
}

/**
 * The choices of a response to a request for `n`: at most so many, and of those with the same index the first.
 * @throws Error when the text is not such a response
 */
export function readChatResponse(text: string, n: number): ChatResponse {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new Error(`the response is not JSON: ${(cause as Error).message}`, { cause });
  }
  const parsed = responseSchema.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new Error(`the response is no chat completion: ${issue!.path.join('.') || 'document'}: ${issue!.message}`);
  }
  const { choices, usage } = parsed.data;
  const byIndex = new Map<number, Attempt>();
  for (const [place, { index: named, message, finish_reason: reason }] of choices.entries()) {
    const [index, status] = [named ?? place, statusOf(reason ?? '')];
    if (status !== null && !byIndex.has(index)) byIndex.set(index, { answer: message.content ?? '', status });
  }
  return {
    attempts: [...byIndex.values()].slice(0, n),
    usage:
      typeof usage?.prompt_tokens === 'number'
        ? { promptTokens: usage.prompt_tokens, completionTokens: usage.completion_tokens ?? 0 }
        : { unmetered: 1 },
  };
}

const errorSchema = z.union([
  z.object({ error: z.object({ message: z.string() }) }).transform(({ error }) => error.message),
  z.object({ error: z.string() }).transform(({ error }) => error),
  z.object({ message: z.string() }).transform(({ message }) => message),
  z.object({ detail: z.string() }).transform(({ detail }) => detail),
]);

/** How servers name a context without room, in words or by code: OpenAI's and vLLM's, SGLang's, llama.cpp's, TGI's, and others'. */
const NO_ROOM = [
  /context[\s_-]*(length|size|window)/i,
  /(longer than|exceeds?) the (model's )?max(imum)?[\s_](model|sequence)[\s_]len/i,
  /inputs` (tokens \+ `max_new_tokens` must be <=|must have less than) \d+/i,
  /(prompt|input) is too long/i,
  /input token count .*exceeds the maximum/i,
];

/** Whether what a server says of a request that it refused is that the question, with its answer, is too long for the model. */
export function isTooLong(text: string): boolean {
  return NO_ROOM.some((words) => words.test(text));
}

/** Characters of a server's own words that an error repeats. */
const SHOWN = 200;

/** What a server says of a request that it refused, on one line; empty when it says nothing. */
export function errorMessage(text: string): string {
  let said = text;
  try {
    const parsed = errorSchema.safeParse(JSON.parse(text));
    if (parsed.success) said = parsed.data;
  } catch {
    // Plain text or a page of a proxy.
  }
  const line = said.replaceAll(/\s+/g, ' ').trim();
  return line.length <= SHOWN ? line : `${line.slice(0, SHOWN)}…`;
}
