/** The frozen-reference probe reward with the validity gate, of completions that come from anywhere: what `propel serve` serves. */
import { createCodeDomain, readTopicRules } from '../domain/azr/index.js';
import { UserError } from '../errors.js';
import { modelName } from '../lm/hub/cache.js';
import { EngineThread, LanguageModel } from '../lm/language-model.js';
import { loadProbe } from '../probe/probe-file.js';
import { scoreTexts } from '../probe/probe.js';
import { sigmoid } from '../reward/band-logit.js';
import { probeReward } from '../reward/probe-reward.js';
import type { Config } from './config.js';
import { engineSettings, scorerPassBytes } from './memory-budget.js';
import { openSandbox } from './open-sandbox.js';
import { findModel } from './models.js';
import { findFile } from './paths.js';
import type { ProgressFactory } from './progress.js';

export interface RewardScorerOptions {
  /** Of it the domain, the engine, the sandbox and the reward's clip and penalty are used, and the reference unless another is given. */
  readonly config: Config;
  /** Probe files; the smallest of their standardised logits is the reward. */
  readonly probes: readonly string[];
  /** The model that the probes were trained on, as a configuration names one; undefined: the configuration's. */
  readonly reference: string | undefined;
  readonly progress: ProgressFactory;
}

/** @throws UserError when a file is missing or corrupt, or a probe is another model's; RunError when the sandbox cannot start */
export async function openRewardScorer({ config, probes: files, reference: folder, progress }: RewardScorerOptions) {
  const paths = files.map((file) => findFile(file.endsWith('.safetensors') ? file : `${file}.safetensors`, '--probe'));
  if (paths.length === 0) throw new UserError('--probe: give at least one probe file');
  const referenceFolder = findModel(
    folder ?? config.models.reference,
    folder === undefined ? 'models.reference' : '--reference',
  );
  const domain = createCodeDomain(config.domain, readTopicRules(findFile(config.domain.topics, 'domain.topics')));
  const bytes = scorerPassBytes(config, referenceFolder, paths.length);
  const engine = await EngineThread.start({ ...engineSettings(config.engine, bytes), model: referenceFolder });
  try {
    const reference = await LanguageModel.open(engine, referenceFolder);
    const loaded = paths.map((path) => loadProbe(path, reference));
    const sandbox = await openSandbox({ ...config.sandbox, limits: config.domain.limits }, progress);
    const probes = loaded.map(({ probe }) => probe);
    const scales = probes.map(({ scale }) => scale);
    const { rewardClip, invalidPenalty } = config.train;
    return {
      kinds: domain.kinds,
      probes: loaded.map(({ card }) => card.name),
      about: { reference: modelName(referenceFolder), provider: engine.choice.provider, sandbox: sandbox.name },
      parallel: sandbox.size,
      async check(kind: string, completion: string) {
        const [check] = await domain.check([domain.parse(kind, completion)], sandbox);
        const { valid, outcome, detail, task } = check!;
        return { valid, outcome, detail, text: task && domain.render(task) };
      },
      async score(texts: readonly string[]) {
        const scored = await scoreTexts(reference, probes, texts);
        return texts.map((_, i) => scored.map((own) => own[i]!));
      },
      reward: (logits: readonly number[] | null) =>
        logits === null ? invalidPenalty : probeReward(logits, scales, rewardClip),
      bandProbability: (logits: readonly number[]) => sigmoid(Math.min(...logits)),
      async close() {
        await Promise.allSettled([sandbox.close(), engine.close()]);
      },
    };
  } catch (error) {
    await engine.close();
    throw error;
  }
}
