// Memory of a policy with an adapter, its reference's hidden states and log-probabilities, and its update, on one checkpoint: one session for all
// of it against a session for each. Every measurement has a process of its own; what counts is by how much its resident memory grows.
import { execFileSync } from 'node:child_process';
import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolloutWorkingBytes, trainerBytes, updateBytes } from '../../../dist/lm/footprint.js';
import { LORA_16, randomCheckpoint, WIDTH_256, WIDTH_576 } from './models.mjs';

/** The same graphs over next to no weights: what they take themselves. */
const WEIGHTLESS = { ...WIDTH_576, vocabulary: 64, width: 8, heads: 2, kvHeads: 1, headDim: 4, feedForward: 16 };

/** [sequences, tokens]. */
const FEW = [1, 4];
const MICRO_BATCH = [8, 128];

export function memoryRows({ threads }) {
  const { checkpoint } = randomCheckpoint(WIDTH_576);
  const { checkpoint: weightless } = randomCheckpoint(WEIGHTLESS);
  try {
    const bytes = statSync(join(checkpoint.folder, 'model.safetensors')).size;
    const script = fileURLToPath(new URL('memory-process.mjs', import.meta.url));
    /** In copies of the weights. */
    const grown = (folder, memory, [batch, time]) => {
      const args = ['--expose-gc', script, folder, memory, batch, time, threads].map(String);
      const options = { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] };
      return Number(execFileSync(process.execPath, args, options)) / bytes;
    };
    const row = (what, ours, theirs) => ({
      name: `memory of policy, reference and update, 12 layers × 576: ${what}`,
      peer: 'a session for each graph',
      unit: 'copies of the weights',
      ours,
      theirs,
      lessIsBetter: true,
    });
    // `auto` would give a model of almost no weights a session for each graph.
    const [graph, graphs] = ['small', 'fast'].map((memory) => grown(weightless.folder, memory, FEW));
    const [one, many] = ['small', 'fast'].map((memory) => grown(checkpoint.folder, memory, FEW));
    return [
      row(`weights, without the graphs’ ${graph.toFixed(2)}`, one - graph, many - graphs),
      row(
        `all, of ${MICRO_BATCH.join(' × ')} tokens`,
        grown(checkpoint.folder, 'auto', MICRO_BATCH),
        grown(checkpoint.folder, 'fast', MICRO_BATCH),
      ),
    ];
  } finally {
    for (const { folder } of [checkpoint, weightless]) rmSync(folder, { recursive: true });
  }
}

/** [sequences, tokens] of passes that a budget of a quarter of their memory cuts. */
const CUT = { rollout: [256, 132], update: [32, 200] };
const PROMPT = 4;

/** By how much a pass lets the peak of resident memory grow, cut to a quarter of what it would take and not cut. */
export function budgetRows({ threads }) {
  const { checkpoint } = randomCheckpoint(WIDTH_256);
  const { optimiser, gradients } = trainerBytes(WIDTH_256, LORA_16);
  const needs = {
    rollout: ([samples, tokens]) =>
      rolloutWorkingBytes(WIDTH_256, { prompts: 1, promptTime: PROMPT, samples, newTokens: tokens - PROMPT }),
    update: (size) =>
      optimiser +
      gradients +
      updateBytes(WIDTH_256, LORA_16, { batch: size[0], time: size[1] }, { headRows: null, recompute: false }),
  };
  const script = fileURLToPath(new URL('budget-process.mjs', import.meta.url));
  const peak = (use, bytes) => {
    const args = [script, checkpoint.folder, use, bytes, ...CUT[use], threads].map(String);
    return Number(execFileSync(process.execPath, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }));
  };
  try {
    return ['rollout', 'update'].map((use) => ({
      name: `peak memory of ${use === 'rollout' ? 'a rollout' : 'an update'} of ${CUT[use].join(' × ')} tokens, 4 layers × 256, in a quarter of its memory`,
      peer: 'without a budget',
      unit: 'MB',
      ours: peak(use, needs[use](CUT[use]) / 4) / 1e6,
      theirs: peak(use, 'all') / 1e6,
      lessIsBetter: true,
    }));
  } finally {
    rmSync(checkpoint.folder, { recursive: true });
  }
}
