// One side of the budget's benchmark, on Linux: the bytes that the peak of resident memory grows by in one pass of a checkpoint.
//     node budget-process.mjs FOLDER rollout|hidden|update PASS_BYTES|all SEQUENCES TOKENS THREADS
import { readFileSync, writeFileSync } from 'node:fs';
import { Engine } from '../../../dist/lm/engine.js';
import { openCheckpoint } from '../../../dist/lm/checkpoint.js';
import { trainerBytes, updateBytes } from '../../../dist/lm/footprint.js';
import { updatePolicy } from '../../../dist/rl/policy-update.js';
import { LORA_16, randomAdapter, randomTokens } from './models.mjs';

const [folder, use, given, ...sizes] = process.argv.slice(2);
const [sequences, tokens, threads] = sizes.map(Number);
const passBytes = given === 'all' ? Infinity : Number(given);
const { config } = openCheckpoint(folder);
const { factors } = randomAdapter(config, LORA_16, 1);
const adapter = { layout: LORA_16, factors };
const engine = await Engine.create({ provider: 'cpu', threads, memory: 'auto', passBytes });
const trainer = use === 'update' ? await engine.createTrainer(folder, LORA_16, factors) : null;
const written = (n, length) =>
  Array.from({ length: n }, (_, i) => randomTokens(length, config.vocabulary, `sequence ${i}`));

const passes = {
  rollout: (n, length) =>
    engine.rollout(folder, {
      prompts: [[1, 2, 3, 4]],
      perPrompt: n,
      maxNewTokens: length - 4,
      temperature: 1,
      stops: [],
      seed: 1,
      adapter,
    }),
  hidden: (n, length) =>
    engine.hiddenStates(folder, { sequences: written(n, length), layers: [1], poolings: ['mean'] }),
  update(n, length) {
    const rollouts = written(n, length).map((ids) => ({
      prompt: ids.slice(0, 4),
      tokens: ids.slice(4),
      logProbs: new Float32Array(length - 4),
      advantage: 1,
    }));
    const state = Object.values(trainerBytes(config, LORA_16)).reduce((a, b) => a + b);
    const plan = { headRows: null, recompute: false };
    const fits = (shape) => state + updateBytes(config, LORA_16, shape, plan) <= passBytes;
    const adamW = { learningRate: 1e-3, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0, maxNorm: 1 };
    const batching = { updates: 1, microBatch: n, microBatchTokens: n * length, fits };
    return updatePolicy(
      { logProbs: (batch) => engine.logProbs(folder, batch, null) },
      {
        accumulate: (batch, loss) => engine.accumulate(trainer, batch, loss),
        step: (settings) => engine.step(trainer, settings),
      },
      rollouts,
      { ...batching, clip: 0.2, kl: 0.1, entropy: 0, optimiser: adamW },
    );
  },
};

const resident = (field) => {
  const status = readFileSync('/proc/self/status', 'utf8');
  return 1024 * Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)[1]);
};

// Compile first: what a session takes is no pass's, and neither is the peak of compiling, which Linux forgets when told.
await passes[use](1, 8);
writeFileSync('/proc/self/clear_refs', '5');
const before = resident('VmRSS');
await passes[use](sequences, tokens);
console.log(resident('VmHWM') - before);
await engine.close();
