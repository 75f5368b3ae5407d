/** What a server says of a request that it does not serve: in which words, of which field, and whether for want of room. */
import { parseJsonWithin } from '../bounded-json.js';

/** Characters that are read of such a response; what comes behind them is of no use to anyone. */
const READ = 16_384;
/** Characters of a server's own words that an error repeats. */
const SHOWN = 200;

/**
 * How servers say that question and answer have no room in the model's context. None of them matches a limit on tokens a minute, nor one on
 * the new tokens alone.
 */
export const NO_ROOM: readonly (readonly [server: string, words: RegExp])[] = [
  // Also DeepSeek, OpenRouter, LiteLLM, Mistral, Together, LM Studio: they all name the context.
  ['OpenAI, Azure, vLLM, SGLang, llama.cpp, Ollama', /context[\s_-]*(length|size|window)/i],
  ['Anthropic', /exceeds? (the )?context limit/i],
  ['Anthropic, Fireworks, Bedrock, Ollama', /\b(prompt|input|conversation|request) (is )?too long\b/i],
  ['vLLM', /(longer than|exceeds?) the (model's )?max(imum)?[\s_](model|sequence)[\s_]len/i],
  ['vLLM, a prompt that fills the context', /max(_completion)?_tokens must be at least 1, got (-\d+|0)(?![\d.]*\d)/i],
  ['TensorRT-LLM', /should not exceed max_(num_tokens|seq_len|input_len)/i],
  ['TensorRT-LLM', /prompt length .{0,80}exceeds? max(imum)?[\s_](input|seq(uence)?)[\s_]len/i],
  ['TGI, Together', /inputs` (tokens \+ `max_new_tokens` must be <=|must have less than) \d+/i],
  [
    'SGLang, DeepInfra, LMDeploy',
    /input[\s_](ids[\s_])?length .{0,80}exceeds? .{0,40}(input|allowed|session|model).{0,20}\blen/i,
  ],
  ['LMDeploy', /\bsession[\s_-]*len/i],
  ['Gemini', /input token count .{0,80}exceeds the maximum/i],
  ['Copilot', /prompt token count .{0,80}exceeds the limit/i],
  ['xAI', /maximum prompt length is \d+/i],
  ['Groq', /reduce the length of the (messages|prompt|input)/i],
  ['Moonshot', /exceeded model token limit/i],
  ['MLC', /larger than the model input length limit/i],
];

/** Whether what a server says of a request that it refused is that the question, with its answer, is too long for the model. */
export function isTooLong(text: string): boolean {
  const read = text.slice(0, READ);
  return NO_ROOM.some(([, words]) => words.test(read));
}

/** What a server says of a request that it refused, on one line; empty when it says nothing. */
export function errorMessage(text: string): string {
  const line = words(text).replaceAll(/\s+/g, ' ').trim();
  return line.length <= SHOWN ? line : `${line.slice(0, SHOWN)}…`;
}

/** OpenAI's `error.message`, what others have in its place, or the text as it is: plain, or a proxy's page. */
function words(text: string): string {
  const json = parsed(text);
  for (const value of [
    field(json, 'error', 'message'),
    field(json, 'error'),
    field(json, 'message'),
    field(json, 'detail'),
  ]) {
    if (typeof value === 'string') return value;
  }
  const details = detailsOf(json).flatMap((each) => {
    const message = field(each, 'msg');
    return typeof message === 'string' ? [[...locationOf(each), message].join(': ')] : [];
  });
  return details.length > 0 ? details.join('; ') : text.slice(0, READ);
}

/** Words of a field that a server does not take, or not with this value. */
const REFUSING =
  /unsupported|not support|unknown|unrecogni[sz]ed|unexpected|not (permitted|allowed|available|enabled)|no (such )?(parameter|field|argument)|invalid|extra|additional|forbidden|deprecated|must|should|cannot|too (large|many|small|high|low)|at (most|least)|does not (take|accept|have)|only/i;

/**
 * Which of a request's fields a server refuses: by `error.param` (OpenAI), by the location of what does not validate (FastAPI, Mistral), or in
 * words. Null when it names none of them.
 */
export function refusedField(text: string, fields: readonly string[]): string | null {
  const json = parsed(text);
  const named = [
    field(json, 'error', 'param'),
    field(json, 'param'),
    ...detailsOf(json).flatMap((each) => locationOf(each).toReversed()),
  ];
  for (const name of named) {
    if (typeof name !== 'string') continue;
    const found = fields.find((each) => name === each || name.split(/[.[]/).includes(each));
    if (found !== undefined) return found;
  }
  const said = words(text);
  if (!REFUSING.test(said)) return null;
  const places = fields.flatMap((each) => {
    const at = said.search(mentionOf(each));
    return at < 0 ? [] : [{ each, at }];
  });
  return places.toSorted((a, b) => a.at - b.at)[0]?.each ?? null;
}

/** A field by its name; one that is a word of every day, or a letter, in quotes only. */
function mentionOf(name: string): RegExp {
  const exact = name.replaceAll(/[^\w]/g, String.raw`\$&`);
  const isPlain = name.includes('_') || ['seed', 'temperature'].includes(name);
  return isPlain ? new RegExp(String.raw`(?<!\w)${exact}(?!\w)`) : new RegExp(`['"\`]${exact}['"\`]`);
}

/** What does not validate, a list: FastAPI's `detail`, Mistral's `message.detail`. */
function detailsOf(json: unknown): unknown[] {
  for (const value of [field(json, 'detail'), field(json, 'message', 'detail'), field(json, 'error', 'detail')]) {
    if (Array.isArray(value)) return value.slice(0, 20);
  }
  return [];
}

function locationOf(detail: unknown): string[] {
  const location = field(detail, 'loc');
  return Array.isArray(location) ? location.filter((part): part is string => typeof part === 'string') : [];
}

function parsed(text: string): unknown {
  try {
    return parseJsonWithin(text.slice(0, READ));
  } catch {
    return null;
  }
}

function field(json: unknown, ...path: readonly string[]): unknown {
  let value = json;
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}
