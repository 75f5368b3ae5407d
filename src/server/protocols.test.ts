import { describe, expect, it } from 'vitest';
import { SpecialTokens } from '../domain/special-tokens.js';
import { BadRequest, readJson, readOpenRlhf } from './protocols.js';

describe('a body', () => {
  it.each(['', '{"query":', '<html>'])('that is not JSON is refused: %j', (text) => {
    expect(() => readJson(text)).toThrow(BadRequest);
    expect(() => readJson(text)).toThrow(/^the body is not JSON: /);
  });

  it('of more values than can be held is refused before it is read', () => {
    expect(() => readJson(`{"items":[${'{},'.repeat(600_000)}{}]}`)).toThrow(/more than 500000 values/);
    expect(readJson('{"query":["[,[,[,"]}')).toEqual({ query: ['[,[,[,'] });
  });
});

it('compares long prompts with every kind of white space', () => {
  const special = new SpecialTokens();
  const prompt = 'a\u00a0b\u2003c\td \u3000'.repeat(1000);
  const query = [`<s>${'abcd'.repeat(1000)}x`];
  const [item] = readOpenRlhf({ query, prompts: [prompt] }, ['code_o'], special);
  expect(item!.completion).toBe('x');
  const other = prompt.replace('d', 'e');
  expect(() => readOpenRlhf({ query, prompts: [other] }, ['code_o'], special)).toThrow(
    'query.0 does not begin with prompts.0',
  );
});
