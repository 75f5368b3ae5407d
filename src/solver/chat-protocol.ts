/** The OpenAI API of chats and completions as vLLM, SGLang, llama.cpp and TGI speak it: one request's body, and what its response says. */
import { z } from 'zod';
import { parseJsonWithin } from '../bounded-json.js';
import { inOneLine } from '../errors.js';
import { endingOf } from './finish-reason.js';
import type { Attempt } from './solver.js';
import type { SolverUsage } from './usage.js';

/** The names that a server has for what settings give; null: it has none, and the field is left out. */
export interface FieldNames {
  readonly max_tokens: string;
  readonly n: string | null;
  readonly seed: string | null;
  readonly temperature: string | null;
}

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
  readonly fields: FieldNames;
}

/**
 * A question as the model gets it: a user's turn, which the server puts into its chat template; a text that the model goes on with; or token
 * ids, with those that end an answer.
 */
export type Prompt =
  | { readonly turn: string }
  | { readonly text: string }
  | { readonly ids: readonly number[]; readonly ends: readonly number[] };

/** A chat's turns go to one route of the API, texts and token ids to another. */
export function routeOf(prompt: Prompt): '/chat/completions' | '/completions' {
  return 'turn' in prompt ? '/chat/completions' : '/completions';
}

export interface Request {
  readonly route: ReturnType<typeof routeOf>;
  readonly body: string;
}

export function requestBody(settings: ChatSettings, prompt: Prompt, n: number, seed: number): string {
  const { model, temperature, maxNewTokens, stops, body, fields } = settings;
  return JSON.stringify({
    ...body,
    model,
    ...promptFields(prompt, settings),
    ...named(fields.temperature, temperature),
    ...named(fields.max_tokens, maxNewTokens),
    ...(stops.length === 0 ? {} : { stop: stops }),
    // Servers that do not know `n` need not see it.
    ...(n === 1 ? {} : named(fields.n, n)),
    ...named(fields.seed, seed),
    stream: false,
  });
}

function promptFields(prompt: Prompt, { system }: ChatSettings): Record<string, unknown> {
  if ('ids' in prompt) return { prompt: prompt.ids, stop_token_ids: prompt.ends };
  if ('text' in prompt) return { prompt: prompt.text };
  const messages = [
    ...(system === '' ? [] : [{ role: 'system', content: system }]),
    { role: 'user', content: prompt.turn },
  ];
  return { messages };
}

function named(field: string | null, value: number): Record<string, number> {
  return field === null ? {} : { [field]: value };
}

/** A text, or its parts: of those that are no text nothing is read. */
const contentSchema = z.union([
  z.string(),
  z
    .array(z.object({ type: z.string(), text: z.string().nullish().catch(null) }))
    .transform((parts) => parts.map(({ type, text }) => (type === 'text' ? (text ?? '') : '')).join('')),
]);

/** Where a server may add what it likes: anything but a text is none. */
const textSchema = z.string().nullish().catch(null);

const messageSchema = z.object({
  content: contentSchema.nullish(),
  /** vLLM, SGLang, llama.cpp, LMDeploy, DeepSeek; newer vLLM, Ollama, Groq and OpenRouter call it `reasoning`. */
  reasoning_content: textSchema,
  reasoning: textSchema,
  refusal: textSchema,
});

/** What a server says of tokens never costs an answer: what is no count (a fraction, a negative or an unsafe number, a text) is none. */
const tokenCount = z.int().min(0).nullish().catch(null);

const responseSchema = z.object({
  choices: z.array(
    z
      .object({
        index: z.int().nullish().catch(null),
        /** Of a chat. */
        message: messageSchema.optional(),
        /** Of a completion. */
        text: z.string().optional(),
        finish_reason: textSchema,
      })
      .refine(({ message, text }) => message !== undefined || text !== undefined, 'has neither message nor text'),
  ),
  usage: z.object({ prompt_tokens: tokenCount, completion_tokens: tokenCount }).nullish().catch(null),
});

export interface ChatResponse {
  /** Whole choices only: one that the server broke off or held back is none. */
  readonly attempts: readonly Attempt[];
  readonly usage: Partial<SolverUsage>;
  /** What is odd of it, a few words each: a server has few such habits, and they are told once. */
  readonly remarks: readonly string[];
  /** Of a response without a whole choice: why there is none. */
  readonly why: string;
}

/** More choices than anyone asks for. */
const MOST_CHOICES = 4096;

/** A text that is no response of the chat API. */
export class NoCompletion extends Error {
  override readonly name = 'NoCompletion';
}

/**
 * The choices of a response to a request for `n`: at most so many, and of those with the same index the first.
 * @throws NoCompletion when the text is not such a response
 */
export function readChatResponse(text: string, n: number): ChatResponse {
  let json: unknown;
  try {
    json = parseJsonWithin(text);
  } catch (cause) {
    throw new NoCompletion(`the response is not JSON: ${inOneLine((cause as Error).message)}`, { cause });
  }
  const given = (json as { choices?: unknown } | null)?.choices;
  if (Array.isArray(given) && given.length > MOST_CHOICES) {
    throw new NoCompletion(`the response has ${given.length} choices, ${n} were asked for`);
  }
  const parsed = responseSchema.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new NoCompletion(`the response is no completion: ${issue!.path.join('.') || 'document'}: ${issue!.message}`);
  }
  const { choices, usage } = parsed.data;
  const byIndex = new Map<number, Attempt>();
  const [remarks, lost] = [new Set<string>(), new Set<string>()];
  for (const [place, choice] of choices.entries()) {
    const index = choice.index ?? place;
    const reading = readChoice(choice);
    if (reading.attempt === null) lost.add(nameOf(choice.finish_reason));
    else if (!byIndex.has(index)) {
      byIndex.set(index, reading.attempt);
      for (const remark of reading.remarks) remarks.add(remark);
    }
  }
  return {
    attempts: [...byIndex.values()].slice(0, n),
    usage: usageOf(usage),
    remarks: [...remarks],
    why: `a response without a whole choice${lost.size > 0 ? `: finish_reason ${[...lost].slice(0, 3).join(', ')}` : ''}`,
  };
}

interface ChoiceReading {
  /** Null when it is to be asked for again. */
  readonly attempt: Attempt | null;
  readonly remarks: readonly string[];
}

/**
 * The text is `content`. Where that is null or empty though the model ended by itself, a server with a reasoning parser has put the whole output
 * into the reasoning (the model did not think, or never closed its thinking): then that is the text.
 */
function readChoice({
  message,
  text: completed,
  finish_reason: reason,
}: z.output<typeof responseSchema>['choices'][number]): ChoiceReading {
  const ending = endingOf(reason ?? null);
  const content = orNull(message?.content ?? completed);
  const reasoning = orNull(message?.reasoning_content) ?? orNull(message?.reasoning);
  const refusal = orNull(message?.refusal);
  const text = content ?? reasoning ?? '';
  if (ending === 'lost') return { attempt: null, remarks: [] };
  if (ending === 'refused' || (refusal !== null && content === null)) {
    return { attempt: { answer: refusal ?? text, status: 'refused' }, remarks: [] };
  }
  if (ending === 'cut') return { attempt: { answer: text, status: 'cut_off' }, remarks: [] };
  const remarks =
    ending === 'unknown' ? [`finish_reason ${nameOf(reason)} is not known: its texts are taken as whole answers`] : [];
  // Whoever gives neither an end that is known nor a text has not answered.
  if (text === '') return { attempt: ending === 'unknown' ? null : { answer: '', status: 'empty' }, remarks: [] };
  if (content === null)
    remarks.push('content is empty and the text stands in the reasoning: that is taken as the answer');
  return { attempt: { answer: text, status: 'answered' }, remarks };
}

/** A text with something in it. */
function orNull(text: string | null | undefined): string | null {
  return typeof text === 'string' && text.trim() !== '' ? text : null;
}

/** Characters of a finish reason that are repeated. */
const REASON_SHOWN = 40;

function nameOf(reason: string | null | undefined): string {
  return JSON.stringify(reason?.slice(0, REASON_SHOWN) ?? null);
}

/** A response whose account lacks a count, or gives one that is none, is unmetered; what it does give is counted. */
function usageOf(usage: z.output<typeof responseSchema>['usage']): Partial<SolverUsage> {
  const [promptTokens, completionTokens] = [usage?.prompt_tokens ?? null, usage?.completion_tokens ?? null];
  return {
    ...(promptTokens !== null && { promptTokens }),
    ...(completionTokens !== null && { completionTokens }),
    ...((promptTokens === null || completionTokens === null) && { unmetered: 1 }),
  };
}
