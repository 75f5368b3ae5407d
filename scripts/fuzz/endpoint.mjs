/** Fuzzing of what a solver's endpoint sends: the body of a completion, and what it says of a request that it refuses. */
import { UserError } from '../../dist/errors.js';
import { NoCompletion, readChatResponse } from '../../dist/solver/chat-protocol.js';
import { errorMessage, isTooLong, refusedField } from '../../dist/solver/server-words.js';

const CHOICES = 8;
const FIELDS = ['max_tokens', 'seed', 'n', 'temperature', 'stop', 'model', 'top_k'];

const text = (bytes) => new TextDecoder().decode(bytes);

const completion = (choice, fields = {}) =>
  JSON.stringify({
    id: 'chat-1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'a' }, finish_reason: 'stop', ...choice }],
    usage: { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 },
    ...fields,
  });

const MEBIBYTE = 1 << 20;
/** What a client reads at most. */
const LONGEST = 16 * MEBIBYTE;

const completionSeeds = [
  completion({}),
  completion({ message: { role: 'assistant', content: null, reasoning_content: 'so it is 2' }, finish_reason: 'eos' }),
  completion({ message: { role: 'assistant', content: null, refusal: 'I will not.' } }),
  completion({ message: { content: [{ type: 'text', text: '```output\n7\n```' }] }, finish_reason: null }),
  completion({}, { usage: { prompt_tokens: 1.5, completion_tokens: 1e300 } }),
  JSON.stringify({
    choices: Array.from({ length: CHOICES }, (_, index) => ({
      index,
      message: { content: `[${index}]` },
      finish_reason: ['stop', 'length', 'content_filter', 'STOP'][index % 4],
    })),
  }),
];

const completionsHostile = [
  '',
  'null',
  '{"choices":null}',
  '{"choices":[null]}',
  '{"__proto__":{"choices":[]}}',
  '['.repeat(400_000) + ']'.repeat(400_000),
  '{"choices":'.repeat(300_000) + '1' + '}'.repeat(300_000),
  () => '['.repeat(LONGEST),
  () => `{"choices":[${'[],'.repeat(LONGEST / 4)}[]]}`,
  () => completion({ message: { content: 'x'.repeat(LONGEST - MEBIBYTE) } }),
  () => completion({ message: { content: String.raw`\u0041`.repeat(2 * MEBIBYTE) } }),
  () => completion({ message: { content: Array.from({ length: 150_000 }, () => ({ type: 'text', text: 'a' })) } }),
  () => JSON.stringify({ choices: Array.from({ length: 80_000 }, () => ({ message: { content: 'a' } })) }),
  () => completion({ finish_reason: 'x'.repeat(MEBIBYTE) }),
  completion({ index: 1e300 }),
  completion({ message: { content: '\uD800\u0000' } }),
];

const errorSeeds = [
  '{"error":{"message":"Unsupported parameter: \'max_tokens\' is not supported with this model. Use \'max_completion_tokens\' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}',
  '{"detail":[{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not permitted","input":1}]}',
  '{"object":"error","message":{"detail":[{"loc":["body","seed"],"msg":"Extra inputs are not permitted"}]}}',
  '{"error":{"message":"This model\'s maximum context length is 4097 tokens.","code":"context_length_exceeded"}}',
  '{"error":"The sum of prompt length (9351.0), query length (0) should not exceed max_num_tokens (8192)"}',
  '<html><body>502 Bad Gateway</body></html>',
];

const errorsHostile = [
  '',
  'null',
  '{"error":[]}',
  '{"detail":[null,1,{"loc":[[]]}]}',
  '['.repeat(100_000),
  () => 'input token count '.repeat(MEBIBYTE / 4),
  () => 'prompt length '.repeat(MEBIBYTE / 4),
  () => ' \n'.repeat(4 * MEBIBYTE),
  () => `{"error":{"message":"${'max_tokens '.repeat(MEBIBYTE)}"}}`,
  () => JSON.stringify({ detail: Array.from({ length: 100_000 }, () => ({ loc: ['body', 'seed'], msg: 'no' })) }),
];

export const parsers = [
  {
    name: 'completions',
    seeds: completionSeeds,
    hostile: completionsHostile,
    parse: (bytes) => {
      try {
        return readChatResponse(text(bytes), CHOICES);
      } catch (error) {
        throw error instanceof NoCompletion ? new UserError(error.message, { cause: error }) : error;
      }
    },
  },
  {
    name: 'refusals',
    seeds: errorSeeds,
    hostile: errorsHostile,
    parse: (bytes) => {
      const said = text(bytes);
      return [errorMessage(said), isTooLong(said), refusedField(said, FIELDS)];
    },
  },
];
