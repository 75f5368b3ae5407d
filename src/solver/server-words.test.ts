import { describe, expect, it } from 'vitest';
import { errorMessage, isTooLong, NO_ROOM, refusedField } from './server-words.js';

/** Each pattern of the table has one here that it matches, as its server writes it. */
const OVERFLOWS: readonly (readonly [server: string, text: string])[] = [
  ['OpenAI', "This model's maximum context length is 4097 tokens. However, your messages resulted in 5000 tokens."],
  [
    'OpenAI',
    '{"error":{"message":"Please shorten it.","type":"invalid_request_error","code":"context_length_exceeded"}}',
  ],
  ['OpenAI', 'Your input exceeds the context window of this model. Please adjust your input and try again.'],
  ['vLLM', 'The decoder prompt (length 5000) is longer than the maximum model length of 4096.'],
  ['vLLM', "Input length (265330) exceeds model's maximum context length (262144)."],
  ['vLLM', 'max_tokens must be at least 1, got -5.'],
  [
    'vLLM',
    "'max_tokens' or 'max_completion_tokens' is too large: 100. This model's maximum context length is 2048 tokens and your request has 2000 input tokens (100 > 2048 - 2000).",
  ],
  ['SGLang', "The input (5000 tokens) is longer than the model's context length (4096 tokens)."],
  ['SGLang', "Requested token count exceeds the model's maximum context length of 131072 tokens."],
  ['SGLang', 'Input length (5000 tokens) exceeds the maximum allowed length (4096 tokens). Use a shorter input.'],
  ['llama.cpp', 'the request exceeds the available context size, try increasing it'],
  ['llama.cpp', '{"error":{"code":400,"message":"too many","type":"exceed_context_size_error","n_ctx":8192}}'],
  ['TGI', '`inputs` tokens + `max_new_tokens` must be <= 2048. Given: 3000 `inputs` tokens and 512 `max_new_tokens`'],
  ['TGI', 'Input validation error: `inputs` must have less than 1024 tokens. Given: 2000'],
  ['TensorRT-LLM', 'The sum of prompt length (9351.0), query length (0) should not exceed max_num_tokens (8192)'],
  [
    'TensorRT-LLM',
    'The sum of prompt length (3000) and query length (0) max_tokens (2000) should not exceed max_seq_len (4096)',
  ],
  ['TensorRT-LLM', 'Prompt length (9000) exceeds maximum input length (8192)'],
  ['LMDeploy', 'the input token length 9000 exceeds session_len 8192'],
  ['LMDeploy', 'input_ids length 9000 exceeds the max session length'],
  ['Ollama', 'prompt too long; exceeded max context length by 918 tokens'],
  ['Ollama', 'input length exceeds maximum context length'],
  ['Anthropic', 'prompt is too long: 210000 tokens > 200000 maximum'],
  ['Anthropic', 'input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length'],
  ['Gemini', 'The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).'],
  ['Mistral', 'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length'],
  ['Fireworks', 'The prompt is too long: 150000, model maximum context length: 131071'],
  ['Groq', 'Please reduce the length of the messages or completion.'],
  ['xAI', "This model's maximum prompt length is 131072 but the request contains 537812 tokens."],
  ['DeepInfra', 'Requested input length 39818 exceeds maximum input length 32767'],
  ['Poolside', 'Input length 131393 exceeds the maximum allowed input length of 131040 tokens.'],
  ['Copilot', 'prompt token count of 200000 exceeds the limit of 128000'],
  ['Moonshot', 'Your request exceeded model token limit: 256000 (requested: 300000)'],
  ['MLC', 'Request prompt has 9000 tokens in total, larger than the model input length limit 4096.'],
  ['Bedrock', 'Input is too long for requested model.'],
  ['LM Studio', 'The number of tokens to keep from the initial prompt is greater than the context length.'],
];

describe('a context without room', () => {
  it.each(OVERFLOWS)('is told by %s: %s', (_, text) => {
    expect(isTooLong(text)).toBe(true);
  });

  it('has no pattern that nothing matches', () => {
    const idle = NO_ROOM.filter(([, words]) => !OVERFLOWS.some(([, text]) => words.test(text)));
    expect(idle).toEqual([]);
  });

  it.each([
    'no such request',
    'max_tokens is too large: 100000. This model supports at most 16384 completion tokens.',
    'Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 7000. Please reduce your message size and try again.',
    'Throttling error: Too many tokens, please wait before trying again.',
    'The response was filtered due to the prompt triggering the content management policy.',
    "Only one completion choice is allowed: 'n' must be 1",
    'max_num_tokens is no parameter of this model',
    'max_tokens must be at least 1, got 0.5',
  ])('is not meant by: %s', (text) => {
    expect(isTooLong(text)).toBe(false);
  });
});

describe('the field that a server refuses', () => {
  const FIELDS = ['model', 'stop', 'temperature', 'seed', 'n', 'max_tokens', 'top_k'];
  const invalid = (loc: readonly (string | number)[]) => [
    { type: 'extra_forbidden', loc, msg: 'Extra inputs are not permitted' },
  ];

  it.each<[string | null, unknown]>([
    [
      'max_tokens',
      {
        error: {
          message: 'max_tokens is no parameter of this model; it takes max_completion_tokens',
          param: 'max_tokens',
        },
      },
    ],
    [
      'max_tokens',
      {
        error: {
          message:
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        },
      },
    ],
    ['seed', { error: { message: 'Unknown parameter.', param: 'seed' } }],
    ['seed', { detail: invalid(['body', 'seed']) }],
    ['seed', { object: 'error', message: { detail: invalid(['body', 'seed']) }, type: 'invalid_request_error' }],
    ['seed', { error: 'json: unknown field "seed"' }],
    [
      'temperature',
      {
        error: {
          message: "Unsupported value: 'temperature' does not support 0.7 with this model.",
          param: 'temperature',
        },
      },
    ],
    ['n', { error: { message: "Only one completion choice is allowed: 'n' must be 1" } }],
    ['n', 'n: Extra inputs are not permitted; `n` is forbidden'],
    ['stop', { error: { message: "Unsupported parameter: 'stop' is not supported with this model.", param: 'stop' } }],
    ['top_k', { message: 'property top_k is unsupported' }],
    ['model', { error: { message: 'The model does not exist', param: 'model' } }],
    // Words of every day are no fields.
    [null, { error: { message: 'This model must stop: only n answers are allowed' } }],
    [null, { error: { message: 'Invalid request', param: 'messages.0.content' } }],
    [null, { error: { message: 'seed' } }],
    [null, 'no such request'],
  ])('is %s in %j', (field, body) => {
    expect(refusedField(typeof body === 'string' ? body : JSON.stringify(body), FIELDS)).toBe(field);
  });
});

it('says in one short line what a server says', () => {
  expect(errorMessage('{"error":{"message":"a\\n b"}}')).toBe('a b');
  expect(errorMessage('{"detail":[{"loc":["body","seed"],"msg":"Extra inputs are not permitted"}]}')).toBe(
    'body: seed: Extra inputs are not permitted',
  );
  expect(errorMessage('<html>')).toBe('<html>');
  expect(errorMessage('x'.repeat(1_000_000))).toHaveLength(201);
});
