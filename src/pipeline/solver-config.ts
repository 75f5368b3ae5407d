/** The solver's settings: a local checkpoint, or an OpenAI-compatible endpoint. */
import * as z from 'zod';
import { CHAT_SETTINGS } from '../lm/tokenizer.js';
import type { EndpointSolverSettings } from '../solver/endpoint-solver.js';
import type { ModelSetting } from './model-setting.js';

/** Of a request's fields those that settings give, or that must follow from the run. */
const OWN_FIELDS = [
  'model',
  'messages',
  'prompt',
  'temperature',
  'max_tokens',
  'max_completion_tokens',
  'stop',
  'n',
  'seed',
  'stream',
];

/** A field's name in a request. */
const fieldName = z.string().regex(/^[A-Za-z_][\w-]*$/, 'give the name of a field, such as max_completion_tokens');

export const solverSchema = z
  .strictObject({
    temperature: z
      .number()
      .min(0)
      .default(1)
      .describe('Sampling temperature of the solver; 0: the likeliest token always.'),
    maxNewTokens: z.int().positive().default(512).describe('Longest answer; a longer one is a fail.'),
    stops: z
      .array(z.string().min(1).max(64))
      .default([])
      .describe(
        'Texts that end an answer, wherever tokens begin and end, besides the end of sequence; of a local checkpoint also besides what the notation calls a complete answer.',
      ),
    chat: z
      .enum(CHAT_SETTINGS)
      .default('auto')
      .describe(
        'Whether a question is a user’s turn of the model’s chat template. auto: as the notation has it, fenced where there is a template (an endpoint’s has one), doctest never; always; never: bare, at an endpoint by /completions.',
      ),
    endpoint: z
      .url({ protocol: /^https?$/, error: 'give a URL such as http://localhost:8000/v1' })
      .nullable()
      .default(null)
      .describe('OpenAI-compatible API that takes the place of models.solver: vLLM, SGLang, llama.cpp, TGI, ….'),
    model: z
      .string()
      .min(1)
      .nullable()
      .default(null)
      .describe('Of an endpoint: the model, by the name it is served under.'),
    tokenizer: z
      .string()
      .min(1)
      .nullable()
      .default(null)
      .describe(
        'Of an endpoint: checkpoint folder or hub id of the model, of which the tokenizer is read: questions then go to /completions as the token ids that a local solver would read, so that no text becomes a special token (vLLM, SGLang, llama.cpp).',
      ),
    apiKeyEnv: z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'give the name of an environment variable, not the key')
      .nullable()
      .default(null)
      .describe('Of an endpoint: environment variable that holds its API key.'),
    system: z.string().default('').describe('Of an endpoint: system message before every question; empty: none.'),
    body: z
      .record(z.string(), z.json())
      .refine((body) => !OWN_FIELDS.some((field) => field in body), {
        message: `holds a field that has a setting of its own, or that propel gives: ${OWN_FIELDS.join(', ')}; solver.fields gives a field another name`,
      })
      .default({})
      .describe(
        'Of an endpoint: further fields of a request, {top_p: 0.95, chat_template_kwargs: {enable_thinking: false}}.',
      ),
    fields: z
      .strictObject({
        max_tokens: fieldName
          .default('max_tokens')
          .describe('The limit of new tokens; OpenAI’s newer models call it max_completion_tokens.'),
        seed: fieldName
          .nullable()
          .default('seed')
          .describe('The seed of a request; Mistral calls it random_seed. Without one the same run has other answers.'),
        n: fieldName.nullable().default('n').describe('The number of choices; null: one a request.'),
        temperature: fieldName
          .nullable()
          .default('temperature')
          .describe('The temperature; without it the server has its own, whatever solver.temperature says.'),
      })
      .prefault({})
      .describe(
        'Of an endpoint: names that it has for fields of a request; null leaves one out: {max_tokens: max_completion_tokens, seed: null}.',
      ),
    samples: z
      .enum(['auto', 'together', 'single'])
      .default('auto')
      .describe('Of an endpoint: all attempts at a task in one request (n), one a request, or together where it can.'),
    concurrency: z.int().positive().default(16).describe('Of an endpoint: requests under way at once.'),
    timeoutSeconds: z.number().positive().default(600).describe('Of an endpoint: seconds for one whole response.'),
    retries: z
      .int()
      .min(0)
      .default(8)
      .describe(
        'Of an endpoint: times a failed request is sent again, with exponential back-off, before it is found out whether the endpoint is away, or fails at that question alone.',
      ),
    waitSeconds: z
      .number()
      .min(0)
      .default(1800)
      .describe(
        'Of an endpoint: seconds that one which has stopped answering is waited for; then the run ends, and goes on with the same batch when it is started again.',
      ),
    prices: z
      .strictObject({
        prompt: z.number().min(0).describe('Per million prompt tokens.'),
        completion: z.number().min(0).describe('Per million completion tokens.'),
      })
      .nullable()
      .default(null)
      .describe('Of an endpoint: what it charges, in any currency, for the account of a run.'),
  })
  .prefault({});

export type SolverConfig = z.infer<typeof solverSchema>;

/** What only an endpoint reads, by the defaults that say it was not set. */
const OF_ENDPOINTS = ['model', 'tokenizer', 'apiKeyEnv', 'prices'] as const;

/** What is wrong between the solver's settings and `models.solver`: the setting, and what to do. */
export function solverProblems(
  solver: SolverConfig,
  checkpoint: ModelSetting | null,
): { readonly path: string[]; readonly message: string }[] {
  const { endpoint } = solver;
  if (endpoint === null) {
    if (checkpoint === null) {
      return [{ path: ['models', 'solver'], message: 'missing; give a checkpoint folder, or solver.endpoint' }];
    }
    const stray = OF_ENDPOINTS.filter((key) => solver[key] !== null);
    return stray.map((key) => ({ path: ['solver', key], message: 'is of an endpoint; give solver.endpoint too' }));
  }
  const problems: { path: string[]; message: string }[] = [];
  // What is no URL, the schema has refused.
  if (!URL.canParse(endpoint)) return problems;
  const { username, password, search, hash } = new URL(endpoint);
  if (username || password) {
    problems.push({ path: ['solver', 'endpoint'], message: 'holds a password; name its variable in solver.apiKeyEnv' });
  }
  if (search || hash) {
    problems.push({ path: ['solver', 'endpoint'], message: 'holds more than a path; it mostly ends in /v1' });
  }
  if (solver.model === null) {
    problems.push({
      path: ['solver', 'model'],
      message: 'missing; give the name that the endpoint serves the model under',
    });
  }
  for (const problem of fieldProblems(solver)) problems.push(problem);
  if (solver.system !== '' && (solver.chat === 'never' || solver.tokenizer !== null)) {
    problems.push({
      path: ['solver', 'system'],
      message: 'is a turn of a chat, and questions go as bare texts or as token ids; leave it empty',
    });
  }
  if (checkpoint !== null) {
    problems.push({
      path: ['models', 'solver'],
      message: 'is in place of an endpoint; set it to null or drop solver.endpoint',
    });
  }
  return problems;
}

function fieldProblems({
  fields,
  body,
  samples,
}: SolverConfig): { readonly path: string[]; readonly message: string }[] {
  const problems: { path: string[]; message: string }[] = [];
  const taken = new Map<string, string>();
  for (const [field, name] of Object.entries(fields)) {
    if (name === null) continue;
    const path = ['solver', 'fields', field];
    const other = taken.get(name);
    if (other !== undefined)
      problems.push({ path, message: `${name} is the name of ${other} too; give each a name of its own` });
    else if (name !== field && OWN_FIELDS.includes(name) && name !== 'max_completion_tokens') {
      problems.push({ path, message: `${name} is the name of another field; give one of its own` });
    } else if (Object.hasOwn(body, name))
      problems.push({ path, message: `${name} stands in solver.body too; drop it there` });
    taken.set(name, field);
  }
  if (fields.n === null && samples === 'together') {
    problems.push({
      path: ['solver', 'samples'],
      message: 'together needs the field n; give single, or drop solver.fields.n',
    });
  }
  return problems;
}

/** Of the settings those that an endpoint's answers follow from; the others say how it is asked. */
export function answerSettings(solver: SolverConfig): Partial<SolverConfig> {
  const {
    apiKeyEnv: _,
    samples: _s,
    concurrency: _c,
    timeoutSeconds: _t,
    retries: _r,
    waitSeconds: _w,
    prices: _p,
    ...others
  } = solver;
  return others;
}

/** The settings of an endpoint; null where the solver is a local checkpoint. */
export function endpointSettings(solver: SolverConfig): EndpointSolverSettings | null {
  const { endpoint, model, prices: _, tokenizer: _t, chat: _c, ...others } = solver;
  return endpoint === null || model === null ? null : { endpoint, model, ...others };
}
