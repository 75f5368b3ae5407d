import { describe, expect, it } from 'vitest';
import { isTooLong, readChatResponse } from './chat-protocol.js';

const response = (fields: Readonly<Record<string, unknown>>, choice: Readonly<Record<string, unknown>> = {}): string =>
  JSON.stringify({ choices: [{ message: { content: 'a' }, finish_reason: 'stop', ...choice }], ...fields });

describe('a chat response', () => {
  it.each([
    ['none', {}],
    ['null', { usage: null }],
    ['an empty account', { usage: {} }],
    ['nulls', { usage: { prompt_tokens: null, completion_tokens: null } }],
    ['what is no account', { usage: 'none' }],
    ['a count that cannot be', { usage: { prompt_tokens: -1, completion_tokens: 2 } }],
  ])('keeps its answers whatever is said of tokens: %s', (_, fields) => {
    expect(readChatResponse(response(fields), 1)).toEqual({
      attempts: [{ answer: 'a', status: 'answered' }],
      usage: { unmetered: 1 },
    });
  });

  it('gives what it used', () => {
    const { usage } = readChatResponse(response({ usage: { prompt_tokens: 7, completion_tokens: 3 } }), 1);
    expect(usage).toEqual({ promptTokens: 7, completionTokens: 3 });
    expect(readChatResponse(response({ usage: { prompt_tokens: 7 } }), 1).usage).toEqual({
      promptTokens: 7,
      completionTokens: 0,
    });
  });

  it('takes choices without an index, or with null, by their place', () => {
    const choices = ['a', 'b'].map((content) => ({ index: null, message: { content }, finish_reason: 'stop' }));
    const { attempts } = readChatResponse(JSON.stringify({ choices }), 2);
    expect(attempts.map(({ answer }) => answer)).toEqual(['a', 'b']);
  });

  it('takes a text in parts, and leaves out what is no text', () => {
    const parts = [
      { type: 'text', text: 'a' },
      { type: 'image_url', image_url: { url: 'data:' } },
      { type: 'text', text: 'b' },
    ];
    const message = { content: parts, reasoning_content: 'c' };
    expect(readChatResponse(response({}, { message }), 1).attempts).toEqual([{ answer: 'ab', status: 'answered' }]);
  });

  it.each(['length', 'max_tokens', 'model_length'])('is cut off by %s', (reason) => {
    expect(readChatResponse(response({}, { finish_reason: reason }), 1).attempts).toEqual([
      { answer: 'a', status: 'cut_off' },
    ]);
  });

  it.each(['content_filter', 'abort', null])('holds no answer that ended by %s', (reason) => {
    expect(readChatResponse(response({}, { finish_reason: reason }), 1).attempts).toEqual([]);
  });

  it('that is none is refused', () => {
    expect(() => readChatResponse('{"choices":[{}]}', 1)).toThrow(/no chat completion: choices\.0\.message/);
    expect(() => readChatResponse('<html>', 1)).toThrow(/not JSON/);
  });
});

describe('what a server says of a request that it refuses', () => {
  it.each([
    "This model's maximum context length is 4097 tokens. However, your messages resulted in 5000 tokens.",
    '{"error":{"message":"Please shorten it.","type":"invalid_request_error","code":"context_length_exceeded"}}',
    'The decoder prompt (length 5000) is longer than the maximum model length of 4096.',
    "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
    'the request exceeds the available context size, try increasing it',
    'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 3000 `inputs` tokens and 512 `max_new_tokens`',
    'Input validation error: `inputs` must have less than 1024 tokens. Given: 2000',
    'prompt is too long: 210000 tokens > 200000 maximum',
  ])('has no room for the question: %s', (text) => {
    expect(isTooLong(text)).toBe(true);
  });

  it.each([
    'no such request',
    'max_tokens is too large: 100000. This model supports at most 16384 completion tokens.',
    'Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 7000',
    'The response was filtered due to the prompt triggering the content management policy.',
    "Only one completion choice is allowed: 'n' must be 1",
  ])('is of another kind: %s', (text) => {
    expect(isTooLong(text)).toBe(false);
  });
});
