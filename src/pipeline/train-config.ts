/** The `train` section of a configuration, and the settings of it that an arm may override. */
import * as z from 'zod';
import { TARGET_MODULES } from '../lm/adapter.js';
import { ADVANTAGE_ESTIMATORS } from '../rl/advantage.js';
import type { AdvantageName } from '../rl/advantage.js';

const count = (what: string) => z.int().positive().describe(what);
const rate = (what: string) => z.number().positive().describe(what);

const loraSchema = z.strictObject({
  rank: count('r').default(8),
  alpha: rate('α; the adapter is scaled by α / r.').default(16),
  targets: z
    .array(z.enum(TARGET_MODULES))
    .nonempty()
    .default([...TARGET_MODULES])
    .describe('Linear maps that get an adapter.'),
});

export const trainSchema = z.strictObject({
  steps: count('Policy updates.').default(40),
  batch: z.int().min(2).default(96).describe('Samples a step; one alone has no advantage over others.'),
  advantage: z
    .enum(Object.keys(ADVANTAGE_ESTIMATORS) as [AdvantageName, ...AdvantageName[]])
    .default('grpo')
    .describe('Advantage estimator; a batch’s samples of one task type, which share a prompt, are a group.'),
  updates: count('Optimiser steps on each batch of samples.').default(1),
  microBatch: count('Sequences in one forward and backward pass.').default(32),
  microBatchTokens: count(
    'Tokens in one such pass at most, padding included, a prompt that its sequences share once.',
  ).default(16_384),
  lora: loraSchema.prefault({}),
  learningRate: rate('Of AdamW.').default(1e-4),
  beta1: z.number().min(0).lt(1).default(0.9).describe('Of AdamW: decay of the first moment.'),
  beta2: z.number().min(0).lt(1).default(0.95).describe('Of AdamW: decay of the second moment.'),
  weightDecay: z.number().min(0).default(0).describe('Of AdamW, on matrices.'),
  maxNorm: rate('Global gradient norm above which gradients are scaled down.').default(1),
  clip: rate('ε of the clipped ratio.').default(0.2),
  kl: z.number().min(0).default(0.1).describe('β, coefficient of the KL to the policy’s own start, in the loss.'),
  klStop: z
    .number()
    .positive()
    .nullable()
    .default(null)
    .describe(
      'Stop an arm when the KL per sequence, in nats, passes this; null: never. Such an arm has collapsed, see evaluate.checkpoint.',
    ),
  noSignalStop: count(
    'Stop an arm after so many steps in a row in which all samples of a task type earned the same, as when none is valid: nothing is learnt from them. Such an arm has collapsed, unless a reward of 0 or 1 was earned in full.',
  ).default(10),
  entropy: z.number().min(0).default(0).describe('Coefficient of the entropy bonus.'),
  rewardClip: rate('Standardised logits are clipped to ± this.').default(2.5),
  invalidPenalty: z
    .number()
    .default(-3)
    .describe(
      'Reward of an invalid task; below the smallest that a valid one can earn, −rewardClip for a probe’s logit.',
    ),
  checkpointEvery: count('Steps between checkpoints.').default(5),
});

export type TrainSettings = z.infer<typeof trainSchema>;

/** Some of the train section: what is left out stays as the section has it. */
export type TrainOverrides = Partial<Omit<TrainSettings, 'lora'>> & { readonly lora?: Partial<TrainSettings['lora']> };

export const trainOverridesSchema = withoutDefaults(trainSchema) as unknown as z.ZodType<TrainOverrides>;

/** The section with an arm's overrides. */
export function overrideTrain(train: TrainSettings, { lora, ...overrides }: TrainOverrides = {}): TrainSettings {
  return { ...train, ...overrides, lora: { ...train.lora, ...lora } };
}

/** The same fields, each optional and none filled in. */
function withoutDefaults(object: z.ZodObject): z.ZodObject {
  const fields = Object.entries(object.shape).map(([key, field]) => [key, optionalField(field as z.ZodType)] as const);
  return z.strictObject(Object.fromEntries(fields));
}

function optionalField(field: z.ZodType): z.ZodType {
  const { description } = field;
  const inner = field instanceof z.ZodDefault || field instanceof z.ZodPrefault ? (field.unwrap() as z.ZodType) : field;
  const bare = inner instanceof z.ZodObject ? withoutDefaults(inner) : inner;
  return (description === undefined ? bare : bare.describe(description)).optional();
}
