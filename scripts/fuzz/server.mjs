/** Fuzzing of what clients send to `propel serve`: the bodies of its two routes, as they come and as they are read. */
import { Readable } from 'node:stream';
import { UserError } from '../../dist/errors.js';
import { BodyTooLarge, readBody } from '../../dist/server/body.js';
import { SpecialTokens } from '../../dist/domain/special-tokens.js';
import { BadRequest, readJson, readOpenRlhf, readOwn } from '../../dist/server/protocols.js';

const KINDS = ['code_o', 'code_i', 'code_f'];
const SPECIAL = new SpecialTokens(['<|im_end|>', '</s>']);
const MEBIBYTE = 1 << 20;
/** The server's own limit, unless told. */
const LONGEST = 32 * MEBIBYTE;

/** A request's body in pieces, as a socket gives it. @param {Uint8Array} bytes */
async function bodyOf(bytes) {
  const size = Math.max(1, Math.ceil(bytes.length / 3));
  const pieces = [0, size, 2 * size].map((at) => Buffer.from(bytes.subarray(at, at + size)));
  const request = Object.assign(Readable.from(pieces.filter(({ length }) => length > 0)), { headers: {} });
  return readBody(request, LONGEST);
}

/** @param {(json: unknown) => unknown} read */
const parserOf = (read) => async (/** @type {Uint8Array} */ bytes) => {
  try {
    return read(readJson(await bodyOf(bytes)));
  } catch (error) {
    if (error instanceof BadRequest || error instanceof BodyTooLarge)
      throw new UserError(error.message, { cause: error });
    throw error;
  }
};

const TASK = '```python\ndef f(a):\n    return a[::-1]\n```\n```input\n[1, 2, 3]\n```';

const hostile = [
  '',
  'null',
  '[]',
  '{"__proto__":{"query":[]}}',
  '['.repeat(400_000) + ']'.repeat(400_000),
  () => '['.repeat(LONGEST),
  () => `{"query":[${'"",'.repeat(LONGEST / 4)}""]}`,
  () => `{"items":[${'{},'.repeat(LONGEST / 4)}{}]}`,
  () => `{"query":["${'x'.repeat(LONGEST + 1)}"]}`,
];

export const parsers = [
  {
    name: 'OpenRLHF requests',
    seeds: [
      JSON.stringify({
        query: [`<s>Write a task.\n${TASK}<|im_end|>`],
        prompts: ['Write a task.\n'],
        labels: ['code_o'],
      }),
      JSON.stringify({
        query: [`${TASK}</s>`, 'no task'],
        prompts: [null, ''],
        labels: [{ type: 'code_i' }, 'code_f'],
      }),
      JSON.stringify({ query: ['<pad><pad>a b', 'a'], prompts: ['a', 'a'], labels: [] }),
    ],
    hostile: [
      ...hostile,
      () => JSON.stringify({ query: ['<|im_end|>'.repeat(MEBIBYTE)], prompts: [''], labels: ['code_o'] }),
      () =>
        JSON.stringify({ query: ['<s>'.repeat(MEBIBYTE)], prompts: ['<s>'.repeat(MEBIBYTE / 2)], labels: ['code_o'] }),
      () =>
        JSON.stringify({
          query: ['a'.repeat(14 * MEBIBYTE)],
          prompts: ['a '.repeat(7 * MEBIBYTE)],
          labels: ['code_o'],
        }),
      () =>
        JSON.stringify({
          query: [' \n'.repeat(2 * MEBIBYTE)],
          prompts: [' '.repeat(4 * MEBIBYTE)],
          labels: ['code_o'],
        }),
      () => JSON.stringify({ query: [`${'<|'.repeat(2 * MEBIBYTE)}|>`], prompts: ['a'], labels: ['code_o'] }),
    ],
    parse: parserOf((json) => readOpenRlhf(json, KINDS, SPECIAL)),
  },
  {
    name: 'reward requests',
    seeds: [
      JSON.stringify({ items: [{ completion: TASK, type: 'code_o' }], deadlineMs: 5000 }),
      JSON.stringify({
        items: [
          { completion: `${TASK}<|im_end|>\n`, type: 'code_f' },
          { completion: '', type: 'code_i' },
        ],
      }),
      '{"items":[{"completion":"a","type":"code_x"}],"deadlineMs":-1}',
    ],
    hostile: [
      ...hostile,
      () => JSON.stringify({ items: [{ completion: '</s> \n'.repeat(MEBIBYTE), type: 'code_o' }] }),
      () => JSON.stringify({ items: Array.from({ length: 100_000 }, () => ({ completion: 'a', type: 'code_o' })) }),
      () => JSON.stringify({ items: [{ completion: TASK, ['x'.repeat(MEBIBYTE)]: 1 }] }),
    ],
    parse: parserOf((json) => readOwn(json, KINDS, SPECIAL)),
  },
];
