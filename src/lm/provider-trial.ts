/**
 * A model's own training step on an execution provider: a rollout, then loss and gradients of what was written, compared with cpu's and
 * timed. Of a deep model the first layers stand for all: every operator occurs in them, and providers differ by rate, not by depth.
 */
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { largest } from '../metrics/extremes.js';
import { inType, TYPE_TOLERANCE } from '../onnx/compute-type.js';
import { computeType } from '../onnx/provider-types.js';
import type { ComputeType, DTypeSetting } from '../onnx/compute-type.js';
import { chooseProvider } from '../onnx/providers.js';
import type { ProviderChoice, Trial } from '../onnx/providers.js';
import { readPlacements } from '../onnx/placements.js';
import type { Placement } from '../onnx/placements.js';
import type { ExecutionProvider, Tensor } from '../onnx/session.js';
import { seededRandom } from '../metrics/random.js';
import { initialAdapter, TARGET_MODULES } from './adapter.js';
import type { Adapter } from './adapter.js';
import { openCheckpoint, storedType } from './checkpoint.js';
import type { DecoderConfig } from './config.js';
import { Engine, typeChoice } from './engine.js';
import type { EngineSettings } from './engine.js';
import { gaussian } from './gaussian.js';
import { padRows } from './padding.js';
import type { Completion, RolloutRequest } from './request-checks.js';
import type { PolicyBatch } from './trainer.js';

const MOST_LAYERS = 4;
const PROMPTS = 2;
const PROMPT_TOKENS = 6;
const PER_PROMPT = 4;
const NEW_TOKENS = 10;
const LAYOUT = { rank: 8, alpha: 16, targets: TARGET_MODULES };

export interface StepTrial {
  readonly provider: ExecutionProvider;
  /** What the model's large products were computed in; cpu's, that are compared with, in float32. */
  readonly dtype: ComputeType;
  /** Worst difference from cpu's gradient, relative to its largest entry, over all factors of the adapter. */
  readonly gradientError: number;
  /** Worst difference of a rollout's log-probability from cpu's update, nats. */
  readonly logProbError: number;
  /** Of a rollout and an update, when everything has been compiled. */
  readonly milliseconds: number;
  /** Where each node of the rollout and the update ran; empty unless asked for. */
  readonly placements: readonly Placement[];
}

/** Whether a provider's step is cpu's, within its type's tolerance. A NaN is not. */
export function isRight({ dtype, gradientError, logProbError }: StepTrial): boolean {
  return gradientError <= TYPE_TOLERANCE[dtype] && logProbError <= TYPE_TOLERANCE[dtype];
}

/** Tries of one model, with cpu's update to compare with. */
export class ModelTrial {
  readonly #folder: string;
  readonly #threads: number;
  readonly #config: DecoderConfig;
  readonly #adapter: Adapter;
  readonly #reference: Engine;
  readonly #temporary: string[];

  private constructor(whole: string, folder: string, threads: number, reference: Engine) {
    this.#folder = folder;
    this.#temporary = folder === whole ? [] : [folder];
    this.#threads = threads;
    this.#config = openCheckpoint(folder).config;
    this.#adapter = trialAdapter(this.#config);
    this.#reference = reference;
  }

  static async open(folder: string, threads: number): Promise<ModelTrial> {
    return new ModelTrial(folder, firstLayers(folder), threads, await Engine.create({ provider: 'cpu', threads }));
  }

  /** @throws what ONNX Runtime throws where the provider cannot run the model. */
  async try(provider: ExecutionProvider, setting: DTypeSetting = 'auto', withPlacements = false): Promise<StepTrial> {
    const dtype = computeType({ dtype: setting, stored: () => storedType(openCheckpoint(this.#folder)) }, provider);
    const profile = withPlacements ? mkdtempSync(join(tmpdir(), 'propel-placements-')) : undefined;
    try {
      const measured = await this.#measure(provider, dtype, profile);
      return { ...measured, placements: profile === undefined ? [] : readPlacements(profile) };
    } finally {
      if (profile !== undefined) rmSync(profile, { recursive: true, force: true });
    }
  }

  async #measure(
    provider: ExecutionProvider,
    dtype: ComputeType,
    profile: string | undefined,
  ): Promise<Omit<StepTrial, 'placements'>> {
    const engine = await Engine.create({ provider, dtype, threads: this.#threads, profile });
    try {
      const request = trialRequest(this.#config, this.#adapter);
      const completions = await engine.rollout(this.#folder, request);
      const written = trialBatch(request, completions);
      // The ratio to the rollout's log-probabilities, which are rounded, would multiply cpu's gradients and not the provider's.
      const batch = dtype === 'float32' ? written : { ...written, oldLogProbs: null };
      const update = await this.#updateOf(engine, batch);
      const { gradients } = await update();
      const expected = await (await this.#updateOf(this.#reference, batch))();
      const began = performance.now();
      await engine.rollout(this.#folder, request);
      await update();
      const milliseconds = performance.now() - began;
      const gradientError = worstError(gradients, expected.gradients);
      const logProbError = rolloutError(completions, expected.logProbs);
      return { provider, dtype, gradientError, logProbError, milliseconds };
    } finally {
      await engine.close();
    }
  }

  /** An update of a batch, to be done any number of times: compiled here, not there. */
  async #updateOf(
    engine: Engine,
    batch: PolicyBatch,
  ): Promise<() => Promise<{ gradients: Map<string, Tensor>; logProbs: Float32Array }>> {
    const loss = { tokens: batch.batch * NEW_TOKENS, clip: 0.2, kl: 0.1, entropy: 0.01 };
    const trainer = await engine.createTrainer(this.#folder, LAYOUT, this.#adapter.factors);
    return async () => {
      const { logProbs } = await engine.accumulate(trainer, batch, loss);
      return { gradients: engine.takeGradients(trainer), logProbs };
    };
  }

  async release(): Promise<void> {
    await this.#reference.close();
    for (const folder of this.#temporary) rmSync(folder, { recursive: true, force: true });
  }
}

/** A folder of the checkpoint's first layers, which is the folder itself where it has no more; the weights are links. */
function firstLayers(folder: string): string {
  if (openCheckpoint(folder).config.layers <= MOST_LAYERS) return folder;
  const cut = mkdtempSync(join(tmpdir(), 'propel-trial-'));
  const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')) as Record<string, unknown>;
  writeFileSync(join(cut, 'config.json'), JSON.stringify({ ...config, num_hidden_layers: MOST_LAYERS }));
  for (const file of readdirSync(folder).filter((name) => /\.safetensors(\.index\.json)?$/.test(name))) {
    symlinkSync(realpathSync(join(folder, file)), join(cut, file));
  }
  return cut;
}

/** The provider of an engine: the one that is named, or of those that work the fastest at the step of `settings.model`. */
export async function chooseEngineProvider(settings: EngineSettings): Promise<ProviderChoice> {
  const { provider, dtype, model, threads } = settings;
  const types = typeChoice(settings);
  if (provider !== 'auto' || model === undefined) return chooseProvider(provider, null, types);
  let trial: ModelTrial | undefined;
  try {
    const tryModel = async (candidate: ExecutionProvider): Promise<Trial> => {
      trial ??= await ModelTrial.open(model, threads);
      const result = await trial.try(candidate, dtype);
      const { milliseconds } = result;
      const right = isRight(result);
      const detail = right ? `a step of the model takes ${milliseconds.toFixed(0)} ms` : describeErrors(result);
      return { milliseconds: right ? milliseconds : null, detail: inType(result.dtype, detail) };
    };
    return await chooseProvider(provider, tryModel, types);
  } finally {
    await trial?.release();
  }
}

function describeErrors({ gradientError, logProbError }: StepTrial): string {
  const [gradients, logProbs] = [gradientError, logProbError].map((error) => error.toExponential(1));
  return `the model's gradients differ from cpu's by ${gradients} relative, log-probabilities by ${logProbs}`;
}

/** Both factors random: with a B of zeros no gradient would reach A. */
function trialAdapter(config: DecoderConfig): Adapter {
  const { layout, factors } = initialAdapter(config, LAYOUT, 1);
  const random = seededRandom('trial adapter');
  const filled = [...factors].map(([name, { shape, data }]): [string, Tensor] => [
    name,
    { shape, data: name.endsWith('lora_B') ? gaussian(random, data.length, 0.02) : data },
  ]);
  return { layout, factors: new Map(filled) };
}

function trialRequest(config: DecoderConfig, adapter: Adapter): RolloutRequest {
  const random = seededRandom('trial prompts');
  const prompts = Array.from({ length: PROMPTS }, () =>
    Array.from({ length: PROMPT_TOKENS }, () => Math.floor(random() * config.vocabulary)),
  );
  return { prompts, perPrompt: PER_PROMPT, maxNewTokens: NEW_TOKENS, temperature: 1, stops: [], seed: 1, adapter };
}

/** The completions as a batch: rewards alternate, and the reference is off by a constant, so that no term of the loss vanishes. */
function trialBatch({ prompts, perPrompt }: RolloutRequest, completions: readonly Completion[]): PolicyBatch {
  const rows = completions.map(({ tokens }, i) => [...prompts[Math.floor(i / perPrompt)]!, ...tokens]);
  const [batch, time] = [rows.length, rows[0]!.length - 1];
  const written = (f: (row: number, step: number) => number) =>
    Float32Array.from({ length: batch * time }, (_, i) => {
      const step = (i % time) - (PROMPT_TOKENS - 1);
      return step < 0 ? 0 : f(Math.floor(i / time), step);
    });
  return {
    batch,
    time,
    ids: padRows(
      rows.map((row) => row.slice(0, -1)),
      time,
    ),
    labels: padRows(
      rows.map((row) => row.slice(1)),
      time,
    ),
    mask: written(() => 1),
    advantages: written((row) => (row % 2 ? 1 : -1)),
    oldLogProbs: written((row, step) => completions[row]!.logProbs[step]!),
    referenceLogProbs: written((row, step) => completions[row]!.logProbs[step]! - 0.1),
  };
}

function worstError(actual: ReadonlyMap<string, Tensor>, expected: ReadonlyMap<string, Tensor>): number {
  let worst = 0;
  for (const [name, { data }] of expected) {
    const scale = data.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
    const found = actual.get(name)!.data;
    const error = data.reduce((most, x, i) => Math.max(most, Math.abs(x - found[i]!)), 0) / scale;
    // Math.max passes a NaN on.
    worst = Math.max(worst, error);
  }
  return worst;
}

function rolloutError(completions: readonly Completion[], updateLogProbs: Float32Array): number {
  const time = updateLogProbs.length / completions.length;
  const errors = completions.flatMap(({ logProbs }, row) =>
    Array.from(logProbs, (logProb, step) => Math.abs(logProb - updateLogProbs[row * time + PROMPT_TOKENS - 1 + step]!)),
  );
  return largest(errors);
}
