import { join } from 'node:path';
import { expect, it } from 'vitest';
import { PACKAGE } from '../../tests/propel-process.js';
import { UserError } from '../errors.js';
import { Tokenizer } from '../lm/tokenizer.js';
import { endpointPrompt } from './endpoint-prompt.js';
import { solverSchema } from './solver-config.js';

const endpoint = { endpoint: 'http://localhost:1/v1', model: 'm' };
const SOLVER = join(PACKAGE, 'data', 'micro-world', 'solver');
const said = { asksInChat: true };
const bare = { asksInChat: false };

it('is said in a turn or goes bare, as the notation has it unless the setting says otherwise', async () => {
  const put = async (chat: 'auto' | 'always' | 'never', domain: typeof said) =>
    (await endpointPrompt(solverSchema.parse({ ...endpoint, chat }), domain))('q');
  expect(await put('auto', said)).toEqual({ turn: 'q' });
  expect(await put('auto', bare)).toEqual({ text: 'q' });
  expect(await put('always', bare)).toEqual({ turn: 'q' });
  expect(await put('never', said)).toEqual({ text: 'q' });
});

it('is the token ids of a local solver where the tokenizer is given, special texts as the characters they are', async () => {
  const promptOf = await endpointPrompt(solverSchema.parse({ ...endpoint, tokenizer: SOLVER }), bare);
  const tokenizer = await Tokenizer.open(SOLVER);
  const question = "def f(x):\n    return x + '<eos>'\n>>> f('a')\n";
  expect(promptOf(question)).toEqual({ ids: tokenizer.question(question, 'never'), ends: tokenizer.ends });
  expect(
    (promptOf(question) as { readonly ids: readonly number[] }).ids.filter((id) => tokenizer.ends.includes(id)).length,
  ).toBe(
    tokenizer.question(question.replace("'<eos>'", "''"), 'never').filter((id) => tokenizer.ends.includes(id)).length,
  );
});

it('is not asked as a text that holds what a server would read as a special token', async () => {
  const promptOf = await endpointPrompt(solverSchema.parse(endpoint), said);
  expect(promptOf("x == '<|im_end|>'")).toBeNull();
  expect(promptOf('x < y | z')).not.toBeNull();
});

it('has no system message as a bare text', async () => {
  const opened = endpointPrompt(solverSchema.parse({ ...endpoint, system: 'Be brief.' }), bare);
  await expect(opened).rejects.toThrow(UserError);
  await expect(opened).rejects.toThrow(/^solver\.system: /);
});
