// An update of one prompt's group, as a step of reinforcement learning makes it. Ours through the product's own micro-batches, which compute
// the prompt once; PyTorch's as trainers do it: whole sequences, right-padded, sorted by length, under the same limits, logits of written tokens alone.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeTensors } from '../../../dist/lm/safetensors.js';
import { freshState, Trainer } from '../../../dist/lm/trainer.js';
import { seededRandom } from '../../../dist/metrics/random.js';
import { microBatches } from '../../../dist/rl/micro-batches.js';
import { againstTorch } from './against-torch.mjs';
import { LORA_16, randomAdapter, randomCheckpoint, randomTokens, WIDTH_576 } from './models.mjs';

const [SAMPLES, PROMPT, SHORTEST, LONGEST] = [16, 192, 16, 128];
/** What a run's configuration has by default. */
const LIMITS = { rows: 32, tokens: 16_384 };
const config = { ...WIDTH_576, maxPositions: 512 };

/** A row: milliseconds an update of the group. */
export async function groupUpdateRow({ threads, loss, adamW, ...how }) {
  const { checkpoint } = randomCheckpoint(config);
  try {
    const adapter = randomAdapter(config, LORA_16, 1);
    const rollouts = randomRollouts();
    const tokens = rollouts.reduce((sum, rollout) => sum + rollout.tokens.length, 0);
    writeTensors(join(checkpoint.folder, 'factors.safetensors'), adapter.factors);
    const scale = LORA_16.alpha / LORA_16.rank;
    const sequences = rollouts.map((rollout) => ({ ...rollout, logProbs: [...rollout.logProbs] }));
    const spec = { threads, loss, adamW, scale, sequences, limits: LIMITS, mode: how.mode };
    writeFileSync(join(checkpoint.folder, 'spec.json'), JSON.stringify(spec));
    const settings = { provider: 'cpu', threads };
    const trainer = await Trainer.create(checkpoint, LORA_16, freshState(adapter.factors), settings);
    const batches = microBatches(rollouts, LIMITS);
    const update = async () => {
      let sum = 0;
      for (const batch of batches) sum += (await trainer.accumulate(batch, { ...loss, tokens })).loss;
      await trainer.step(adamW);
      return sum;
    };
    const name = `update of a group, LoRA r = 16: 12 layers × 576, ${SAMPLES} samples of ${SHORTEST}–${LONGEST} tokens after a prompt of ${PROMPT}`;
    const row = await againstTorch({
      name,
      script: 'torch_group_update.py',
      folder: checkpoint.folder,
      update,
      ...how,
    });
    await trainer.release();
    return row;
  } finally {
    rmSync(checkpoint.folder, { recursive: true });
  }
}

/** Samples of one prompt; the sampler's log-probabilities are near those of a model that knows nothing. */
function randomRollouts() {
  const random = seededRandom('group');
  const prompt = randomTokens(PROMPT, config.vocabulary, 'prompt');
  return Array.from({ length: SAMPLES }, (_, i) => {
    const length = SHORTEST + Math.floor(random() * (LONGEST - SHORTEST + 1));
    const tokens = randomTokens(length, config.vocabulary, `sample ${i}`);
    const logProbs = Float32Array.from(tokens, () => -Math.log(config.vocabulary) + 0.2 * (random() - 0.5));
    return { prompt, tokens, logProbs, advantage: 2 * random() - 1 };
  });
}
