/** A probe on disk: `NAME.safetensors` with its numbers and `NAME.json`, its card. */
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { inOneLine, UserError } from '../errors.js';
import { POOLINGS } from '../lm/request-checks.js';
import { readTensors, writeTensors } from '../lm/safetensors.js';
import type { Tensor } from '../onnx/session.js';
import { sha256OfFile, writeFileAtomic } from '../store/files.js';
import { HEADS, headShape } from './count-head.js';
import { probeDoubts } from './doubts.js';
import type { Doubt } from './doubts.js';
import type { ReferenceModel } from './features.js';
import { Probe } from './probe.js';

const interval = z.tuple([z.number(), z.number()]).readonly();
const estimate = z.strictObject({ value: z.number(), interval });
const heldOut = z.strictObject({
  auroc: estimate,
  averagePrecision: estimate,
  calibrationError: estimate,
  brier: estimate,
  reliability: z.array(z.strictObject({ count: z.int(), predicted: z.number(), observed: z.number() })).readonly(),
});
const choice = z.strictObject({ head: z.enum(HEADS), l2: z.number(), validationLoss: z.number() });
const spec = z
  .array(z.strictObject({ layer: z.int().min(0), pooling: z.enum(POOLINGS) }))
  .min(1)
  .readonly();

const nullable = z.number().nullable();
const edits = z.strictObject({
  tasks: z.int().positive(),
  perTask: z.int().positive(),
  rise: estimate,
  lifted: z.strictObject({ count: z.int(), of: z.int(), interval }),
  kinds: z
    .array(
      z.strictObject({
        kind: z.string(),
        tried: z.int(),
        kept: z.int(),
        mean: nullable,
        least: nullable,
        most: nullable,
      }),
    )
    .readonly(),
});

const cardSchema = z.strictObject({
  format: z.literal('propel-probe-1'),
  name: z.string(),
  model: z.strictObject({ name: z.string(), hash: z.string() }),
  /** The tasks that it was trained on, as the domain names their types and notation; a card without says neither. */
  domain: z.strictObject({ types: z.array(z.string()).min(1).readonly(), notation: z.string() }).optional(),
  features: spec,
  /** Columns that each feature contributes. */
  width: z.int().positive(),
  head: z.enum(HEADS),
  /** Attempts a task. */
  k: z.int().positive(),
  band: z.strictObject({ min: z.int(), max: z.int() }),
  l2: z.number(),
  /** Every candidate with its best penalty, best first; the loss is the band's mean −log P on the validation part. */
  candidates: z.array(z.strictObject({ ...choice.shape, features: spec })).readonly(),
  tasks: z.strictObject({ train: z.int(), validation: z.int(), test: z.int() }),
  /** Whether the training part was drawn with replacement. */
  resampled: z.boolean(),
  /** Share of all labelled tasks that are in band. */
  baseRate: z.number(),
  heldOut,
  baselines: z.strictObject({
    length: z.strictObject({ ...choice.shape, heldOut }),
    ngram: z.strictObject({ ...choice.shape, heldOut }),
  }),
  /** How far edits of a held-out task's text that leave its answer as it was move the logit; absent where they were not searched. */
  edits: edits.optional(),
  /** What speaks against rewarding by it, a line each; absent where nothing does. */
  warnings: z.array(z.string()).readonly().optional(),
  seed: z.number(),
  versions: z.record(z.string(), z.string()),
});

export type ProbeCard = z.infer<typeof cardSchema>;

/** What speaks against rewarding by a probe, by the figures of its card. */
export function doubtsOf({
  heldOut: measured,
  baselines,
  tasks,
}: Pick<ProbeCard, 'heldOut' | 'baselines' | 'tasks'>): Doubt[] {
  const { length, ngram } = baselines;
  return probeDoubts(measured, { length: length.heldOut, ngram: ngram.heldOut }, tasks.test);
}

/** What a reader of a probe's numbers must know: how they are laid out. */
export type ProbeLayout = Pick<ProbeCard, 'features' | 'width' | 'head' | 'k' | 'band'>;

/** Write a probe into a folder. @returns the weights' path and the SHA-256 that the card seals them with. */
export function saveProbe(folder: string, probe: Probe, card: ProbeCard): { path: string; sha256: string } {
  const path = join(folder, `${card.name}.safetensors`);
  const sha256 = writeProbeNumbers(path, probe);
  writeFileAtomic(cardPath(path), `${JSON.stringify({ ...card, weightsSha256: sha256 }, null, 2)}\n`);
  return { path, sha256 };
}

/** Write a probe's numbers alone, whole or not at all. @returns the file's SHA-256. */
export function writeProbeNumbers(path: string, probe: Probe): string {
  const { weights, offsets, standardisation } = probe.head;
  const vector = (data: Float32Array): Tensor => ({ shape: [data.length], data });
  const { outputs } = headShape(probe.head.kind, probe.head.k);
  writeTensors(
    path,
    new Map([
      ['weights', { shape: [outputs, weights.length / outputs], data: weights }],
      ['offsets', vector(offsets)],
      ['mean', vector(standardisation.mean)],
      ['sd', vector(standardisation.sd)],
      ['logit_scale', vector(Float32Array.of(probe.scale.mean, probe.scale.sd))],
    ]),
  );
  return sha256OfFile(path);
}

/**
 * Read a probe for the reference model that it is to be used with.
 * @throws UserError when a file is missing or corrupt, the two do not belong together, or the probe was trained on another model.
 */
export function loadProbe(
  path: string,
  reference: Pick<ReferenceModel, 'hash' | 'folder'>,
): { probe: Probe; card: ProbeCard } {
  const { weightsSha256, ...card } = readProbeCard(path);
  if (card.model.hash !== reference.hash) {
    throw new UserError(
      `${path}: the probe was trained on model ${card.model.name} (${card.model.hash.slice(0, 12)}), the reference is ` +
        `${basename(reference.folder)} (${reference.hash.slice(0, 12)}); train a probe for it, or set the reference it was trained on`,
    );
  }
  const tensors = readTensors(path);
  if (sha256OfFile(path) !== weightsSha256) {
    throw new UserError(`${path} is not the file that ${cardPath(path)} was written for; train the probe again`);
  }
  return { probe: probeOf(tensors, card, path), card };
}

/** Read a probe's numbers alone. @throws UserError when the file is missing, corrupt, or of another layout. */
export function readProbeNumbers(path: string, layout: ProbeLayout): Probe {
  return probeOf(readTensors(path), layout, path);
}

function probeOf(tensors: ReadonlyMap<string, Tensor>, layout: ProbeLayout, path: string): Probe {
  const columns = layout.features.length * layout.width;
  const shape = headShape(layout.head, layout.k);
  const tensor = (name: string, expected: readonly number[]): Float32Array => {
    const found = tensors.get(name);
    if (found?.shape.join() !== expected.join()) {
      throw new UserError(
        `${path}: tensor '${name}' is [${found?.shape.join() ?? 'missing'}], the card calls for [${expected.join()}]`,
      );
    }
    return found.data;
  };
  const [mean, sd] = tensor('logit_scale', [2]) as unknown as [number, number];
  const head = {
    kind: layout.head,
    k: layout.k,
    band: layout.band,
    standardisation: { mean: tensor('mean', [columns]), sd: tensor('sd', [columns]) },
    weights: tensor('weights', [shape.outputs, columns]),
    offsets: tensor('offsets', [shape.offsets]),
  };
  return new Probe(layout.features, head, { mean, sd });
}

function cardPath(path: string): string {
  return path.replace(/\.safetensors$/, '.json');
}

/** The card beside a probe's numbers. @throws UserError when it is missing or no card. */
export function readProbeCard(weights: string): ProbeCard & { readonly weightsSha256: string } {
  const path = cardPath(weights);
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(path, 'utf8'));
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    throw new UserError(
      code
        ? `${path} cannot be read (${code}): a probe needs its card`
        : `${path} is not valid JSON: ${inOneLine(message)}`,
      { cause },
    );
  }
  const parsed = cardSchema.extend({ weightsSha256: z.string() }).safeParse(json);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0]!;
  throw new UserError(`${path} is not a probe's card: ${issue.path.join('.') || 'document'}: ${issue.message}`);
}
