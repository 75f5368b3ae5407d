/** What a choice's `finish_reason` says of its text. The field is open: servers name their own reasons, in capitals or small letters. */

/**
 * `whole`: the model ended by itself; `cut`: it ran into a limit; `refused`: it would not answer; `lost`: the server broke it off or holds
 * it back; `unknown`: a reason that nobody has told us of, or none at all.
 */
export type Ending = 'whole' | 'cut' | 'refused' | 'lost' | 'unknown';

const WHOLE = new Set(
  // OpenAI, vLLM and SGLang; TGI; llama.cpp's own route; Anthropic's, Cohere's and Ollama's through gateways. A tool call is an end too.
  [
    ['stop', 'tool_calls', 'function_call'],
    ['eos_token', 'stop_sequence', 'eos'],
    ['end', 'end_turn', 'tool_use', 'complete', 'completed', 'finish', 'finished', 'done', 'tool_call'],
  ].flat(),
);

/** Looked for in this order in what is no end: a `content_filter` is none for its `limit`, nor a `max_time` error for its maximum. */
const SIGNS: readonly (readonly [Ending, RegExp])[] = [
  ['refused', /^refus(al|ed)$/],
  [
    'lost',
    /abort|cancel|error|fail|timeout|filter|safety|sensitive|recitation|block|prohibited|spii|malformed|insufficient|rate_limit|overload|preempt/,
  ],
  ['cut', /length|max|limit|trunc|window|incomplete|budget/],
];

/** Of a choice of a response that is not streamed. */
export function endingOf(finishReason: string | null): Ending {
  if (finishReason === null) return 'unknown';
  const reason = finishReason
    .trim()
    .toLowerCase()
    .replaceAll(/[\s-]+/g, '_');
  if (WHOLE.has(reason)) return 'whole';
  return SIGNS.find(([, sign]) => sign.test(reason))?.[0] ?? 'unknown';
}
