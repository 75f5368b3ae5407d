/** The configuration of a run: one YAML file, checked once and trusted after. Every field documents itself (`propel config --schema`). */
import * as z from 'zod';
import { codeDomainSchema } from '../domain/azr/index.js';
import { TARGET_MODULES } from '../lm/adapter.js';
import { CHAT_SETTINGS } from '../lm/tokenizer.js';
import { POOLINGS } from '../lm/request-checks.js';
import { PROVIDER_SETTINGS } from '../onnx/providers.js';
import { penaltyProblem } from '../reward/gate.js';
import { ADVANTAGE_ESTIMATORS } from '../rl/advantage.js';
import type { AdvantageName } from '../rl/advantage.js';
import { dockerSchema, SANDBOX_KINDS } from './open-sandbox.js';
import { solverProblems, solverSchema } from './solver-config.js';

const count = (what: string) => z.int().positive().describe(what);
const rate = (what: string) => z.number().positive().describe(what);

const bandSchema = z
  .strictObject({
    min: z.int().min(0).describe('Fewest passes of a task in band.'),
    max: z.int().min(0).describe('Most passes of a task in band.'),
    of: count('K, attempts at a task.'),
  })
  .refine(({ min, max, of }) => min <= max && max <= of && (min > 0 || max < of), {
    message: 'needs min ≤ max ≤ of, with a count outside the band',
  });

const featureSchema = z.strictObject({
  layer: z.int().min(0).describe('0: the embeddings; n: the residual stream after layer n.'),
  pooling: z.enum(POOLINGS).describe('mean over the tokens, or the last token.'),
});

const armSchema = z
  .strictObject({
    reward: z.enum(['none', 'probe']).describe('none: the generator as it is; probe: RL on the probe’s logit.'),
    probes: z.int().min(1).default(1).describe('Members of the probe ensemble whose minimum is the reward.'),
  })
  .describe('One generator to train and evaluate.');

/** A model: a checkpoint folder, or one of the Hugging Face hub that has been pulled. */
const modelSetting = (what: string) =>
  z.string().min(1).describe(`Checkpoint folder or hub id (org/name, org/name@revision) of ${what}`);

export const configSchema = z
  .strictObject({
    name: z
      .string()
      .regex(/^[a-z0-9][a-z0-9._-]*$/i, 'letters, digits, dot, dash and underscore')
      .describe('Names the run folder, runs/<name>.'),
    seed: z.int().min(0).default(0).describe('Every random stream of the run derives from it.'),
    engine: z
      .strictObject({
        provider: z
          .enum(PROVIDER_SETTINGS)
          .default('auto')
          .describe('Execution provider; auto takes the first that passes its self-test.'),
        threads: z
          .int()
          .positive()
          .default(2)
          .describe('Threads within an operator on cpu; part of what makes rows equal.'),
      })
      .prefault({}),
    sandbox: z
      .strictObject({
        kind: z
          .enum(SANDBOX_KINDS)
          .default('wasm')
          .describe('wasm: the embedded CPython; docker: containers; auto: docker where it works, else wasm.'),
        workers: z.int().positive().default(2).describe('Programs that run at once.'),
        docker: dockerSchema.optional(),
      })
      .prefault({}),
    models: z.strictObject({
      policy: modelSetting('the generator that is trained.'),
      reference: modelSetting('the frozen model whose hidden states the probe reads.'),
      solver: modelSetting('the solver; null with solver.endpoint.').nullable().default(null),
    }),
    domain: codeDomainSchema,
    band: bandSchema.default({ min: 1, max: 3, of: 8 }).describe('The target band, in counts of passed attempts.'),
    policy: z
      .strictObject({
        temperature: rate('Sampling temperature of the generator in label and evaluate; RL samples at 1.').default(1),
        maxNewTokens: count('Longest completion.').default(1024),
        stops: z
          .array(z.string())
          .default([])
          .describe('Texts of one token that end a completion, besides the end of sequence.'),
        chat: z
          .enum(CHAT_SETTINGS)
          .default('auto')
          .describe('auto: the prompt is a user’s turn where the model has a chat template; never: bare.'),
      })
      .prefault({}),
    solver: solverSchema,
    label: z
      .strictObject({
        tasks: count('Labelled tasks to gather.').default(1500),
        batch: count('Generations in a batch.').default(128),
        maxGenerations: count('Give up when so many generations have not given enough labels.').default(20_000),
      })
      .prefault({}),
    probe: z
      .strictObject({
        head: z
          .enum(['counts', 'ordinal', 'band'])
          .default('counts')
          .describe('counts: softmax over solve counts; ordinal: ordered cut-points; band: logistic.'),
        features: z
          .array(z.array(featureSchema).nonempty())
          .nonempty()
          .describe('Candidate features; the validation split chooses among them.'),
        l2: z
          .array(rate('L2 penalty.'))
          .nonempty()
          .default([0.003, 0.01, 0.03, 0.1, 0.3])
          .describe('Candidate penalties; the validation split chooses.'),
        validationShare: z.number().gt(0).lt(0.5).default(0.2).describe('Share of the labels that choose.'),
        testShare: z
          .number()
          .gt(0)
          .lt(0.5)
          .default(0.2)
          .describe('Share of the labels that are held out for the card.'),
      })
      .describe('The activation probe.'),
    train: z
      .strictObject({
        steps: count('Policy updates.').default(40),
        batch: z.int().min(2).default(96).describe('Samples a step; one alone has no advantage over others.'),
        advantage: z
          .enum(Object.keys(ADVANTAGE_ESTIMATORS) as [AdvantageName, ...AdvantageName[]])
          .default('grpo')
          .describe('Advantage estimator; a batch is one prompt’s group.'),
        updates: count('Optimiser steps on each batch of samples.').default(1),
        microBatch: count('Sequences in one forward and backward pass.').default(32),
        lora: z
          .strictObject({
            rank: count('r').default(8),
            alpha: rate('α; the adapter is scaled by α / r.').default(16),
            targets: z
              .array(z.enum(TARGET_MODULES))
              .nonempty()
              .default([...TARGET_MODULES]),
          })
          .prefault({}),
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
          .describe('Stop an arm when the KL per sequence, in nats, passes this; null: never.'),
        entropy: z.number().min(0).default(0).describe('Coefficient of the entropy bonus.'),
        rewardClip: rate('Standardised logits are clipped to ± this.').default(2.5),
        invalidPenalty: z.number().default(-3).describe('Reward of an invalid task; below −rewardClip.'),
        checkpointEvery: count('Steps between checkpoints.').default(5),
      })
      .prefault({}),
    arms: z.record(z.string().regex(/^[a-z0-9][a-z0-9-]*$/, 'lower-case letters, digits and dashes'), armSchema),
    evaluate: z
      .strictObject({
        generations: count('Fresh generations an arm.').default(800),
        batch: count('Generations in a batch.').default(100),
        rescoreEvery: z
          .int()
          .min(0)
          .default(10)
          .describe('Re-score the tasks of every n-th training step by the solver, for the report; 0: none.'),
      })
      .prefault({}),
  })
  .superRefine((config, context) => {
    const problem = penaltyProblem(config.train.invalidPenalty, -config.train.rewardClip);
    if (problem) context.addIssue({ code: 'custom', path: ['train', 'invalidPenalty'], message: problem });
    for (const { path, message } of solverProblems(config.solver, config.models.solver)) {
      context.addIssue({ code: 'custom', path: [...path], message });
    }
    if (!Object.keys(config.arms).length)
      context.addIssue({ code: 'custom', path: ['arms'], message: 'name at least one arm' });
    if (config.probe.validationShare + config.probe.testShare > 0.8) {
      context.addIssue({
        code: 'custom',
        path: ['probe'],
        message: 'validationShare and testShare leave too little to train on',
      });
    }
  });

export type Config = z.infer<typeof configSchema>;

/** Probes that a run trains: as many as its largest ensemble has members. */
export function ensembleSize(config: Config): number {
  return Math.max(1, ...Object.values(config.arms).map((arm) => (arm.reward === 'probe' ? arm.probes : 0)));
}
