/** `propel export`: what PyTorch makes of the exported files, what is in them, and what is refused. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { initialAdapter, adapterInputs } from '../src/lm/adapter.js';
import { readAdapter, writeAdapter } from '../src/lm/adapter-folder.js';
import type { Adapter } from '../src/lm/adapter.js';
import { bindWeights, checkpointHash, openCheckpoint, readWeights } from '../src/lm/checkpoint.js';
import { Decoder } from '../src/lm/decoder.js';
import { gaussian } from '../src/lm/gaussian.js';
import { writeTensors } from '../src/lm/safetensors.js';
import { freshState } from '../src/lm/trainer.js';
import { tokenInput } from '../src/lm/update-graph.js';
import { seededRandom } from '../src/metrics/random.js';
import { Differentiable } from '../src/onnx/differentiable.js';
import { floatData, floats, integers, Session } from '../src/onnx/session.js';
import { checkpointPath } from '../src/pipeline/checkpoints.js';
import { exportGenerator } from '../src/pipeline/export.js';
import type { Exported } from '../src/pipeline/export.js';
import { ADAPTER_FILE, writeTrainingCheckpoint } from '../src/rl/checkpoint.js';
import { sha256OfFile } from '../src/store/files.js';
import type { StepRow } from '../src/store/rows.js';
import { RunStore } from '../src/store/store.js';
import { errorLine, PACKAGE, propelIn, temporaryFolder } from './propel-process.js';
import { narrowWeights, randomWeights, TINY_LLAMA, tinyCheckpoint } from './tiny-checkpoint.js';

const FAMILIES = ['llama', 'qwen2', 'llama3', 'mistral', 'qwen3', 'phi3', 'gemma3'] as const;
const fixture = (family: string): string => fileURLToPath(new URL(`../src/lm/fixtures/${family}`, import.meta.url));
const GENERATOR = join(PACKAGE, 'data/micro-world/generator');

const KL_STOP = 8;

/**
 * A run folder whose arm `propel` was trained from `policy` up to the last step that has an adapter, and is too far from its start from
 * `collapsedAt` on.
 */
function plantRun(policy: string, adapters: Readonly<Record<number, Adapter>>, collapsedAt = Infinity): string {
  const folder = join(temporaryFolder(), 'run');
  const store = RunStore.open(folder);
  store.startRun({
    seed: 0,
    config: {
      models: { policy, reference: policy, solver: null },
      arms: { base: { reward: 'none' }, propel: { reward: 'valid' } },
      train: { klStop: KL_STOP, noSignalStop: 10, lora: {} },
      evaluate: { checkpoint: 'trusted' },
      modelHashes: { policy: checkpointHash(policy) },
      policyHashes: {},
    },
    versions: {},
  });
  for (const [step, { layout, factors }] of Object.entries(adapters)) {
    const path = checkpointPath('propel', Number(step));
    writeTrainingCheckpoint(join(folder, path), freshState(factors), layout, policy);
    const sha256 = sha256OfFile(join(folder, path, ADAPTER_FILE));
    store.insertCheckpoint({ arm: 'propel', step: Number(step), path, sha256 });
  }
  const steps = Math.max(...Object.keys(adapters).map(Number));
  for (let step = 1; step <= steps; step++) store.insertStep(plantedStep(step, step < collapsedAt ? 1 : KL_STOP + 1));
  store.finishPhase('train-generator', 'propel', 0);
  store.close();
  return folder;
}

function plantedStep(step: number, klPerSequence: number): StepRow {
  const seconds = { proposeSeconds: 0, checkSeconds: 0, scoreSeconds: 0, updateSeconds: 0 };
  const learnt = { gradientNorm: 1, loss: 0, entropy: 1, clippedShare: 0 };
  const measured = { claimedInBand: null, measuredInBand: null, solverTrials: 0 };
  return {
    arm: 'propel',
    step,
    rewardMean: 1,
    rewardSd: 0,
    validity: 1,
    klPerSequence,
    ...learnt,
    ...measured,
    ...seconds,
  };
}

function exported(run: string, options: { merge: boolean; step?: number }): Exported {
  return exportGenerator({ run, arm: 'propel', out: join(temporaryFolder(), 'out'), ...options });
}

/** An adapter whose B is not zero, as a trained one's. */
function trainedAdapter(folder: string, seed: number): Adapter {
  const { config } = openCheckpoint(folder);
  const layout = { rank: 4, alpha: 8, targets: ['q_proj', 'o_proj', 'up_proj'] };
  const random = seededRandom(seed);
  const { factors } = initialAdapter(config, layout, seed);
  return {
    layout,
    factors: new Map(
      [...factors].map(([name, { shape, data }]) => [name, { shape, data: gaussian(random, data.length, 0.2) }]),
    ),
  };
}

const IDS = [
  [1, 5, 7, 3, 9, 11, 20, 4],
  [1, 22, 2, 16, 8, 6, 13, 10],
];

/** The engine's logits, [batch, time, vocabulary] in one row. */
async function ourLogits(folder: string, adapter: Adapter | null): Promise<Float32Array> {
  const checkpoint = openCheckpoint(folder);
  const g = new Differentiable('fused');
  const ids = tokenInput(g);
  const values = adapter ? adapterInputs(g, checkpoint.config, adapter.layout).values : null;
  const decoder = new Decoder(g, checkpoint.config, bindWeights(g, checkpoint), values, 'time');
  g.output(decoder.logits(g, decoder.causal(g, ids)), 'logits');
  const settings = { provider: 'cpu', threads: 1, externalFolder: checkpoint.weightsFolder } as const;
  const session = await Session.create(g, settings);
  const factors = Object.fromEntries([...(adapter?.factors ?? [])].map(([name, t]) => [name, floats(t.data, t.shape)]));
  const tokens = integers(BigInt64Array.from(IDS.flat(), BigInt), [IDS.length, IDS[0]!.length]);
  const out = await session.run({ ids: tokens, ...factors });
  await session.release();
  return floatData(out['logits']);
}

function largestDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  expect(a).toHaveLength(b.length);
  return Math.max(...Array.from(a, (x, i) => Math.abs(x - b[i]!)));
}

const PYTHON = '/usr/bin/python3';
const hasTorch = existsSync(PYTHON) && spawnSync(PYTHON, ['-c', 'import torch']).status === 0;

/** PyTorch's logits of exported folders, each as {@link ourLogits}. */
function theirLogits(asked: readonly { readonly model: string; readonly adapter: string | null }[]): number[][] {
  const script = join(PACKAGE, 'scripts/fixtures/exported_logits.py');
  const input = JSON.stringify(asked.map((one) => ({ ...one, ids: IDS })));
  const { status, stdout, stderr } = spawnSync(PYTHON, [script], { input, encoding: 'utf8', maxBuffer: 1 << 26 });
  expect(stderr).toBe('');
  expect(status).toBe(0);
  return (JSON.parse(stdout) as number[][][][]).map((logits) => logits.flat(2));
}

/** PyTorch and the command take seconds to start. */
const LONG = { timeout: 240_000 };

describe('every family', () => {
  it.skipIf(!hasTorch)(
    'gives PyTorch the engine’s logits, as an adapter and merged (needs python3-torch)',
    LONG,
    async () => {
      const exports = FAMILIES.map((family) => {
        const base = fixture(family);
        const adapter = readAdapter(join(base, 'adapter'), openCheckpoint(base).config);
        const run = plantRun(base, { 3: adapter });
        const [peft, plain] = [exported(run, { merge: false }).folder, exported(run, { merge: true }).folder];
        return { family, base, adapter, peft, plain };
      });
      const theirs = theirLogits(
        exports.flatMap(({ base, peft, plain }) => [
          { model: base, adapter: peft },
          { model: plain, adapter: null },
        ]),
      );
      for (const [i, { family, base, adapter, plain }] of exports.entries()) {
        const ours = await ourLogits(base, adapter);
        expect(largestDifference(theirs[2 * i]!, ours), `${family}, adapter`).toBeLessThan(1e-4);
        expect(largestDifference(theirs[2 * i + 1]!, ours), `${family}, merged`).toBeLessThan(1e-4);
        expect(largestDifference(await ourLogits(plain, null), ours), `${family}, merged here`).toBeLessThan(1e-4);
        // The adapter is no trifle: without it the logits are others.
        expect(largestDifference(await ourLogits(base, null), ours), family).toBeGreaterThan(0.1);
      }
    },
  );

  it.each(FAMILIES)('%s merged has the engine’s own logits, and nothing else is changed', async (family) => {
    const base = fixture(family);
    const adapter = readAdapter(join(base, 'adapter'), openCheckpoint(base).config);
    const { folder } = exported(plantRun(base, { 3: adapter }), { merge: true });
    expect(largestDifference(await ourLogits(folder, null), await ourLogits(base, adapter))).toBeLessThan(1e-4);
    const [before, after] = [readWeights(openCheckpoint(base)), readWeights(openCheckpoint(folder))];
    const changed = [...before].flatMap(([name, { data }]) =>
      data.every((x, i) => x === after.get(name)!.data[i]) ? [] : [name.replace(/\.weight$/, '')],
    );
    const adapted = [...adapter.factors.keys()].flatMap((name) => (name.endsWith('A') ? [name.slice(0, -7)] : []));
    expect(changed.toSorted()).toEqual(adapted.toSorted());
    expect(readFileSync(join(folder, 'config.json'))).toEqual(readFileSync(join(base, 'config.json')));
  });
});

describe('a merged checkpoint', () => {
  it('has W + (α / r) B A, worked out by hand', () => {
    const base = tinyCheckpoint(TINY_LLAMA, 2);
    const adapter = trainedAdapter(base, 3);
    const after = readWeights(openCheckpoint(exported(plantRun(base, { 1: adapter }), { merge: true }).folder));
    const module = 'model.layers.1.mlp.up_proj';
    const [W, A, B] = [
      readWeights(openCheckpoint(base)).get(`${module}.weight`)!.data,
      adapter.factors.get(`${module}.lora_A`)!.data,
      adapter.factors.get(`${module}.lora_B`)!.data,
    ];
    // Row 2, column 5 of [24, 16], α / r = 2, r = 4.
    const sum = [0, 1, 2, 3].reduce((total, k) => total + B[2 * 4 + k]! * A[k * 16 + 5]!, 0);
    expect(after.get(`${module}.weight`)!.data[2 * 16 + 5]).toBeCloseTo(W[2 * 16 + 5]! + 2 * sum, 6);
  });

  it.each(['BF16', 'F16'] as const)('of weights in %s stays in that type, rounded once', (type) => {
    const base = tinyCheckpoint(TINY_LLAMA, 2);
    const narrowed = narrowWeights(base, randomWeights(TINY_LLAMA, 2), type);
    const adapter = trainedAdapter(base, 3);
    const merged = openCheckpoint(exported(plantRun(base, { 1: adapter }), { merge: true }).folder);
    expect(new Set([...merged.entries.values()].map((entry) => entry.type))).toEqual(new Set([type]));
    const module = 'model.layers.0.self_attn.q_proj';
    const [A, B] = ['A', 'B'].map((factor) => adapter.factors.get(`${module}.lora_${factor}`)!.data);
    const after = readWeights(merged).get(`${module}.weight`)!.data;
    const halfUlp = type === 'BF16' ? 2 ** -8 : 2 ** -11;
    narrowed.get(`${module}.weight`)!.data.forEach((w, i) => {
      const [row, column] = [Math.floor(i / 16), i % 16];
      const sum = [0, 1, 2, 3].reduce((total, k) => total + B![row * 4 + k]! * A![k * 16 + column]!, 0);
      const exact = w + 2 * sum;
      expect(Math.abs(after[i]! - exact)).toBeLessThanOrEqual(halfUlp * Math.abs(exact) + 1e-7);
    });
  });

  it('of a base in shards has the same shards and index, and its logits', async () => {
    const base = tinyCheckpoint(TINY_LLAMA, 4);
    const weights = [...randomWeights(TINY_LLAMA, 4)];
    const shard = (at: number): string => `model-0000${(at % 2) + 1}-of-00002.safetensors`;
    for (const part of [0, 1]) {
      writeTensors(join(base, shard(part)), new Map(weights.filter((_, at) => at % 2 === part)));
    }
    const weight_map = Object.fromEntries(weights.map(([name], at) => [name, shard(at)]));
    writeFileSync(join(base, 'model.safetensors.index.json'), JSON.stringify({ metadata: {}, weight_map }));
    rmSync(join(base, 'model.safetensors'));
    const adapter = trainedAdapter(base, 5);
    const { folder, files } = exported(plantRun(base, { 1: adapter }), { merge: true });
    expect(files.map(({ file }) => file)).toEqual(['config.json', shard(0), shard(1), 'model.safetensors.index.json']);
    expect(largestDifference(await ourLogits(folder, null), await ourLogits(base, adapter))).toBeLessThan(1e-4);
  });
});

describe('the command', () => {
  const adapters = { 5: trainedAdapter(GENERATOR, 5), 10: trainedAdapter(GENERATOR, 10) };
  const sha256 = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');

  it('writes the last adapter in PEFT’s layout, and says what it wrote', LONG, () => {
    const [run, work] = [plantRun(GENERATOR, adapters), temporaryFolder()];
    const { code, stdout } = propelIn(work, ['export', run, '--arm', 'propel', '--out', 'out', '--json']);
    expect(code).toBe(0);
    const out = join(work, 'out');
    const files = ['adapter_config.json', 'adapter_model.safetensors'];
    expect(JSON.parse(stdout)).toEqual({
      arm: 'propel',
      step: 10,
      trained: true,
      kind: 'adapter',
      base: GENERATOR,
      folder: out,
      modelHash: null,
      files: files.map((file) => ({
        file,
        bytes: readFileSync(join(out, file)).length,
        sha256: sha256(join(out, file)),
      })),
    });
    expect(readdirSync(work)).toEqual(['out']);
    expect(JSON.parse(readFileSync(join(out, files[0]!), 'utf8'))).toMatchObject({
      peft_type: 'LORA',
      task_type: 'CAUSAL_LM',
      base_model_name_or_path: GENERATOR,
      r: 4,
      lora_alpha: 8,
      target_modules: ['q_proj', 'o_proj', 'up_proj'],
    });
    expect(readAdapter(out, openCheckpoint(GENERATOR).config)).toEqual(adapters[10]);
  });

  it('merges the adapter of a step into a checkpoint of the base’s own files', LONG, () => {
    const [run, work] = [plantRun(GENERATOR, adapters), temporaryFolder()];
    const merge = ['export', run, '--arm', 'propel', '--step', '5', '--out', 'out', '--merge'];
    const { code, stdout } = propelIn(work, merge);
    expect(code).toBe(0);
    const out = join(work, 'out');
    expect(stdout).toContain(`arm propel after step 5, merged into ${GENERATOR}: ${out}\n`);
    expect(stdout).toContain(`sha256:${sha256(join(out, 'model.safetensors'))}\n`);
    expect(stdout).toContain(`as a model of a run or a probe's card: ${checkpointHash(out)}\n`);
    const same = ['tokenizer.json', 'tokenizer_config.json', 'config.json'];
    for (const file of same) expect(readFileSync(join(out, file))).toEqual(readFileSync(join(GENERATOR, file)));
  });

  it(
    'writes what was measured of an arm whose training collapsed, another checkpoint only when it is named',
    LONG,
    () => {
      const exporting = (run: string, ...args: string[]) =>
        propelIn(temporaryFolder(), ['export', run, '--arm', 'propel', '--out', 'out', ...args]);
      // The samples of step 10 are of the policy after step 9; a later step has sampled from that after step 5.
      const late = plantRun(GENERATOR, adapters, 10);
      expect(exporting(late).stdout).toContain('arm propel after step 5, an adapter of');
      expect(exporting(late, '--step', '10').stdout).toContain('arm propel after step 10, an adapter of');
      const early = exporting(plantRun(GENERATOR, { 5: adapters[5], 6: adapters[10] }, 6));
      expect(early.code).toBe(2);
      expect(errorLine(early)).toBe(
        'propel: arm propel: its training collapsed before there was a checkpoint to trust, and what was measured is the untrained generator; ' +
          '--step exports one all the same: 5, 6',
      );
    },
  );

  it('names a model of the hub’s cache by its id and commit', () => {
    const commit = 'c'.repeat(40);
    const base = join(temporaryFolder(), 'models--org--tiny', 'snapshots', commit);
    mkdirSync(base, { recursive: true });
    const source = tinyCheckpoint(TINY_LLAMA, 1);
    for (const file of readdirSync(source)) writeFileSync(join(base, file), readFileSync(join(source, file)));
    const { folder } = exported(plantRun(base, { 1: trainedAdapter(base, 1) }), { merge: false });
    expect(JSON.parse(readFileSync(join(folder, 'adapter_config.json'), 'utf8'))).toMatchObject({
      base_model_name_or_path: 'org/tiny',
      revision: commit,
    });
  });

  const refusal = (run: string, out: string, arm: string, step?: number) => () =>
    exportGenerator({ run, arm, step, out, merge: true });

  it('refuses a folder that holds anything, an arm or a step that is not there', LONG, () => {
    const [run, work] = [plantRun(GENERATOR, adapters), temporaryFolder()];
    const out = join(work, 'out');
    expect(refusal(run, out, 'propels')).toThrow("the run has no arm 'propels', but base, propel");
    expect(refusal(run, out, 'base')).toThrow('arm base has no checkpoint; those that have one: propel');
    expect(refusal(run, out, 'propel', 7)).toThrow('arm propel has no checkpoint of step 7, but of 5, 10');
    expect(existsSync(out)).toBe(false);
    mkdirSync(out);
    writeFileSync(join(out, 'mine'), 'mine');
    expect(errorLine(propelIn(work, ['export', run, '--arm', 'propel', '--out', 'out']))).toBe(
      `propel: ${out} is there already: nothing is overwritten; give another folder with --out`,
    );
    expect(readdirSync(out)).toEqual(['mine']);
  });

  it('refuses a checkpoint that is not the run’s own, and a base that has changed, and leaves nothing', () => {
    const base = tinyCheckpoint(TINY_LLAMA, 1);
    const [run, work] = [plantRun(base, { 1: trainedAdapter(base, 1) }), temporaryFolder()];
    appendFileSync(join(base, 'config.json'), '\n');
    expect(refusal(run, join(work, 'out'), 'propel')).toThrow(
      `${base} is not the policy that ${run} was run with: its weights have changed`,
    );
    writeAdapter(join(run, checkpointPath('propel', 1)), trainedAdapter(base, 2), base);
    expect(refusal(run, join(work, 'out'), 'propel')).toThrow(' is not the file that the run wrote; put that back');
    expect(readdirSync(work)).toEqual([]);
  });
});
