// One side of the memory benchmark: all that training does with a checkpoint, then the bytes that resident memory has grown by.
//     node --expose-gc memory-process.mjs FOLDER auto|fast|small BATCH TIME THREADS
import { Engine } from '../../../dist/lm/engine.js';
import { openCheckpoint } from '../../../dist/lm/checkpoint.js';
import { LORA_16, randomAdapter, randomTokens } from './models.mjs';

/** Of the least rank: the optimiser's state is not what is measured. */
const LAYOUT = { ...LORA_16, rank: 1 };

const [folder, memory, ...sizes] = process.argv.slice(2);
const [batch, time, threads] = sizes.map(Number);
const { config } = openCheckpoint(folder);
const { factors } = randomAdapter(config, LAYOUT, 1);
const adapter = { layout: LAYOUT, factors };
const sequences = Array.from({ length: batch }, (_, i) => randomTokens(time, config.vocabulary, `sequence ${i}`));
const engine = await Engine.create({ provider: 'cpu', threads, memory });
globalThis.gc();
const before = process.memoryUsage().rss;

const trainer = await engine.createTrainer(folder, LAYOUT, factors);
for (let step = 0; step < 2; step++) {
  const prompts = sequences.map((sequence) => sequence.slice(0, time / 2));
  const request = { prompts, perPrompt: 1, maxNewTokens: time / 2, temperature: 1, stops: [], seed: step, adapter };
  await engine.rollout(folder, request);
  await engine.hiddenStates(folder, { sequences, layers: [6, 12], poolings: ['mean', 'last'] });
  const ids = BigInt64Array.from(sequences.flat(), BigInt);
  const tokens = { batch, time, ids, labels: ids, mask: new Float32Array(batch * time).fill(1) };
  const referenceLogProbs = await engine.logProbs(folder, tokens, null);
  const policy = { ...tokens, advantages: tokens.mask, oldLogProbs: null, referenceLogProbs };
  await engine.accumulate(trainer, policy, { tokens: batch * time, clip: 0.2, kl: 0.1, entropy: 0 });
  const adamW = { learningRate: 1e-3, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0, maxNorm: 1 };
  await engine.step(trainer, adamW);
}
// Tensors that an update has replaced are still there until they are collected.
globalThis.gc();
console.log(process.memoryUsage().rss - before);
await engine.close();
