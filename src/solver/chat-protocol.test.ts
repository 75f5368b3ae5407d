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
    ['counts that are none', { usage: { prompt_tokens: -1, completion_tokens: 2.5 } }],
    ['counts that no one can hold', { usage: { prompt_tokens: 1e300, completion_tokens: 2 ** 53 } }],
    ['counts in words', { usage: { prompt_tokens: '5', completion_tokens: [] } }],
  ])('keeps its answers whatever is said of tokens: %s', (_, fields) => {
    expect(readChatResponse(response(fields), 1)).toMatchObject({
      attempts: [{ answer: 'a', status: 'answered' }],
      usage: { unmetered: 1 },
    });
    expect(readChatResponse(response(fields), 1).usage).not.toHaveProperty('promptTokens');
  });

  it('gives what it used', () => {
    const { usage } = readChatResponse(response({ usage: { prompt_tokens: 7, completion_tokens: 3 } }), 1);
    expect(usage).toEqual({ promptTokens: 7, completionTokens: 3 });
  });

  it.each([-1, 1.5, 1e300, 2 ** 53, '3', null, undefined])(
    'is unmetered where one count is none, and keeps the other: %s',
    (count) => {
      const usageOf = (usage: object) => readChatResponse(response({ usage }), 1).usage;
      expect(usageOf({ prompt_tokens: 7, completion_tokens: count })).toEqual({ promptTokens: 7, unmetered: 1 });
      expect(usageOf({ prompt_tokens: count, completion_tokens: 7 })).toEqual({ completionTokens: 7, unmetered: 1 });
    },
  );

  it.each([null, undefined, '1', 0.5])('takes choices by their place where the index is %s', (index) => {
    const choices = ['a', 'b'].map((content) => ({ index, message: { content }, finish_reason: 'stop' }));
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

  it('is cut off by its limit, whatever was written', () => {
    const finish_reason = 'length';
    const statusOf = (message: object) => readChatResponse(response({}, { message, finish_reason }), 1).attempts;
    expect(statusOf({ content: 'a' })).toEqual([{ answer: 'a', status: 'cut_off' }]);
    // A reasoning model whose limit went into its thinking.
    expect(statusOf({ content: null, reasoning_content: 'so' })).toEqual([{ answer: 'so', status: 'cut_off' }]);
    expect(statusOf({ content: null })).toEqual([{ answer: '', status: 'cut_off' }]);
  });

  it.each(['content_filter', 'abort'])('holds no answer that ended by %s, and names it', (finish_reason) => {
    const { attempts, why } = readChatResponse(response({}, { finish_reason }), 1);
    expect(attempts).toEqual([]);
    expect(why).toBe(`a response without a whole choice: finish_reason "${finish_reason}"`);
  });

  it.each(['eos_found', null, undefined])(
    'is whole where the reason is not known, which is told: %s',
    (finish_reason) => {
      const { attempts, remarks } = readChatResponse(response({}, { finish_reason }), 1);
      expect(attempts).toEqual([{ answer: 'a', status: 'answered' }]);
      const name = JSON.stringify(finish_reason ?? null);
      expect(remarks).toEqual([`finish_reason ${name} is not known: its texts are taken as whole answers`]);
      // Neither an end nor a text: nothing has been answered.
      const silent = readChatResponse(response({}, { finish_reason, message: { content: null } }), 1);
      expect(silent).toMatchObject({ attempts: [], why: `a response without a whole choice: finish_reason ${name}` });
    },
  );

  it('that is none is refused', () => {
    expect(() => readChatResponse('{"choices":[{}]}', 1)).toThrow(
      /no completion: choices\.0: has neither message nor text/,
    );
    expect(() => readChatResponse('<html>', 1)).toThrow(/not JSON/);
  });
});

describe('a message without content', () => {
  const read = (message: object) => readChatResponse(response({}, { message }), 1);

  it.each([
    [{ content: null, reasoning_content: '2' }],
    [{ content: '', reasoning: '2' }],
    [{ reasoning_content: null, reasoning: '2' }],
    [{ content: ' \n', reasoning_content: '2' }],
    [{ content: [], reasoning: '2' }],
  ])('is its reasoning, where a server has put the whole output there: %j', (message) => {
    const { attempts, remarks } = read(message);
    expect(attempts).toEqual([{ answer: '2', status: 'answered' }]);
    expect(remarks).toEqual([expect.stringMatching(/^content is empty and the text stands in the reasoning/)]);
  });

  it('is not read from the reasoning where there is content', () => {
    expect(read({ content: '1', reasoning_content: '2', reasoning: '3' })).toMatchObject({
      attempts: [{ answer: '1', status: 'answered' }],
      remarks: [],
    });
  });

  it('is empty where there is no text at all, or none that is one', () => {
    for (const message of [
      { content: null },
      { content: '' },
      {},
      { content: null, reasoning: { summary: 'a' }, refusal: 7 },
    ]) {
      expect(read(message).attempts).toEqual([{ answer: '', status: 'empty' }]);
    }
  });

  it('is a refusal where it says so', () => {
    const refused = [{ answer: 'I will not.', status: 'refused' }];
    expect(read({ content: null, refusal: 'I will not.' }).attempts).toEqual(refused);
    const message = { content: 'I will not.' };
    expect(readChatResponse(response({}, { message, finish_reason: 'refusal' }), 1).attempts).toEqual(refused);
    expect(read({ content: '1', refusal: '' }).attempts).toEqual([{ answer: '1', status: 'answered' }]);
  });
});

describe('a hostile response', () => {
  it('is read only as far as it can be held', () => {
    expect(() => readChatResponse(`{"choices":[${'[],'.repeat(600_000)}[]]}`, 1)).toThrow(/more than 500000 values/);
    expect(() => readChatResponse('['.repeat(1_000_000), 1)).toThrow(/more than 500000 values/);
    expect(() => readChatResponse('['.repeat(400_000), 1)).toThrow(/not JSON/);
    const choices = Array.from({ length: 5000 }, () => ({ message: { content: 'a' } }));
    expect(() => readChatResponse(JSON.stringify({ choices }), 8)).toThrow(
      'the response has 5000 choices, 8 were asked for',
    );
    // Brackets in a text are no values.
    const content = '[,{'.repeat(400_000);
    expect(readChatResponse(response({}, { message: { content } }), 1).attempts[0]!.answer).toBe(content);
  });
});
