/** Rates of the last runs on this machine, kept between commands so that a plan can rest on what was measured. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, homedir, loadavg } from 'node:os';
import { join } from 'node:path';
import * as z from 'zod';
import { RunError, UserError } from '../errors.js';
import { writeFileAtomic } from '../store/files.js';
import { armTrain, isTrained } from './arm-config.js';
import type { Config } from './config.js';
import { modelFolders } from './model-folders.js';
import type { RunBasis } from './plan-rates.js';
import { versions } from './versions.js';

/** Runs that are kept, the last ones. */
const MOST_RUNS = 32;

const rate = z.number().positive().nullable();
const share = z.number().min(0).max(1);
const length = z.number().min(0).optional();
const entrySchema = z.strictObject({
  key: z.string(),
  name: z.string(),
  /** When it was kept, as ISO 8601 has it. */
  at: z.string(),
  /** Processes that wanted to run in the quarter of an hour before, on so many processors. */
  load: z.number(),
  processors: z.number(),
  rates: z.strictObject({
    label: rate,
    'train-probe': rate,
    evaluate: rate,
    're-score': rate,
    training: z.record(z.string(), z.number().positive()),
  }),
  expected: z.strictObject({
    validity: z.strictObject({ label: share, train: share, evaluate: share }).optional(),
    taskTokens: length,
    answerTokens: length,
  }),
});
const fileSchema = z.strictObject({ version: z.literal(1), runs: z.array(entrySchema) });
type Entry = z.infer<typeof entrySchema>;

export interface RememberedRun extends RunBasis {
  readonly name: string;
  readonly at: string;
  readonly load: number;
  readonly processors: number;
}

/** The file: in `PROPEL_CACHE`, else in the user's cache; null with an empty `PROPEL_CACHE`, which keeps nothing. */
function ratesFile(env: NodeJS.ProcessEnv = process.env): string | null {
  const cache = env['PROPEL_CACHE'] ?? join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'propel');
  return cache === '' ? null : join(cache, 'rates.json');
}

/** Whether anything is kept at all. */
export const remembersRates = (): boolean => ratesFile() !== null;

/** Keep what a run with this configuration took, in place of what another with the same models and settings did. */
export function rememberRates(config: Config, { rates, expected }: RunBasis): void {
  const file = ratesFile();
  const key = keyOf(config);
  if (file === null || key === null) return;
  const { training, ...others } = rates;
  const entry: Entry = {
    key,
    name: config.name,
    at: new Date().toISOString(),
    load: loadavg()[2]!,
    processors: availableParallelism(),
    rates: { ...others, training: Object.fromEntries(training) },
    expected,
  };
  const runs = [entry, ...readRuns(file).filter((other) => other.key !== key)].slice(0, MOST_RUNS);
  try {
    writeFileAtomic(file, `${JSON.stringify({ version: 1, runs })}\n`);
  } catch (error) {
    // A cache that cannot be written costs the next plan its basis, and no run its end.
    if (!(error instanceof RunError)) throw error;
  }
}

/** What the last run with the same models and settings took on this machine; null where there was none. */
export function rememberedRun(config: Config): RememberedRun | null {
  const file = ratesFile();
  const key = keyOf(config);
  if (file === null || key === null) return null;
  const entry = readRuns(file).find((run) => run.key === key);
  if (entry === undefined) return null;
  const { rates, expected, name, at, load, processors } = entry;
  const { training, ...others } = rates;
  return {
    name,
    at,
    load,
    processors,
    rates: { ...others, training: new Map(Object.entries(training)) },
    expected,
  };
}

/** What is no such file has nothing to say, and is written over. */
function readRuns(file: string): Entry[] {
  try {
    return fileSchema.parse(JSON.parse(readFileSync(file, 'utf8'))).runs;
  } catch {
    return [];
  }
}

/**
 * What a run's rates follow from: the machine, the program, the models, and the settings but for how much there is to do. Null where
 * a model is not here.
 */
function keyOf(config: Config): string | null {
  let models: unknown;
  try {
    const { armPolicies, ...folders } = modelFolders(config);
    models = { ...folders, arms: [...armPolicies.values()] };
  } catch (error) {
    if (error instanceof UserError) return null;
    throw error;
  }
  const { engine, sandbox, domain, band, policy, solver, label, evaluate, probe } = config;
  const trained = Object.values(config.arms).filter(isTrained);
  const training = trained.map((arm) => {
    const { batch, updates, microBatch, microBatchTokens, lora } = armTrain(config.train, arm);
    return JSON.stringify({ reward: arm.reward, batch, updates, microBatch, microBatchTokens, lora });
  });
  const settings = { engine, sandbox, domain, band, policy, solver, probe, batches: [label.batch, evaluate.batch] };
  const { propel, 'onnxruntime-node': runtime } = versions();
  const machine = { processor: cpus()[0]?.model, processors: availableParallelism(), propel, runtime };
  const all = JSON.stringify({ models, settings, training: [...new Set(training)].toSorted(), machine });
  return createHash('sha256').update(all).digest('hex');
}
