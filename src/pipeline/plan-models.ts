/** The models of a plan: what their configurations say, whether or not their weights are here. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readingFault, UserError } from '../errors.js';
import { openCheckpoint } from '../lm/checkpoint.js';
import { parseConfig } from '../lm/config.js';
import type { DecoderConfig } from '../lm/config.js';
import { parseHubModel } from '../lm/hub/cache.js';
import { hubSettings } from '../lm/hub/settings.js';
import type { HubSettings } from '../lm/hub/settings.js';
import type { TensorType } from '../lm/safetensors.js';
import { Tokenizer } from '../lm/tokenizer.js';
import type { Config } from './config.js';
import { policySetting } from './model-folders.js';
import { findModel } from './models.js';

/** A model that a configuration names, in all the parts it plays. */
export interface PlannedModel {
  readonly name: string;
  /** The settings that name it: `models.policy`, `arms.transfer.policy`. */
  readonly settings: readonly string[];
  /** Null where nothing says what the model is; `problem` tells how to get that. */
  readonly config: DecoderConfig | null;
  /** Null where it is not here. */
  readonly tokenizer: Tokenizer | null;
  /** Element types of the weights; null where they are not here. */
  readonly types: readonly TensorType[] | null;
  readonly problem: string | null;
}

/**
 * Open what is there of every model of a configuration; nothing is fetched.
 * @param given model → its `config.json`, for models that are not here
 * @throws UserError for a `config.json` that cannot be used, or that is given for a model which the configuration does not name
 */
export async function planModels(
  { models, arms }: Pick<Config, 'models' | 'arms'>,
  given: ReadonlyMap<string, string>,
  settings: HubSettings = hubSettings(),
): Promise<PlannedModel[]> {
  const named = new Map<string, string[]>();
  const add = (name: string | null | undefined, setting: string) => {
    if (name) named.set(name, [...(named.get(name) ?? []), setting]);
  };
  for (const role of ['policy', 'reference', 'solver'] as const) add(models[role], `models.${role}`);
  for (const [arm, { policy }] of Object.entries(arms)) add(policy, policySetting(arm));
  const stranger = [...given.keys()].find((name) => !named.has(name));
  if (stranger !== undefined) {
    throw new UserError(`--model-config ${stranger}: the configuration names ${[...named.keys()].join(', ')}`);
  }
  return Promise.all([...named].map(([name, by]) => planModel(name, by, given.get(name), settings)));
}

async function planModel(
  name: string,
  by: readonly string[],
  given: string | undefined,
  hub: HubSettings,
): Promise<PlannedModel> {
  const unknown = { name, settings: by, config: null, tokenizer: null, types: null };
  if (given !== undefined) return { ...unknown, config: readGiven(given), problem: null };
  let folder: string;
  try {
    folder = findModel(name, by[0]!, hub);
  } catch (cause) {
    if (!(cause instanceof UserError)) throw cause;
    return { ...unknown, problem: howToGet(name, cause.message, hub) };
  }
  const config = readGiven(join(folder, 'config.json'));
  const tokenizer = existsSync(join(folder, 'tokenizer.json')) ? await Tokenizer.open(folder) : null;
  return { name, settings: by, config, tokenizer, types: weightTypes(folder), problem: null };
}

/** A `config.json`, or a folder that holds one. */
function readGiven(path: string): DecoderConfig {
  const file = existsSync(path) && statSync(path).isDirectory() ? join(path, 'config.json') : path;
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new UserError(`${file} ${readingFault(cause)}; give a config.json`, { cause });
  }
  return parseConfig(text, file);
}

function weightTypes(folder: string): TensorType[] | null {
  try {
    return [...new Set([...openCheckpoint(folder).entries.values()].map(({ type }) => type))].toSorted();
  } catch (error) {
    if (error instanceof UserError) return null;
    throw error;
  }
}

function howToGet(name: string, message: string, { endpoint }: HubSettings): string {
  const model = parseHubModel(name);
  if (model === null) return message;
  const address = `${endpoint}/${model.id}/resolve/${model.revision}/config.json`;
  return `${message}, or fetch ${address} alone and give it by --model-config ${name}=config.json`;
}
