// A whole update of all weights, or of an adapter (forward, backward, gradient-norm clip, AdamW) against PyTorch eager: same weights, tokens, loss and threads,
// taking turns so that whatever else the machine does slows both alike.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { freshState, Trainer } from '../../../dist/lm/trainer.js';
import { writeTensors } from '../../../dist/lm/safetensors.js';
import {
  LORA_16,
  MICRO_WORLD,
  randomAdapter,
  randomCheckpoint,
  randomTokens,
  WIDTH_256,
  WIDTH_576,
} from './models.mjs';

const PYTHON = '/usr/bin/python3';
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
export async function updateRows({ threads, rounds }) {
  const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('OPENBLAS_')));
  Object.assign(environment, { OMP_NUM_THREADS: String(threads), PYTHONDONTWRITEBYTECODE: '1' });
  const found = spawnSync(PYTHON, ['-c', 'import torch'], { env: environment }).status === 0;
  const rows = [];
  for (const shape of SHAPES) {
    if (found) rows.push(await againstTorch(shape, threads, rounds, environment));
    else rows.push({ name: shape.name, notRun: `python3-torch is missing (${PYTHON})` });
  }
  return rows;
}

async function againstTorch({ name, config, layout, batch, time }, threads, rounds, env) {
  const { checkpoint, weights } = randomCheckpoint(config);
  const tokens = batch * time;
  const ids = randomTokens(tokens, config.vocabulary, 'ids');
  const labels = randomTokens(tokens, config.vocabulary, 'labels');
  const adapter = layout ? randomAdapter(config, layout, 1) : null;
  if (adapter) writeTensors(join(checkpoint.folder, 'factors.safetensors'), adapter.factors);
  const scale = layout ? layout.alpha / layout.rank : null;
  const spec = { threads, batch, time, ids, labels, loss: LOSS, adamW: ADAMW, scale };
  writeFileSync(join(checkpoint.folder, 'spec.json'), JSON.stringify(spec));
  const script = fileURLToPath(new URL('torch_update.py', import.meta.url));
  const torch = spawn(PYTHON, [script, checkpoint.folder], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    const lines = createInterface({ input: torch.stdout })[Symbol.asyncIterator]();
    const nextNumber = async () => {
      const { value, done } = await lines.next();
      if (done) throw new Error(`${script} ended early`);
      return Number(value);
    };
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
    const [ourLoss, theirLoss] = [await update(), await nextNumber()];
    if (Math.abs(ourLoss - theirLoss) > 1e-4) throw new Error(`losses differ: ${ourLoss} and PyTorch's ${theirLoss}`);
    const [ours, theirs] = [[], []];
    for (let round = 0; round < rounds; round++) {
      const started = performance.now();
      await update();
      ours.push(performance.now() - started);
      torch.stdin.write('\n');
      theirs.push(await nextNumber());
    }
    await trainer.release();
    torch.stdin.end();
    await once(torch, 'exit');
    return {
      name,
      peer: 'PyTorch eager',
      unit: 'ms',
      ours: Math.min(...ours),
      theirs: Math.min(...theirs),
      lessIsBetter: true,
    };
  } finally {
    torch.kill();
    rmSync(checkpoint.folder, { recursive: true });
  }
}
