/** What the server's routes take and give: OpenRLHF's remote reward, and our own with three kinds of result. */
import { z } from 'zod';
import { parseJsonWithin } from '../bounded-json.js';
import { inOneLine } from '../errors.js';
import type { SpecialTokens } from '../domain/special-tokens.js';
import type { ItemResult, RewardItem } from './reward-service.js';

/** The request cannot be served as it is: status 400. */
export class BadRequest extends Error {
  override readonly name = 'BadRequest';
}

/** @throws BadRequest */
export function readJson(text: string): unknown {
  try {
    return parseJsonWithin(text);
  } catch (cause) {
    throw new BadRequest(`the body is not JSON: ${inOneLine((cause as Error).message)}`, { cause });
  }
}

const openRlhfSchema = z.object({
  query: z.array(z.string()),
  prompts: z.array(z.string().nullable()).nullish(),
  labels: z.array(z.unknown()).nullish(),
});

/**
 * OpenRLHF sends whole samples (`query`) with their `prompts`; `labels` are the data set's, and where one names a type of task, that
 * is the item's. Other fields are left alone.
 * @throws BadRequest
 */
export function readOpenRlhf(json: unknown, kinds: readonly string[], special: SpecialTokens): RewardItem[] {
  const { query, prompts, labels } = parse(openRlhfSchema, json);
  for (const [name, list] of Object.entries({ prompts, labels })) {
    if (list && list.length > 0 && list.length !== query.length) {
      throw new BadRequest(`${name} has ${list.length} entries, query has ${query.length}`);
    }
  }
  return query.map((text, i) => {
    const completion = special.afterPrompt(text, prompts?.[i] ?? '');
    if (completion === null) throw new BadRequest(`query.${i} does not begin with prompts.${i}`);
    const kind = kindOf(labels?.[i], kinds, `labels.${i}`);
    return { kind, completion: special.withoutEnds(completion), isCut: false };
  });
}

/** OpenRLHF's response: `scores`, in 0 to 1, are for its dynamic filtering; `extra_logs` go to its logger, one number a sample. */
export function writeOpenRlhf(results: readonly Exclude<ItemResult, { status: 'error' }>[]): unknown {
  const valid = results.map(({ status }) => (status === 'valid' ? 1 : 0));
  const repeat = results.map(({ outcome }) => (outcome === 'repeat' ? 1 : 0));
  const probability = results.map((result) => result.probability ?? 0);
  return {
    rewards: results.map(({ reward }) => reward),
    scores: probability,
    extra_logs: { valid, repeat, band_probability: probability },
  };
}

const ownSchema = z.strictObject({
  items: z.array(z.strictObject({ completion: z.string(), type: z.string().optional(), cut: z.boolean().optional() })),
  deadlineMs: z.number().positive().optional(),
});

export interface OwnRequest {
  readonly items: readonly RewardItem[];
  /** Null: the server's. */
  readonly deadlineMs: number | null;
}

/** @throws BadRequest */
export function readOwn(json: unknown, kinds: readonly string[], special: SpecialTokens): OwnRequest {
  const { items, deadlineMs } = parse(ownSchema, json);
  return {
    items: items.map(({ completion, type, cut }, i) => {
      if (type !== undefined && !kinds.includes(type)) {
        throw new BadRequest(`items.${i}.type: ${type} is none of ${kinds.join(', ')}`);
      }
      const kind = kindOf(type, kinds, `items.${i}.type`);
      return { kind, completion: special.withoutEnds(completion), isCut: cut ?? false };
    }),
    deadlineMs: deadlineMs ?? null,
  };
}

/** Where a server takes one type only, nobody need name it. */
function kindOf(named: unknown, kinds: readonly string[], where: string): string {
  if (typeof named === 'string' && kinds.includes(named)) return named;
  if (kinds.length === 1) return kinds[0]!;
  throw new BadRequest(`${where}: name the type of task, one of ${kinds.join(', ')}`);
}

function parse<Schema extends z.ZodType>(schema: Schema, json: unknown): z.output<Schema> {
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new BadRequest(`${issue!.path.join('.') || 'the body'}: ${issue!.message}`);
}
