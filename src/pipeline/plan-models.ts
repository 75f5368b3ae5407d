/** The models of a plan: what their configurations say, whether or not their weights are here. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readingFault, UserError } from '../errors.js';
import { linearTypes, openCheckpoint } from '../lm/checkpoint.js';
import { parseConfig } from '../lm/config.js';
import type { DecoderConfig } from '../lm/config.js';
import { parseHubModel } from '../lm/hub/cache.js';
import { hubSettings } from '../lm/hub/settings.js';
import type { HubSettings } from '../lm/hub/settings.js';
import type { TensorType } from '../lm/safetensors.js';
import { Tokenizer } from '../lm/tokenizer.js';
import type { Config } from './config.js';
import { knownModel } from './known-models.js';
import { policySetting } from './model-folders.js';
import { baseOf } from './model-setting.js';
import type { ModelSetting } from './model-setting.js';
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
  /** Element types of the linear maps: as stored, else as `assumed` says; null where nothing tells. */
  readonly types: readonly TensorType[] | null;
  /** What is taken for granted of a model whose weights are not here; null where they are. */
  readonly assumed: string | null;
  readonly problem: string | null;
}

/** A `config.json` by the model that it is of: its name, or a role of its (`policy`); under `null` for all that are not here. */
export type GivenConfigs = ReadonlyMap<string | null, string>;

/**
 * Open what is there of every model of a configuration; nothing is fetched.
 * @param given the `config.json` of models that are not here
 * @throws UserError for a `config.json` that cannot be used, or that is given for a model which the configuration does not name
 */
export async function planModels(
  { models, arms }: Pick<Config, 'models' | 'arms'>,
  given: GivenConfigs,
  settings: HubSettings = hubSettings(),
): Promise<PlannedModel[]> {
  const named = new Map<string, string[]>();
  const add = (model: ModelSetting | null | undefined, setting: string) => {
    const name = model ? baseOf(model) : null;
    if (name) named.set(name, [...(named.get(name) ?? []), setting]);
  };
  for (const role of ['policy', 'reference', 'solver'] as const) add(models[role], `models.${role}`);
  for (const [arm, { policy }] of Object.entries(arms)) add(policy, policySetting(arm));
  const keysOf = (name: string, by: readonly string[]) => [
    name,
    ...by,
    ...by.map((setting) => setting.replace(/^models\./, '')),
  ];
  const keys = new Set([...named].flatMap(([name, by]) => keysOf(name, by)));
  const stranger = [...given.keys()].find((key) => key !== null && !keys.has(key));
  if (stranger !== undefined) {
    throw new UserError(`--config ${stranger}: the configuration names ${[...named.keys()].join(', ')}`);
  }
  return Promise.all(
    [...named].map(([name, by]) => {
      const own = keysOf(name, by).find((key) => given.has(key));
      return planModel(
        name,
        by,
        { own: own === undefined ? null : given.get(own)!, rest: given.get(null) ?? null },
        settings,
      );
    }),
  );
}

async function planModel(
  name: string,
  by: readonly string[],
  given: { readonly own: string | null; readonly rest: string | null },
  hub: HubSettings,
): Promise<PlannedModel> {
  const unknown = { name, settings: by, config: null, tokenizer: null, types: null, assumed: null };
  if (given.own !== null) return { ...unknown, ...givenModel(given.own), problem: null };
  let folder: string;
  try {
    folder = findModel(name, by[0]!, hub);
  } catch (cause) {
    if (!(cause instanceof UserError)) throw cause;
    if (given.rest !== null) return { ...unknown, ...givenModel(given.rest), problem: null };
    const known = knownModel(name);
    if (known === null) return { ...unknown, problem: howToGet(name, cause.message, hub) };
    const assumed = `the published sizes of ${known.title}, in bfloat16`;
    return { ...unknown, config: known.config, types: ['BF16'], assumed, problem: null };
  }
  const tokenizer = existsSync(join(folder, 'tokenizer.json')) ? await Tokenizer.open(folder) : null;
  const types = weightTypes(folder);
  const described = givenModel(join(folder, 'config.json'));
  if (types === null) return { name, settings: by, ...described, tokenizer, problem: null };
  return { name, settings: by, config: described.config, tokenizer, types, assumed: null, problem: null };
}

/** The names of a `config.json`'s `dtype`, before transformers 4.56 `torch_dtype`, and what tensors are called that are of it. */
const NAMED_TYPES: Readonly<Record<string, TensorType>> = { float32: 'F32', float16: 'F16', bfloat16: 'BF16' };

/** What a `config.json`, or a folder that holds one, says of a model. */
function givenModel(path: string): Pick<PlannedModel, 'config' | 'types' | 'assumed'> {
  const file = existsSync(path) && statSync(path).isDirectory() ? join(path, 'config.json') : path;
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new UserError(`${file} ${readingFault(cause)}; give a config.json`, { cause });
  }
  const config = parseConfig(text, file);
  const { dtype, torch_dtype: older } = JSON.parse(text) as {
    readonly dtype?: unknown;
    readonly torch_dtype?: unknown;
  };
  const named = dtype ?? older;
  const stored = typeof named === 'string' ? named.replace(/^torch\./, '') : '';
  const type = Object.hasOwn(NAMED_TYPES, stored) ? NAMED_TYPES[stored] : undefined;
  return type === undefined
    ? { config, types: null, assumed: `${file} as to sizes, and float32, as it names no type that is known` }
    : { config, types: [type], assumed: `${file} as to sizes, and ${stored}, as it says` };
}

/** Null where there are none that a run could open. */
function weightTypes(folder: string): TensorType[] | null {
  try {
    return linearTypes(openCheckpoint(folder));
  } catch (error) {
    if (error instanceof UserError) return null;
    throw error;
  }
}

function howToGet(name: string, message: string, { endpoint }: HubSettings): string {
  const model = parseHubModel(name);
  if (model === null) return message;
  const address = `${endpoint}/${model.id}/resolve/${model.revision}/config.json`;
  return `${message}, or fetch ${address} alone and give it by --config ${name}=config.json`;
}
