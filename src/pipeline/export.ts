/** A trained generator out of its run folder: the adapter as a PEFT folder, or merged into a plain checkpoint. */
import { chmodSync, copyFileSync, existsSync, mkdtempSync, readdirSync } from 'node:fs';
import { renameSync, rmdirSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { UserError } from '../errors.js';
import { modelHash, readAdapter, writeAdapter } from '../lm/adapter-folder.js';
import { checkpointHash, openCheckpoint } from '../lm/checkpoint.js';
import { hubNameOf } from '../lm/hub/cache.js';
import { writeMergedWeights } from '../lm/merge.js';
import { WEIGHTS_INDEX } from '../lm/weight-files.js';
import { makeFolder, sha256OfFile } from '../store/files.js';
import type { CheckpointRow, Run } from '../store/rows.js';
import { withStoreErrors } from '../store/sqlite-errors.js';
import { RunStore } from '../store/store.js';
import { verifiedCheckpoint } from './checkpoints.js';
import type { Config } from './config.js';
import { placeOf, policySetting } from './model-folders.js';
import type { ModelHashes } from './model-folders.js';
import { evaluatedCheckpoint } from './training-end.js';

/** What a checkpoint has beside its weights, as far as the base has it. */
const SMALL_FILES = [
  'config.json',
  'generation_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'special_tokens_map.json',
  'added_tokens.json',
  'vocab.json',
  'merges.txt',
  'tokenizer.model',
  'chat_template.jinja',
  WEIGHTS_INDEX,
];
const FILE_MODE = 0o644;

export interface ExportOptions {
  /** The run's folder. */
  readonly run: string;
  readonly arm: string;
  /** A step that has a checkpoint; undefined: the one that is measured, while training goes on the last one. */
  readonly step?: number | undefined;
  /** Where to write; a folder that is there already must be empty. */
  readonly out: string;
  /** A plain checkpoint instead of a PEFT folder. */
  readonly merge: boolean;
}

export interface ExportedFile {
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** Part of `propel export --json`. */
export interface Exported {
  readonly arm: string;
  readonly step: number;
  /** Whether the arm's training has ended, so that what was evaluated is known. */
  readonly trained: boolean;
  readonly kind: 'adapter' | 'checkpoint';
  /** The model that the adapter belongs to: its hub id, or its folder. */
  readonly base: string;
  readonly folder: string;
  /** Of a plain checkpoint: what a probe's card and a run's record call the model; null for an adapter. */
  readonly modelHash: string | null;
  readonly files: readonly ExportedFile[];
}

/** @throws UserError when there is no such run, arm or checkpoint, a file is not the run's own, or the folder holds anything */
export function exportGenerator({ run: folder, arm, step, out, merge }: ExportOptions): Exported {
  const target = resolve(out);
  if (existsSync(target) && (!statSync(target).isDirectory() || readdirSync(target).length > 0))
    throw new UserError(`${target} is there already: nothing is overwritten; give another folder with --out`);
  const store = RunStore.read(folder);
  try {
    const run = store.run();
    if (run === null) throw new UserError(`${folder} holds no run yet: start one with 'propel run'`);
    const row = findCheckpoint(store, run, arm, step);
    const source = verifiedCheckpoint({ store }, row);
    const base = basePolicy(run, folder, arm);
    writeFolder(target, (to) => {
      if (merge) writeCheckpointFiles(base, source, to);
      else writeAdapter(to, readAdapter(source, openCheckpoint(base).config), hubNameOf(base) ?? base);
    });
    return {
      arm,
      step: row.step,
      trained: store.phaseFinished('train-generator', arm),
      kind: merge ? 'checkpoint' : 'adapter',
      base: hubNameOf(base) ?? base,
      folder: target,
      modelHash: merge ? checkpointHash(target) : null,
      files: filesOf(target),
    };
  } finally {
    store.close();
  }
}

function findCheckpoint(store: RunStore, run: Run, arm: string, step: number | undefined): CheckpointRow {
  const checkpoints = store.checkpoints(arm);
  if (checkpoints.length === 0) {
    const arms = Object.keys(run.config['arms'] as unknown as Config['arms']);
    const some = arms.filter((name) => store.checkpoints(name).length > 0);
    const have = some.length > 0 ? `those that have one: ${some.join(', ')}` : 'no arm of the run has one yet';
    throw new UserError(
      arms.includes(arm)
        ? `arm ${arm} has no checkpoint; ${have}`
        : `the run has no arm '${arm}', but ${arms.join(', ')}`,
    );
  }
  const steps = checkpoints.map((checkpoint) => checkpoint.step).join(', ');
  if (step === undefined) {
    if (!store.phaseFinished('train-generator', arm)) return checkpoints.at(-1)!;
    const evaluated = evaluatedCheckpoint({ config: run.config as unknown as Config, store }, arm);
    if (evaluated !== null) return evaluated;
    throw new UserError(
      `arm ${arm}: its training collapsed before there was a checkpoint to trust, and what was measured is the untrained generator; ` +
        `--step exports one all the same: ${steps}`,
    );
  }
  const found = checkpoints.find((checkpoint) => checkpoint.step === step);
  if (found !== undefined) return found;
  throw new UserError(`arm ${arm} has no checkpoint of step ${step}, but of ${steps}`);
}

/** The folder of the model that an arm was trained from. @throws UserError when it is no longer what the run began with */
function basePolicy({ config }: Run, run: string, arm: string): string {
  const { models, arms, modelHashes, policyHashes } = config as unknown as Config & ModelHashes;
  const own = arms[arm]?.policy;
  const setting = own === undefined ? 'models.policy' : policySetting(arm);
  const { folder, adapter } = placeOf(own ?? models.policy, setting);
  const begun = own === undefined ? modelHashes.policy : policyHashes[arm];
  if (modelHash(folder, adapter) === begun) return folder;
  throw new UserError(`${folder} is not the policy that ${run} was run with: its weights have changed`);
}

/** A folder that appears whole or not at all: it is made beside its place. */
export function writeFolder(target: string, write: (to: string) => void): void {
  withStoreErrors(target, () => {
    const parent = dirname(target);
    makeFolder(parent);
    const made = mkdtempSync(join(parent, `.${basename(target)}-`));
    try {
      write(made);
      chmodSync(made, 0o755);
      if (existsSync(target)) rmdirSync(target);
      renameSync(made, target);
    } catch (error) {
      rmSync(made, { recursive: true, force: true });
      throw error;
    }
  });
}

/** The small files of a base, and its weights with the adapter of the folder `source` merged into them. */
export function writeCheckpointFiles(base: string, source: string, to: string): void {
  const { config } = openCheckpoint(base);
  for (const file of SMALL_FILES) {
    if (!existsSync(join(base, file))) continue;
    copyFileSync(join(base, file), join(to, file));
    chmodSync(join(to, file), FILE_MODE);
  }
  writeMergedWeights(base, readAdapter(source, config), to);
}

/** With their sizes and hashes. */
export function filesOf(folder: string): ExportedFile[] {
  return readdirSync(folder)
    .toSorted()
    .map((file) => {
      const path = join(folder, file);
      return { file, bytes: statSync(path).size, sha256: sha256OfFile(path) };
    });
}
