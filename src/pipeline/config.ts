/** The configuration of a run: one YAML file, checked once and trusted after. Every field documents itself (`propel config --schema`). */
import * as z from 'zod';
import { codeDomainSchema } from '../domain/azr/index.js';
import { CHAT_SETTINGS } from '../lm/tokenizer.js';
import { POOLING_MEANING, POOLINGS } from '../lm/request-checks.js';
import { largest } from '../metrics/extremes.js';
import { DTYPE_SETTINGS } from '../onnx/compute-type.js';
import { typeRefusal } from '../onnx/provider-types.js';
import { PROVIDER_SETTINGS } from '../onnx/providers.js';
import { penaltyProblem } from '../reward/gate.js';
import { modelSchema } from './model-setting.js';
import { armSchema, armTrain, isTrained, needsLabels, smallestReward } from './arm-config.js';
import type { RewardedArm } from './arm-config.js';
import { ENGINE_MEMORY } from './memory-size.js';
import { dockerSchema, SANDBOX_KINDS } from './open-sandbox.js';
import { solverProblems, solverSchema } from './solver-config.js';
import { trainSchema } from './train-config.js';

const count = (what: string) => z.int().positive().describe(what);
/** A text that ends another. */
const stopText = z.string().min(1).max(64);
const MOST_STOPS = 16;
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
  pooling: z.enum(POOLINGS).describe(`Which of a text’s states: ${POOLING_MEANING}.`),
});

const modelMeaning = (what: string) =>
  `Checkpoint folder or hub id (org/name, org/name@revision) of ${what} Or \`{ base, adapter }\`: one of these and the PEFT folder of a LoRA adapter for it.`;

export const configSchema = z
  .strictObject({
    name: z
      .string()
      .regex(/^[a-z0-9][a-z0-9._-]*$/i, 'write it in letters, digits, dot, dash and underscore')
      .describe('Names the run folder, runs/<name>.'),
    seed: z.int().min(0).default(0).describe('Every random stream of the run derives from it.'),
    engine: z
      .strictObject({
        provider: z
          .enum(PROVIDER_SETTINGS)
          .default('auto')
          .describe(
            'Execution provider; auto tries the policy’s own step on each that works and takes the fastest that is right.',
          ),
        dtype: z
          .enum(DTYPE_SETTINGS)
          .default('auto')
          .describe(
            'Type of the models’ large products, every linear map and the LM head; auto: on cuda what the weights are stored in, else float32. Everything else is float32.',
          ),
        threads: z
          .int()
          .positive()
          .default(2)
          .describe('Threads within an operator on cpu; part of what makes rows equal.'),
        memory: z
          .string({ error: 'give auto, fast, small, or a size with its unit, such as 24GB or 24GiB' })
          .regex(ENGINE_MEMORY, 'give auto, fast, small, or a size with its unit, such as 24GB or 24GiB')
          .default('auto')
          .describe(
            'fast: a copy of the weights laid out for each graph, and all activations kept; small: one copy, logits by chunks, layers computed again in the backward pass; auto: by the model’s size; a size such as 24GB: as auto, with rollouts, micro-batches and forward passes cut so that the whole run stays within it.',
          ),
      })
      .superRefine(({ provider, dtype }, context) => {
        const refusal = provider === 'auto' ? null : typeRefusal(dtype, provider);
        if (refusal) context.addIssue({ code: 'custom', path: ['dtype'], message: refusal });
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
      policy: modelSchema.describe(modelMeaning('the generator that is trained.')),
      reference: modelSchema.describe(modelMeaning('the frozen model whose hidden states the probe reads.')),
      solver: modelSchema.nullable().default(null).describe(modelMeaning('the solver; null with solver.endpoint.')),
    }),
    domain: codeDomainSchema,
    band: bandSchema.default({ min: 1, max: 3, of: 8 }).describe('The target band, in counts of passed attempts.'),
    policy: z
      .strictObject({
        temperature: rate('Sampling temperature of the generator in label and evaluate; RL samples at 1.').default(1),
        maxNewTokens: count('Longest completion.').default(1024),
        stops: z
          .array(stopText)
          .max(MOST_STOPS)
          .default([])
          .describe(
            'Texts that end a completion, wherever tokens begin and end, besides the end of sequence and what the notation calls a complete task.',
          ),
        chat: z
          .enum(CHAT_SETTINGS)
          .default('auto')
          .describe(
            'Whether the prompt is a user’s turn of the model’s chat template. auto: as the notation has it, fenced where there is a template, doctest never; always; never: bare.',
          ),
      })
      .prefault({}),
    solver: solverSchema,
    label: z
      .strictObject({
        tasks: count('Labelled tasks to gather.').default(1500),
        batch: count('Generations in a batch.').default(128),
        maxGenerations: count('Give up when so many generations have not given enough labels.').default(20_000),
        giveUpAfter: count(
          'Generations from which on to give up before maxGenerations, as soon as even the upper end of the 95% interval of validity would not give enough labels in those that are left.',
        ).default(256),
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
        minimum: z
          .number()
          .min(0)
          .lt(1)
          .nullable()
          .default(null)
          .describe(
            'Least AUROC on held-out labels: train-probe ends with an error when a probe of the run is below; null: no probe is refused, and one that is no better than chance or a baseline is warned of.',
          ),
      })
      .describe('The activation probe.'),
    train: trainSchema.prefault({}),
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
        checkpoint: z
          .enum(['trusted', 'last'])
          .default('trusted')
          .describe(
            'Which generator of an arm whose training collapsed (train.klStop, train.noSignalStop) is measured, sampled and exported. trusted: the last checkpoint that a step sampled from before the collapse showed, the untrained generator where there is none; last: the last one, as it is.',
          ),
      })
      .prefault({}),
  })
  .superRefine((config, context) => {
    for (const fault of [...trainFaults(config), ...solverProblems(config.solver, config.models.solver)]) {
      context.addIssue({ code: 'custom', ...fault });
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

interface SettingFault {
  readonly path: string[];
  readonly message: string;
}

/** What only shows when the train section is taken as it is for each arm; one fault a setting. */
function trainFaults(config: Pick<Config, 'train' | 'arms' | 'domain'>): SettingFault[] {
  const trained = Object.entries(config.arms).flatMap(([name, arm]) => (isTrained(arm) ? [{ name, arm }] : []));
  const faults = trained.flatMap(({ name, arm }) => armFaults(config, name, arm));
  return faults.filter(({ path }, i) => faults.findIndex((other) => other.path.join() === path.join()) === i);
}

function armFaults(
  { train, domain }: Pick<Config, 'train' | 'domain'>,
  name: string,
  arm: RewardedArm,
): SettingFault[] {
  const faults: SettingFault[] = [];
  const settings = armTrain(train, arm);
  /** Where a setting was given: in the arm, or in the section. */
  const pathOf = (...keys: (keyof typeof settings)[]) => {
    const given = keys.find((key) => arm.train && key in arm.train);
    return given === undefined ? ['train', keys[0]!] : ['arms', name, 'train', given];
  };
  const penalty = penaltyProblem(settings.invalidPenalty, smallestReward(arm, settings));
  if (penalty) faults.push({ path: pathOf('invalidPenalty', 'rewardClip'), message: penalty });
  const types = domain.types.length;
  if (settings.batch < 2 * types) {
    faults.push({ path: pathOf('batch'), message: `needs at least two samples of each of the ${types} task types` });
  }
  if (arm.crowding?.by === 'activations' && arm.reward !== 'probe') {
    faults.push({
      path: ['arms', name, 'crowding', 'by'],
      message: `activations are those that a probe reads, and reward ${arm.reward} has none; give topic`,
    });
  }
  return faults;
}

/** Probes that a run trains: as many as its largest ensemble has members. */
export function ensembleSize(config: Config): number {
  return Math.max(1, largest(Object.values(config.arms).map((arm) => (arm.reward === 'probe' ? arm.probes : 0))));
}

/** The phases before training that a run's arms call for. */
export function phasesNeeded({ arms }: Pick<Config, 'arms'>): { readonly labels: boolean; readonly probes: boolean } {
  const all = Object.values(arms);
  return { labels: all.some(needsLabels), probes: all.some(({ reward }) => reward === 'probe') };
}
