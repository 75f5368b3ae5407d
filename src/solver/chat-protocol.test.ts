import { describe, expect, it } from 'vitest';
import { readChatResponse } from './chat-protocol.js';

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
