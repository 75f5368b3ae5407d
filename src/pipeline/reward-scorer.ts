/** The frozen-reference probe reward with the validity gate, of completions that come from anywhere: what `propel serve` serves. */
import { createCodeDomain, readTopicRules } from '../domain/azr/index.js';
import { modelName } from '../lm/hub/cache.js';
import { EngineThread, LanguageModel } from '../lm/language-model.js';
import { loadProbe } from '../probe/probe-file.js';
import { bandLogitsOfTexts } from '../probe/probe.js';
import { endsAtText, untilEnd } from '../text-end.js';
import { gate } from '../reward/gate.js';
import { probeReward } from '../reward/probe-reward.js';
import type { LogitScale } from '../reward/probe-reward.js';
import { chatOf } from './chat.js';
import type { Config } from './config.js';
import { engineSettings, modelPassBytes } from './memory-budget.js';
import { openSandbox } from './open-sandbox.js';
import { placeOf } from './model-folders.js';
import { findFile } from './paths.js';
import type { ProgressFactory } from './progress.js';
import { claimedInBand } from './probe-scores.js';
import { findProbes } from './served-probes.js';
import { ReferenceLength } from './reference-length.js';
import type { TrainSettings } from './train-config.js';

export interface RewardScorerOptions {
  /** Of it the domain, the band, the engine, the sandbox and the reward's clip and penalty are used, and the reference unless another is given. */
  readonly config: Config;
  /** Probe files; the smallest of their standardised logits is the reward. */
  readonly probes: readonly string[];
  /** The model that the probes were trained on, as a configuration names one; undefined: the configuration's. */
  readonly reference: string | undefined;
  /** Texts of special tokens that the reference's tokenizer does not have, as the generator's that a trainer trains. */
  readonly specialTokens: readonly string[];
  readonly progress: ProgressFactory;
}

/** What a trainer is paid for a completion: as an arm of the probe is. @param logits by each probe; null of an invalid one */
export function servedReward(
  logits: readonly number[] | null,
  scales: readonly LogitScale[],
  { rewardClip, invalidPenalty }: Pick<TrainSettings, 'rewardClip' | 'invalidPenalty'>,
): number {
  return gate(logits !== null, logits === null ? Number.NaN : probeReward(logits, scales, rewardClip), invalidPenalty);
}

/**
 * @throws UserError when a file is missing or corrupt, or a probe is another model's or for other tasks; RunError when the sandbox cannot
 * start
 */
export async function openRewardScorer(options: RewardScorerOptions) {
  const { config, reference: folder, progress } = options;
  const { probes: files, warnings } = findProbes(options.probes, config);
  const { folder: referenceFolder, adapter } =
    folder === undefined ? placeOf(config.models.reference, 'models.reference') : placeOf(folder, '--reference');
  const domain = createCodeDomain(config.domain, readTopicRules(findFile(config.domain.topics, 'domain.topics')));
  const bytes = modelPassBytes(config, referenceFolder, files.length);
  const engine = await EngineThread.start({ ...engineSettings(config.engine, bytes), model: referenceFolder });
  try {
    const reference = await LanguageModel.open(engine, referenceFolder, adapter);
    const probes = files.map(({ path }) => loadProbe(path, reference).probe);
    const sandbox = await openSandbox({ ...config.sandbox, limits: config.domain.limits }, progress);
    const referenceLength = new ReferenceLength(referenceFolder);
    // A generator of someone else's may go on writing behind its task, as none of ours could.
    const ends = [...config.policy.stops.map(endsAtText), ...(domain.taskEnd === null ? [] : [domain.taskEnd])];
    const scales = probes.map(({ scale }) => scale);
    return {
      kinds: domain.kinds,
      probes: files.map(({ name }) => name),
      warnings,
      specialTokens: [...reference.tokenizer.specialTexts, ...options.specialTokens],
      about: { reference: modelName(referenceFolder), provider: engine.choice.provider, sandbox: sandbox.name },
      task: {
        prompts: Object.fromEntries(domain.kinds.map((kind) => [kind, domain.prompt(kind, config.seed)])),
        chat: chatOf(config.policy, domain),
        stops: config.policy.stops,
        maxNewTokens: config.policy.maxNewTokens,
        // Reinforcement learning samples plainly.
        temperature: 1,
        band: config.band,
        reward: { clip: config.train.rewardClip, invalid: config.train.invalidPenalty },
      },
      parallel: sandbox.size,
      async check(kind: string, completion: string) {
        const checks = await domain.check([domain.parse(kind, untilEnd(completion, ends))], sandbox);
        const [check] = await referenceLength.limit(checks, (one) => domain.render(one));
        const { valid, outcome, detail, task } = check!;
        return { valid, outcome, detail, text: task && domain.render(task) };
      },
      score: (texts: readonly string[]) => bandLogitsOfTexts(reference, probes, texts),
      reward: (logits: readonly number[] | null) => servedReward(logits, scales, config.train),
      bandProbability: claimedInBand,
      async close() {
        await Promise.allSettled([sandbox.close(), engine.close()]);
      },
    };
  } catch (error) {
    await engine.close();
    throw error;
  }
}
