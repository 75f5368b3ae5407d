/**
 * Supervised training of the micro-world's models from scratch, on the same engine as reinforcement learning: with π for π_old and every
 * advantage 1, the update's gradient is that of the weighted cross-entropy.
 */
import { existsSync } from 'node:fs';
import { largest } from '../../metrics/extremes.js';
import { deriveSeed, seededRandom, shuffled } from '../../metrics/random.js';
import { gaussian } from '../../lm/gaussian.js';
import { openCheckpoint, readWeights, writeCheckpoint } from '../../lm/checkpoint.js';
import { weightShapes } from '../../lm/config.js';
import type { DecoderConfig } from '../../lm/config.js';
import { freshState, Trainer } from '../../lm/trainer.js';
import type { PolicyBatch } from '../../lm/trainer.js';
import { readTrainerState, writeTrainerState } from '../../lm/trainer-state.js';
import { logProbGraph } from '../../lm/update-graph.js';
import { floatData, integers, Session } from '../../onnx/session.js';
import type { Tensor } from '../../onnx/session.js';
import type { EncodedDocument } from './corpus.js';
import { SPECIAL_TOKENS } from './tokenizer-training.js';

/** Ids follow the tokenizer's order. */
const SPECIAL_IDS = {
  pad: SPECIAL_TOKENS.indexOf('<pad>'),
  bos: SPECIAL_TOKENS.indexOf('<bos>'),
  eos: SPECIAL_TOKENS.indexOf('<eos>'),
};

/** What is trained on, by kind: tasks of each type as a generator writes them, and the questions that a solver sees. */
export const DOCUMENT_KINDS = [
  'code_o',
  'code_i',
  'code_f',
  'code_o question',
  'code_i question',
  'code_f question',
] as const;
export type DocumentKind = (typeof DOCUMENT_KINDS)[number];
export type Documents = Readonly<Partial<Record<DocumentKind, readonly EncodedDocument[]>>>;

/** Training goes through its stages one after another; the optimiser's moments carry over. */
export interface TrainingStage {
  /** Documents to train on, repeats counted. */
  readonly documents: number;
  /** Share of each kind. With a single kind a pass is over all its documents, else the stage is one pass over a draw of each. */
  readonly mixture: Readonly<Partial<Record<DocumentKind, number>>>;
  /** The peak, reached after the warm-up; it then falls linearly to a twentieth. */
  readonly learningRate: number;
  readonly warmUpSteps: number;
  /** Share of the documents, at the start, drawn only from those whose task has at most `shortTokens` tokens. */
  readonly shortShare: number;
}

export interface TrainingSettings {
  readonly seed: number;
  readonly batch: number;
  readonly weightDecay: number;
  /** Weight of a task's tokens in the loss; the output's weigh 1. */
  readonly taskWeight: number;
  readonly shortTokens: number;
  readonly threads: number;
  readonly stages: readonly TrainingStage[];
}

export interface HeldOutReport {
  /** Nats a task token, and nats an output. */
  readonly taskLoss: number;
  readonly outputLoss: number;
  /** Mean probability of the whole right output. */
  readonly passProbability: number;
}

export interface TrainingProgress {
  readonly documents: number;
  readonly of: number;
  /** Weighted nats a token since the last report. */
  readonly loss: number;
  readonly documentsPerSecond: number;
}

/** Matrices N(0, 1/in), the two that write to the residual stream scaled down by √(2 · layers); embeddings N(0, 0.05²); norms 1. */
export function initialWeights(config: DecoderConfig, seed: number): Map<string, Tensor> {
  const random = seededRandom(deriveSeed(seed, 'initial weights', 0));
  const weights = new Map<string, Tensor>();
  for (const [name, shape] of weightShapes(config)) {
    const size = shape.reduce((a, b) => a * b, 1);
    const writesResidual = /(o_proj|down_proj)\.weight$/.test(name);
    const deviation = name.includes('embed')
      ? 0.05
      : 1 / Math.sqrt(shape[1]!) / (writesResidual ? Math.sqrt(2 * config.layers) : 1);
    const data = shape.length === 1 ? new Float32Array(size).fill(1) : gaussian(random, size, deviation);
    weights.set(name, { shape, data });
  }
  return weights;
}

/**
 * Train from scratch and write the checkpoint to `folder`, which already holds the tokenizer. The optimiser's state goes to `stateFile`
 * every `SAVE_EVERY` steps; a run that finds one goes on from it, to the same weights.
 */
export async function trainFromScratch(
  folder: string,
  stateFile: string,
  config: DecoderConfig,
  documents: Documents,
  settings: TrainingSettings,
  onProgress: (progress: TrainingProgress) => void,
): Promise<void> {
  const resumed = existsSync(stateFile);
  if (!resumed) writeCheckpoint(folder, config, initialWeights(config, settings.seed), SPECIAL_IDS);
  const checkpoint = openCheckpoint(folder);
  const state = resumed ? readTrainerState(stateFile) : freshState(readWeights(checkpoint));
  const trainer = await Trainer.create(checkpoint, 'weights', state, { provider: 'cpu', threads: settings.threads });
  const schedule = stepSchedule(settings);
  const steps = schedule.length;
  const batches = allBatches(documents, settings);
  for (let step = 0; step < state.step; step++) batches.next();
  const started = performance.now();
  let surprise = 0;
  let weight = 0;
  for (let step = state.step; step < steps; step++) {
    const batch = supervisedBatch(batches.next().value!, settings.taskWeight);
    const tokens = batch.mask.reduce((a, b) => a + b, 0);
    const { logProbs } = await trainer.accumulate(batch, { tokens, clip: 1, kl: 0, entropy: 0 });
    surprise -= logProbs.reduce((sum, lp, i) => sum + lp * batch.mask[i]!, 0);
    weight += tokens;
    await trainer.step({
      learningRate: schedule[step]!,
      beta1: 0.9,
      beta2: 0.98,
      epsilon: 1e-8,
      weightDecay: settings.weightDecay,
      maxNorm: 1,
    });
    if ((step + 1) % SAVE_EVERY === 0 || step + 1 === steps) {
      writeCheckpoint(folder, config, trainer.values(), SPECIAL_IDS);
      writeTrainerState(stateFile, trainer.state());
      const seconds = (performance.now() - started) / 1000;
      const rate = ((step + 1 - state.step) * settings.batch) / seconds;
      onProgress({
        documents: (step + 1) * settings.batch,
        of: steps * settings.batch,
        loss: surprise / weight,
        documentsPerSecond: rate,
      });
      surprise = weight = 0;
    }
  }
  await trainer.release();
}

/** Optimiser steps between checkpoints. */
const SAVE_EVERY = 500;
/** Batches that are sorted by length together, so that a batch's documents are of like length. */
const BUCKET_BATCHES = 16;

/** The learning rate of every step. */
export function stepSchedule({ stages, batch }: Pick<TrainingSettings, 'stages' | 'batch'>): number[] {
  return stages.flatMap(({ documents, learningRate, warmUpSteps }) => {
    const steps = Math.floor(documents / batch);
    return Array.from(
      { length: steps },
      (_, step) => learningRate * Math.min(1, (step + 1) / warmUpSteps) * (1 - (0.95 * step) / steps),
    );
  });
}

/** Each stage's batches, as many as it has steps. */
function* allBatches(documents: Documents, settings: TrainingSettings): Generator<EncodedDocument[], undefined> {
  for (const [index, stage] of settings.stages.entries()) {
    const steps = Math.floor(stage.documents / settings.batch);
    const random = seededRandom(deriveSeed(settings.seed, 'training order', index));
    const batches = documentBatches(stageDocuments(documents, stage, random), stage, settings, random);
    for (let step = 0; step < steps; step++) yield batches.next().value;
  }
}

/** All documents of a stage's only kind, or a draw of each of its kinds: shuffled passes until its share is reached. */
function stageDocuments(documents: Documents, stage: TrainingStage, random: () => number): EncodedDocument[] {
  const mixture = Object.entries(stage.mixture) as [DocumentKind, number][];
  const pools = mixture.map(([kind, share]) => {
    const pool = documents[kind];
    if (!pool?.length) throw new Error(`there are no ${kind} documents to train on`);
    return { pool, count: Math.round(share * stage.documents) };
  });
  if (pools.length === 1) return [...pools[0]!.pool];
  return pools.flatMap(({ pool, count }) => {
    const drawn: EncodedDocument[] = [];
    while (drawn.length < count) {
      for (const document of shuffled(pool, random).slice(0, count - drawn.length)) drawn.push(document);
    }
    return drawn;
  });
}

/** Batches for ever: shuffled passes over the documents, in buckets of like length; at first only short tasks. */
function* documentBatches(
  documents: readonly EncodedDocument[],
  { shortShare, documents: total }: TrainingStage,
  { shortTokens, batch: size }: TrainingSettings,
  random: () => number,
): Generator<EncodedDocument[], never> {
  const short = documents.filter((d) => d.task.length <= shortTokens);
  let drawn = 0;
  for (;;) {
    const onlyShort = drawn < shortShare * total;
    const pool = shuffled(onlyShort ? short : documents, random);
    for (let at = 0; at < pool.length; at += BUCKET_BATCHES * size) {
      if (onlyShort && drawn >= shortShare * total) break;
      const bucket = pool.slice(at, at + BUCKET_BATCHES * size).sort((a, b) => documentLength(a) - documentLength(b));
      const batches = Array.from({ length: Math.ceil(bucket.length / size) }, (_, i) =>
        bucket.slice(i * size, (i + 1) * size),
      );
      for (const batch of shuffled(batches, random)) {
        drawn += batch.length;
        yield batch;
      }
    }
  }
}

const documentLength = (d: EncodedDocument): number => d.task.length + d.output.length;

/** `<bos>` task output, each token predicted from those before it. */
function supervisedBatch(documents: readonly EncodedDocument[], taskWeight: number): PolicyBatch {
  const time = largest(documents.map(documentLength));
  const size = documents.length * time;
  const ids = new BigInt64Array(size);
  const labels = new BigInt64Array(size);
  const mask = new Float32Array(size);
  documents.forEach((d, row) => {
    const tokens = [...d.task, ...d.output];
    tokens.forEach((token, t) => {
      const at = row * time + t;
      ids[at] = BigInt(t === 0 ? SPECIAL_IDS.bos : tokens[t - 1]!);
      labels[at] = BigInt(token);
      mask[at] = t < d.task.length ? taskWeight : 1;
    });
  });
  const advantages = new Float32Array(size).fill(1);
  return { batch: documents.length, time, ids, labels, mask, advantages, oldLogProbs: null, referenceLogProbs: null };
}

/** Losses of a checkpoint on documents it was not trained on. */
export async function evaluateHeldOut(
  folder: string,
  documents: readonly EncodedDocument[],
  threads: number,
): Promise<HeldOutReport> {
  const session = await Session.create(logProbGraph(openCheckpoint(folder), null, 'fused'), {
    provider: 'cpu',
    threads,
    externalFolder: folder,
  });
  const BATCH = 100;
  let task = 0;
  let taskTokens = 0;
  let output = 0;
  let pass = 0;
  for (let at = 0; at < documents.length; at += BATCH) {
    const part = documents.slice(at, at + BATCH);
    const batch = supervisedBatch(part, 1);
    const shape = [batch.batch, batch.time];
    const out = await session.run({ ids: integers(batch.ids, shape), labels: integers(batch.labels, shape) });
    const logProbs = floatData(out['logProbs']);
    part.forEach((d, row) => {
      const sum = (from: number, to: number) =>
        logProbs.subarray(row * batch.time + from, row * batch.time + to).reduce((a, b) => a + b, 0);
      const answer = sum(d.task.length, documentLength(d));
      task -= sum(0, d.task.length);
      taskTokens += d.task.length;
      output -= answer;
      pass += Math.exp(answer);
    });
  }
  await session.release();
  return {
    taskLoss: task / taskTokens,
    outputLoss: output / documents.length,
    passProbability: pass / documents.length,
  };
}
