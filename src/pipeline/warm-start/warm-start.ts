/**
 * Warm start: supervised LoRA fine-tuning of a model that cannot yet write valid tasks, or answer them, on prompts and completions. The
 * result is a checkpoint with the adapter merged into it, or the adapter.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { createCodeDomain, readTopicRules } from '../../domain/azr/index.js';
import { RunError, UserError } from '../../errors.js';
import { initialAdapter, TARGET_MODULES } from '../../lm/adapter.js';
import type { AdapterLayout } from '../../lm/adapter.js';
import { checkpointHash } from '../../lm/checkpoint.js';
import { EngineThread, LanguageModel, openModelFiles } from '../../lm/language-model.js';
import type { ModelFiles } from '../../lm/language-model.js';
import { freshState } from '../../lm/trainer.js';
import { bootstrap } from '../../metrics/bootstrap.js';
import { deriveSeed, seededRandom, shuffled } from '../../metrics/random.js';
import type { MicroBatchLimits } from '../../rl/micro-batches.js';
import { documentLosses, learningRateAt, supervisedUpdate, trainingOrder } from '../../rl/supervised.js';
import type { DocumentLoss, TrainingDocument } from '../../rl/supervised.js';
import { chatOf } from '../chat.js';
import type { Config } from '../config.js';
import { engineSettings, modelPassBytes, updateFits } from '../memory-budget.js';
import { evaluateInSandbox } from '../micro-world/evaluation.js';
import { findModel } from '../models.js';
import { openSandbox } from '../open-sandbox.js';
import { findFile } from '../paths.js';
import type { ProgressFactory } from '../progress.js';
import { Stopped } from '../workspace.js';
import { documentsHash, encodeDocument, readDocuments } from './documents.js';
import type { TextDocument } from './documents.js';
import { microWorldDocuments } from './micro-world-documents.js';
import type { WarmStartRole } from './micro-world-documents.js';
import type { DocumentSource, HeldOutLoss, WarmStartSettings } from './settings.js';
import { TrainingFolder } from './training-state.js';
import { writeWarmStarted } from './written.js';
import type { WarmStarted } from './written.js';

export interface WarmStartOptions {
  readonly config: Config;
  readonly role: WarmStartRole;
  readonly source: DocumentSource;
  /** A model; undefined: the configuration's of that role. */
  readonly from: string | undefined;
  readonly out: string;
  /** Write the adapter by itself. */
  readonly adapter: boolean;
  readonly settings: WarmStartSettings;
  readonly progress: ProgressFactory;
  /** Ends the training after the update that is under way; it can be gone on with. */
  readonly signal: AbortSignal;
}

/** Of the documents, those that are held out; and how many at most and at least. */
const HELD_OUT = { share: 0.05, most: 256, least: 1 };
/** As the settings of a policy's update, but for the moments' decay. */
const ADAM = { beta1: 0.9, beta2: 0.98, epsilon: 1e-8, weightDecay: 0, maxNorm: 1 };
/** Of the time that training takes, what saving it may. */
const SAVING_SHARE = 0.05;

/** @throws UserError for what the options name wrongly; Stopped when the signal comes; RunError when training diverges */
export async function warmStart(options: WarmStartOptions): Promise<WarmStarted> {
  const { config, role, settings, progress } = options;
  const target = resolve(options.out);
  requireFree(target);
  const domain = createCodeDomain(config.domain, readTopicRules(findFile(config.domain.topics, 'domain.topics')));
  const base = baseModel(options);
  const files = await openModelFiles(base);
  const layout: AdapterLayout = { rank: settings.rank, alpha: settings.alpha, targets: TARGET_MODULES };
  const state = new TrainingFolder(target);
  try {
    const texts = await documentsOf(options, domain, state);
    const chat = chatOf(role === 'generator' ? config.policy : config.solver, domain);
    const { tokenizer, config: decoder } = files;
    const all = texts.map((document) =>
      encodeDocument(document, { tokenizer, chat, maxPositions: decoder.maxPositions }),
    );
    const { trained, heldOut } = split(all, config.seed);
    const identity = identityOf(
      { ...settings, role, seed: config.seed, engine: config.engine, base: checkpointHash(base) },
      all,
    );
    const bytes = modelPassBytes(config, base, GRAPHS);
    const engine = await EngineThread.start({ ...engineSettings(config.engine, bytes), model: base });
    try {
      const limits = limitsOf(config, files, layout, bytes);
      const model = await LanguageModel.open(engine, base);
      const trainedState = await train({ options, identity, model, layout, limits, trained, heldOut, state, base });
      const { before, after, seconds, updates } = trainedState;
      const written = writeWarmStarted({
        target,
        base,
        checkpoint: state.checkpoint(updates),
        adapter: options.adapter,
        tokenizer,
        facts: {
          role,
          source: options.source,
          documents: { trained: trained.length, heldOut: heldOut.length, sha256: documentsHash(all) },
          notation: config.domain.notation,
          asked: chat !== 'never' && tokenizer.hasChat ? 'chat' : 'text',
          settings,
          seed: config.seed,
          updates,
          seconds,
          before: lossOf(before, config.seed),
          after: lossOf(after, config.seed),
          provider: engine.choice.provider,
          dtype: engine.choice.dtype,
        },
      });
      state.remove();
      progress(`warm start of the ${role}`).done(
        `${updates} updates, held-out loss ${written.heldOut.before.nats.toFixed(3)} → ${written.heldOut.after.nats.toFixed(3)} nats a token`,
      );
      return written;
    } finally {
      await engine.close();
    }
  } finally {
    state.close();
  }
}

/** An update, and log-probabilities of what is held out. */
const GRAPHS = 2;

function requireFree(target: string): void {
  if (existsSync(target) && (!statSync(target).isDirectory() || readdirSync(target).length > 0))
    throw new UserError(`${target} is there already: nothing is overwritten; give another folder with --out`);
}

function baseModel({ config, role, from }: WarmStartOptions): string {
  if (from !== undefined) return findModel(from, '--from');
  const setting = role === 'generator' ? 'policy' : 'solver';
  const named = config.models[setting];
  if (named === null)
    throw new UserError(`models.${setting} names no model, as its place is taken by an endpoint; give one with --from`);
  if (typeof named !== 'string')
    throw new UserError(
      `models.${setting} has an adapter, and a warm start makes one of its own: merge it into its base, and give that with --from`,
    );
  return findModel(named, `models.${setting}`);
}

/** Of the file, or of the micro-world: those are sampled once, and kept as a file of the same form until the end. */
async function documentsOf(
  { config, role, source, progress }: WarmStartOptions,
  domain: ReturnType<typeof createCodeDomain>,
  state: TrainingFolder,
): Promise<TextDocument[]> {
  if ('file' in source) return readDocuments(source.file);
  const { microWorld: count } = source;
  const name = `micro-world-${role}-${count}-${config.seed}.jsonl`;
  const lines = await state.kept(name, async () => {
    const line = progress('documents');
    const sandbox = await openSandbox({ kind: 'wasm', workers: config.sandbox.workers }, progress);
    try {
      const documents = await microWorldDocuments(domain, {
        role,
        count,
        seed: config.seed,
        evaluate: evaluateInSandbox(sandbox),
        onProgress: (done) => line.update(done, count),
      });
      line.done(`${documents.length} of the micro-world`);
      return documents.map((document) => `${JSON.stringify(document)}\n`).join('');
    } finally {
      await sandbox.close();
    }
  });
  return lines
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as TextDocument);
}

function split(
  all: readonly TrainingDocument[],
  seed: number,
): { readonly trained: readonly TrainingDocument[]; readonly heldOut: readonly TrainingDocument[] } {
  const { share, most, least } = HELD_OUT;
  const held = Math.min(most, Math.max(least, Math.round(share * all.length)));
  if (all.length - held < 1)
    throw new UserError(`${all.length} documents are too few to train on some and hold out ${held}; give more`);
  const order = shuffled(all, seededRandom(deriveSeed(seed, 'documents held out', 0)));
  return { heldOut: order.slice(0, held), trained: order.slice(held) };
}

function identityOf(facts: object, documents: readonly TrainingDocument[]): string {
  return createHash('sha256')
    .update(JSON.stringify([facts, documentsHash(documents)]))
    .digest('hex');
}

function limitsOf(
  { train, engine }: Config,
  files: ModelFiles,
  layout: AdapterLayout,
  bytes: number | null,
): MicroBatchLimits {
  return {
    rows: train.microBatch,
    tokens: train.microBatchTokens,
    fits: updateFits(engine, files.config, layout, bytes),
  };
}

interface Training {
  readonly options: WarmStartOptions;
  readonly identity: string;
  readonly model: LanguageModel;
  readonly layout: AdapterLayout;
  readonly limits: MicroBatchLimits;
  readonly trained: readonly TrainingDocument[];
  readonly heldOut: readonly TrainingDocument[];
  readonly state: TrainingFolder;
  readonly base: string;
}

interface Trained {
  readonly before: readonly DocumentLoss[];
  readonly after: readonly DocumentLoss[];
  readonly updates: number;
  readonly seconds: number;
}

/** From the beginning, or from the last update that was saved: to the same weights. */
async function train(training: Training): Promise<Trained> {
  const { options, identity, model, layout, limits, trained, heldOut, state, base } = training;
  const { config, settings, signal, role } = options;
  const saved = state.read(identity);
  const before = saved?.before ?? (await documentLosses(model, null, heldOut, limits));
  const lengths = trained.map(({ prompt, completion }) => prompt.length + completion.length);
  const order = trainingOrder(lengths, { ...settings, seed: config.seed });
  const updates = order.length;
  const begin = saved
    ? state.trainerState(saved.update)
    : freshState(initialAdapter(model.config, layout, deriveSeed(config.seed, `warm start of the ${role}`, 0)).factors);
  const trainer = await model.train(layout, begin);
  const progress = options.progress(`warm start of the ${role}`);
  const earlier = saved?.seconds ?? 0;
  const started = performance.now();
  const secondsNow = () => earlier + (performance.now() - started) / 1000;
  let done = saved?.update ?? 0;
  let nextSave = 0;
  const save = async (): Promise<void> => {
    const from = performance.now();
    const checkpoint = await trainer.state();
    state.save({ identity, before: [...before], update: done, seconds: secondsNow() }, checkpoint, layout, base);
    const now = performance.now();
    nextSave = now + (now - from) / SAVING_SHARE;
  };
  let learnt = order.slice(0, done).reduce((sum, update) => sum + update.length, 0);
  const total = order.reduce((sum, update) => sum + update.length, 0);
  progress.update(learnt, total);
  for (; done < updates;) {
    const update = order[done]!;
    const learningRate = learningRateAt(done, { peak: settings.learningRate, warmUp: settings.warmUp, updates });
    const documents = update.map((i) => trained[i]!);
    const loss = await supervisedUpdate(trainer, documents, limits, { ...ADAM, learningRate });
    done++;
    learnt += update.length;
    progress.update(learnt, total, `loss ${loss.toFixed(3)} nats a token`);
    if (done === updates || signal.aborted || performance.now() >= nextSave) await save();
    if (signal.aborted && done < updates) throw new Stopped();
  }
  const adapter = { layout, factors: await trainer.values() };
  const after = await documentLosses(model, adapter, heldOut, limits);
  await trainer.release();
  if (!after.every(({ nats }) => Number.isFinite(nats)))
    throw new RunError('training diverged: the held-out loss is no number');
  return { before, after, updates, seconds: secondsNow() };
}

/** Nats a token over all documents, and the percentile bootstrap over documents. */
function lossOf(losses: readonly DocumentLoss[], seed: number): HeldOutLoss {
  const mean = (indices: Int32Array): number => {
    let nats = 0;
    let tokens = 0;
    for (const i of indices) {
      nats += losses[i]!.nats;
      tokens += losses[i]!.tokens;
    }
    return nats / tokens;
  };
  const { estimate, interval } = bootstrap(losses.length, mean, { seed: deriveSeed(seed, 'held-out loss', 0) });
  return { nats: estimate, interval };
}
