import { expect, it } from 'vitest';
import { describeAccount } from './solver-account.js';
import { NO_USAGE } from '../solver/usage.js';
import { endpointSettings, solverProblems, solverSchema } from './solver-config.js';

const URL_OF = 'http://localhost:8000/v1';
const problems = (settings: Record<string, unknown>, checkpoint: string | null): string[] =>
  solverProblems(solverSchema.parse(settings), checkpoint).map(({ path, message }) => `${path.join('.')}: ${message}`);

it('is a checkpoint or an endpoint, one of them', () => {
  expect(problems({}, 'data/solver')).toEqual([]);
  expect(problems({ endpoint: URL_OF, model: 'm' }, null)).toEqual([]);
  expect(problems({}, null)).toEqual(['models.solver: missing; give a checkpoint folder, or solver.endpoint']);
  expect(problems({ endpoint: URL_OF, model: 'm' }, 'data/solver')).toEqual([
    'models.solver: is in place of an endpoint; set it to null or drop solver.endpoint',
  ]);
});

it('of an endpoint needs its model, and nothing secret in its URL', () => {
  expect(problems({ endpoint: URL_OF }, null)).toEqual([
    'solver.model: missing; give the name that the endpoint serves the model under',
  ]);
  expect(problems({ endpoint: 'https://user:pass@host/v1', model: 'm' }, null)).toEqual([
    'solver.endpoint: holds a password; name its variable in solver.apiKeyEnv',
  ]);
  expect(problems({ endpoint: `${URL_OF}?key=1`, model: 'm' }, null)).toEqual([
    'solver.endpoint: holds more than a path; it mostly ends in /v1',
  ]);
  expect(problems({ model: 'm', prices: { prompt: 1, completion: 2 } }, 'data/solver')).toEqual([
    'solver.model: is of an endpoint; give solver.endpoint too',
    'solver.prices: is of an endpoint; give solver.endpoint too',
  ]);
  for (const endpoint of ['localhost:8000', 'ftp://host/v1', '/v1']) {
    expect(solverSchema.safeParse({ endpoint }).error?.issues[0]?.message).toBe(
      'give a URL such as http://localhost:8000/v1',
    );
  }
  const body = solverSchema.safeParse({ body: { top_k: 20, n: 4 } });
  expect(body.error?.issues[0]?.message).toMatch(
    /^holds a field that has a setting of its own, or that propel gives: /,
  );
  const key = solverSchema.safeParse({ apiKeyEnv: 'sk-123' });
  expect(key.error?.issues[0]?.message).toBe('give the name of an environment variable, not the key');
});

it('asks sixteen requests at once, with eight retries, unless told', () => {
  const settings = solverSchema.parse({ endpoint: URL_OF, model: 'm' });
  expect(endpointSettings(settings)).toMatchObject({
    concurrency: 16,
    retries: 8,
    samples: 'auto',
    timeoutSeconds: 600,
  });
  expect(endpointSettings(solverSchema.parse({}))).toBeNull();
});

it('says in one line what an endpoint was used for', () => {
  const usage = { ...NO_USAGE, requests: 120, retries: 3, promptTokens: 9000, completionTokens: 40_000 };
  expect(describeAccount({ ...usage, cost: 1.234 })).toBe(
    '120 requests to the solver, 3 of them retries; 9000 prompt and 40000 completion tokens; cost 1.23',
  );
  expect(describeAccount({ ...usage, unmetered: 2, cost: null })).toMatch(/tokens; 2 responses without token counts$/);
  expect(describeAccount({ ...usage, cutOff: 4, empty: 1, refused: 2, cost: null })).toMatch(
    /tokens; 4 answers cut off; 1 answer empty; 2 answers refused$/,
  );
});

it('gives fields of a request other names, or leaves them out', () => {
  const settings = solverSchema.parse({
    endpoint: URL_OF,
    model: 'm',
    fields: { max_tokens: 'max_completion_tokens', seed: null },
  });
  expect(endpointSettings(settings)!.fields).toEqual({
    max_tokens: 'max_completion_tokens',
    seed: null,
    n: 'n',
    temperature: 'temperature',
  });
  const of = (more: object) => problems({ endpoint: URL_OF, model: 'm', ...more }, null);
  expect(of({ fields: { max_tokens: 'limit', seed: 'limit' } })).toEqual([
    'solver.fields.seed: limit is the name of max_tokens too; give each a name of its own',
  ]);
  expect(of({ fields: { max_tokens: 'messages' } })).toEqual([
    'solver.fields.max_tokens: messages is the name of another field; give one of its own',
  ]);
  expect(of({ fields: { seed: 'random_seed' }, body: { random_seed: 1 } })).toEqual([
    'solver.fields.seed: random_seed stands in solver.body too; drop it there',
  ]);
  expect(of({ fields: { n: null }, samples: 'together' })).toEqual([
    'solver.samples: together needs the field n; give single, or drop solver.fields.n',
  ]);
  expect(solverSchema.safeParse({ fields: { max_tokens: null } }).success).toBe(false);
  expect(solverSchema.safeParse({ fields: { seed: '' } }).error?.issues[0]?.message).toMatch(
    /^give the name of a field/,
  );
  expect(solverSchema.safeParse({ body: { max_completion_tokens: 4 } }).success).toBe(false);
});
