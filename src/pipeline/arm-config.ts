/** The arms of a configuration: one generator each, told apart by what its training rewards. */
import * as z from 'zod';
import { modelSchema } from './model-setting.js';
import { overrideTrain, trainOverridesSchema } from './train-config.js';
import type { TrainSettings } from './train-config.js';

const policy = modelSchema
  .optional()
  .describe(
    'This arm’s own generator, named as models.policy is, which may be of another family with another tokenizer; models.policy where it is not given. Probe and reference stay.',
  );

const crowdingSchema = z
  .strictObject({
    by: z
      .enum(['topic', 'activations'])
      .describe(
        'What makes tasks alike. topic: the same topic; activations: the cosine of the reference’s standardised features that the first probe reads, for probe arms only.',
      ),
    weight: z
      .number()
      .positive()
      .describe('A valid task pays weight × its mean likeness, 0 to 1, to the other valid tasks of the pool.'),
    window: z
      .int()
      .min(0)
      .default(2)
      .describe('Earlier steps whose valid tasks are in the pool beside those of the step itself.'),
  })
  .describe(
    'Valid tasks pay for being alike, against mode collapse. No valid task falls below the smallest reward of its arm by it.',
  );

const adversarialSchema = z
  .strictObject({
    every: z.int().positive().default(10).describe('Steps between minings; each is a checkpoint.'),
    mine: z
      .int()
      .positive()
      .default(100)
      .describe('Tasks that the solver attempts at each mining, K times each, drawn from the candidates by seed.'),
    share: z
      .number()
      .gt(0)
      .max(1)
      .default(0.5)
      .describe(
        'Candidates: the share of the last steps’ distinct valid tasks that the reward’s probes score highest.',
      ),
  })
  .describe(
    'Probe co-evolution: what the probes score as useful is re-scored by the solver now and then, and an auxiliary probe, trained on the labels and all that was mined, joins the minimum.',
  );

const trained = {
  policy,
  crowding: crowdingSchema.optional(),
  train: trainOverridesSchema.optional().describe('Settings of the train section that this arm overrides.'),
};

export const armSchema = z
  .discriminatedUnion('reward', [
    z.strictObject({ reward: z.literal('none').describe('The generator as it is.'), policy }),
    z.strictObject({
      reward: z.literal('probe').describe('The probe’s standardised logit.'),
      ...trained,
      probes: z.int().min(1).default(1).describe('Members of the probe ensemble whose minimum is the reward.'),
      adversarial: adversarialSchema.optional(),
    }),
    z.strictObject({
      reward: z
        .literal('solver')
        .describe('Solver in the loop: 1 in band, 0 out of it, by K attempts at every valid task.'),
      ...trained,
      trials: z
        .int()
        .positive()
        .optional()
        .describe('Solver attempts after which the arm stops, at the end of the step that reaches them.'),
    }),
    z.strictObject({ reward: z.literal('valid').describe('1 for every valid task: the gate alone.'), ...trained }),
    z.strictObject({
      reward: z.literal('random').describe('By chance in [0, 1) for valid tasks: a control.'),
      ...trained,
    }),
    z.strictObject({
      reward: z.literal('length').describe('The standardised logit of the length-only baseline, fitted on the labels.'),
      ...trained,
    }),
  ])
  .describe('One generator to train and evaluate.');

export type Arm = z.infer<typeof armSchema>;
export type RewardedArm = Exclude<Arm, { reward: 'none' }>;
export type CrowdingSettings = z.infer<typeof crowdingSchema>;
export type AdversarialSettings = z.infer<typeof adversarialSchema>;

export function isTrained(arm: Arm): arm is RewardedArm {
  return arm.reward !== 'none';
}

/** Whether an arm's reward is learnt from the solver's labels. */
export function needsLabels({ reward }: Arm): boolean {
  return reward === 'probe' || reward === 'length';
}

/** The train section as it is for an arm. */
export function armTrain(train: TrainSettings, arm: Arm): TrainSettings {
  return isTrained(arm) ? overrideTrain(train, arm.train) : train;
}

/** What no valid task of an arm earns less than. */
export function smallestReward({ reward }: RewardedArm, { rewardClip }: Pick<TrainSettings, 'rewardClip'>): number {
  return reward === 'probe' || reward === 'length' ? -rewardClip : 0;
}
