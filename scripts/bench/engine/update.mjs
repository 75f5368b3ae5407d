// A whole update of all weights, or of an adapter (forward, backward, gradient-norm clip, AdamW) against PyTorch eager: same weights, tokens,
// loss and threads. Of dense batches, and of one prompt's group.
import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freshState, Trainer } from '../../../dist/lm/trainer.js';
import { writeTensors } from '../../../dist/lm/safetensors.js';
import { againstTorch, EAGER, PYTHON } from './against-torch.mjs';
import { groupUpdateRow } from './group-update.mjs';
import {
  LORA_16,
  MICRO_WORLD,
  randomAdapter,
  randomCheckpoint,
  randomTokens,
  WIDTH_256,
  WIDTH_576,
} from './models.mjs';

const SHAPES = [
  { name: 'update, micro-world: 4 layers × 128, 48 × 40 tokens', config: MICRO_WORLD, batch: 48, time: 40 },
  { name: 'update: 4 layers × 256, 4 × 256 tokens', config: WIDTH_256, batch: 4, time: 256 },
  {
    name: 'update, LoRA r = 16: 12 layers × 576, 4 × 128 tokens',
    config: WIDTH_576,
    layout: LORA_16,
    batch: 4,
    time: 128,
  },
];
const LOSS = { clip: 0.2, kl: 0, entropy: 0.01 };
const ADAMW = { learningRate: 1e-3, beta1: 0.9, beta2: 0.98, epsilon: 1e-8, weightDecay: 0.01, maxNorm: 1 };

/** Rows of the table: milliseconds an update of ours and of PyTorch's. */
export async function updateRows({ threads, rounds, python = PYTHON, mode = EAGER }) {
  const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('OPENBLAS_')));
  Object.assign(environment, {
    OMP_NUM_THREADS: String(threads),
    PYTHONDONTWRITEBYTECODE: '1',
    // The peer at its best: threads that wait do not take the cores of others, and large tensors are not given back after every operator.
    OMP_WAIT_POLICY: 'PASSIVE',
    MALLOC_MMAP_THRESHOLD_: String(4e9),
    MALLOC_TRIM_THRESHOLD_: String(8e9),
  });
  const found = spawnSync(python, ['-c', 'import torch'], { env: environment }).status === 0;
  const rows = [];
  if (!found) {
    const names = [...SHAPES.map(({ name }) => name), 'update of a group'];
    return names.map((name) => ({ name, notRun: `python3-torch is missing (${python})` }));
  }
  for (const shape of SHAPES) rows.push(await denseRow(shape, { threads, rounds, env: environment, python, mode }));
  rows.push(await groupUpdateRow({ threads, rounds, env: environment, python, mode, loss: LOSS, adamW: ADAMW }));
  return rows;
}

async function denseRow({ name, config, layout, batch, time }, { threads, ...how }) {
  const { checkpoint, weights } = randomCheckpoint(config);
  try {
    const tokens = batch * time;
    const ids = randomTokens(tokens, config.vocabulary, 'ids');
    const labels = randomTokens(tokens, config.vocabulary, 'labels');
    const adapter = layout ? randomAdapter(config, layout, 1) : null;
    if (adapter) writeTensors(join(checkpoint.folder, 'factors.safetensors'), adapter.factors);
    const scale = layout ? layout.alpha / layout.rank : null;
    const spec = { threads, batch, time, ids, labels, loss: LOSS, adamW: ADAMW, scale, mode: how.mode };
    writeFileSync(join(checkpoint.folder, 'spec.json'), JSON.stringify(spec));
    const start = freshState(adapter ? adapter.factors : weights);
    const trainer = await Trainer.create(checkpoint, layout ?? 'weights', start, { provider: 'cpu', threads });
    const policy = {
      batch,
      time,
      ids: BigInt64Array.from(ids, BigInt),
      labels: BigInt64Array.from(labels, BigInt),
      mask: new Float32Array(tokens).fill(1),
      advantages: new Float32Array(tokens).fill(1),
      oldLogProbs: null,
      referenceLogProbs: new Float32Array(tokens),
    };
    const update = async () => {
      const report = await trainer.accumulate(policy, { ...LOSS, tokens });
      await trainer.step(ADAMW);
      // As PyTorch's side does, later updates keep the first one's policy for the old one.
      policy.oldLogProbs ??= report.logProbs;
      return report.loss;
    };
    const { folder } = checkpoint;
    const row = await againstTorch({ name, script: 'torch_update.py', folder, update, ...how });
    await trainer.release();
    return row;
  } finally {
    rmSync(checkpoint.folder, { recursive: true });
  }
}
