/** LoRA adapters as PEFT folders, written and read. Scales with `use_rslora`: α / √r (Kalajdzievski 2023). */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { inOneLine, UserError } from '../errors.js';
import type { Tensor } from '../onnx/session.js';
import { makeFolder, sha256OfFile, writeFileAtomic } from '../store/files.js';
import { factorShapes, linearModules } from './adapter.js';
import type { Adapter, AdapterLayout, ModuleLayout } from './adapter.js';
import { checkpointHash } from './checkpoint.js';
import type { DecoderConfig } from './config.js';
import { parseHubModel } from './hub/cache.js';
import { parseFields, quoted } from './json-file.js';
import { readTensors, writeTensors } from './safetensors.js';

export const ADAPTER_CONFIG = 'adapter_config.json';
export const ADAPTER_WEIGHTS = 'adapter_model.safetensors';
const PREFIX = 'base_model.model.';

/**
 * Write a PEFT folder. `base` names the model that the adapter belongs to: a folder, or a hub id, whose revision PEFT wants apart.
 */
export function writeAdapter(folder: string, adapter: Adapter, base: string): void {
  makeFolder(folder);
  const { rank, alpha, modules } = adapter.layout;
  const names = [...adapter.factors.keys()].map((name) => name.split('.').slice(0, -1).join('.'));
  // As the model calls them, which the settings need not; where modules differ, each by all of its name.
  const targets = new Set(modules ? names : names.map((name) => name.split('.').at(-1)!));
  const hub = base.includes('@') ? parseHubModel(base) : null;
  const patternOf = (field: keyof ModuleLayout): object =>
    Object.fromEntries(Object.entries(modules ?? {}).map(([name, own]) => [name, own[field]]));
  const config = {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    base_model_name_or_path: hub?.id ?? base,
    revision: hub?.revision ?? null,
    r: rank,
    lora_alpha: alpha,
    ...(modules ? { rank_pattern: patternOf('rank'), alpha_pattern: patternOf('alpha') } : {}),
    lora_dropout: 0,
    target_modules: [...targets],
    bias: 'none',
    fan_in_fan_out: false,
    inference_mode: true,
  };
  const tensors = new Map([...adapter.factors].map(([name, t]) => [`${PREFIX}${name}.weight`, t]));
  writeTensors(join(folder, ADAPTER_WEIGHTS), tensors);
  writeFileAtomic(join(folder, ADAPTER_CONFIG), `${JSON.stringify(config, null, 2)}\n`);
}

const rank = z
  .int()
  .positive()
  .max(2 ** 24);
const configSchema = z.looseObject({
  peft_type: z.literal('LORA'),
  r: rank,
  lora_alpha: z.number().positive(),
  /** Names, or a pattern of them. */
  target_modules: z.union([z.string(), z.array(z.string()).nonempty()]),
  exclude_modules: z.union([z.string(), z.array(z.string())]).nullish(),
  layers_to_transform: z.union([z.int(), z.array(z.int())]).nullish(),
  /** Of modules whose names a pattern matches. */
  rank_pattern: z.record(z.string(), rank).nullish(),
  alpha_pattern: z.record(z.string(), z.number().positive()).nullish(),
  use_rslora: z.boolean().default(false),
  bias: z.literal('none').optional(),
  // Others start from weights of the base that they have changed.
  init_lora_weights: z.union([z.boolean(), z.enum(['gaussian', 'orthogonal', 'eva'])]).optional(),
});
type PeftConfig = z.output<typeof configSchema>;

/** Settings that say nothing of what a written adapter computes, or only in company of one that is refused. */
const HARMLESS: ReadonlySet<string> = new Set([
  ...Object.keys(configSchema.shape),
  'auto_mapping',
  'base_model_name_or_path',
  'ensure_weight_tying',
  'eva_config',
  'fan_in_fan_out',
  'inference_mode',
  'lora_dropout',
  'megatron_core',
  'peft_version',
  'qalora_group_size',
  'revision',
  'runtime_config',
  'task_type',
]);

/** A setting that is on and unknown here: `use_dora`, `alora_invocation_tokens`, and whatever comes next. */
function otherSetting(json: Readonly<Record<string, unknown>>): string | undefined {
  const isOff = (value: unknown): boolean =>
    value === null || value === false || (typeof value === 'object' && Object.keys(value).length === 0);
  return Object.keys(json).find((key) => !HARMLESS.has(key) && !isOff(json[key]));
}

/** Read a PEFT folder for a model. @throws UserError when a file is missing, corrupt, of another kind, or does not fit the model. */
export function readAdapter(folder: string, config: DecoderConfig): Adapter {
  const file = join(folder, ADAPTER_CONFIG);
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    throw new UserError(`${file} cannot be read as JSON: ${inOneLine((cause as Error).message)}`, { cause });
  }
  const only = 'only plain LoRA adapters are supported';
  const peft = parseFields(configSchema, json, file, only);
  const other = otherSetting(json as Record<string, unknown>);
  if (other !== undefined) throw new UserError(`${file}: ${inOneLine(other)} is not supported; ${only}`);
  const weights = join(folder, ADAPTER_WEIGHTS);
  const tensors = readTensors(weights);
  // A pattern may stand for modules that were not trained: PEFT begins those anew, as the identity.
  const isHeld = (name: string): boolean =>
    typeof peft.target_modules !== 'string' || tensors.has(`${PREFIX}${name}.lora_A.weight`);
  const layout = layoutOf(peft, config, isHeld, (what) => {
    throw new UserError(`${file}: ${what}`);
  });
  const factors = new Map<string, Tensor>();
  for (const [name, shape] of factorShapes(config, layout)) {
    const tensor = tensors.get(`${PREFIX}${name}.weight`);
    if (!tensor)
      throw new UserError(`${weights} has no tensor '${PREFIX}${name}.weight': the adapter belongs to another model`);
    if (tensor.shape.join() !== shape.join()) {
      throw new UserError(
        `${weights}: '${name}' has shape [${tensor.shape.join()}], the model calls for [${shape.join()}]`,
      );
    }
    factors.set(name, tensor);
  }
  const extra = [...tensors.keys()].find((name) => !factors.has(name.slice(PREFIX.length, -'.weight'.length)));
  if (extra)
    throw new UserError(
      `${weights} holds '${inOneLine(extra)}', which adapter_config.json does not call for in this model`,
    );
  return { layout, factors };
}

/** Every linear map but the head. */
const ALL_LINEAR = 'all-linear';

/** SHA-256 of a checkpoint, and of the adapter on it where there is one: what a probe's card and a run's record call the model. */
export function modelHash(folder: string, adapter: string | null): string {
  const base = checkpointHash(folder);
  if (adapter === null) return base;
  const parts = [ADAPTER_CONFIG, ADAPTER_WEIGHTS].map((file) => sha256OfFile(join(adapter, file)));
  return createHash('sha256')
    .update([base, ...parts].join('\n'))
    .digest('hex');
}

type Refuse = (what: string) => never;

/** The modules that PEFT adapts by these settings, with their ranks and scales; as a plain layout where they are alike in all layers. */
function layoutOf(
  peft: PeftConfig,
  config: DecoderConfig,
  isHeld: (name: string) => boolean,
  refuse: Refuse,
): AdapterLayout {
  const all = [...linearModules(config).keys()];
  const short = (name: string): string => name.split('.').at(-1)!;
  const names = [...new Set(all.map(short))];
  const { target_modules: targets, exclude_modules: excluded } = peft;
  if (typeof targets !== 'string') {
    const unknown = targets.find((target) => !target.includes('.') && !names.includes(target));
    if (unknown !== undefined) refuse(`target_modules: ${quotedName(unknown)} is not one of ${names.join(', ')}`);
  }
  const isTarget = targets === ALL_LINEAR ? () => true : namedBy(targets, 'target_modules', refuse);
  const isExcluded = excluded?.length ? namedBy(excluded, 'exclude_modules', refuse) : () => false;
  const layers = peft.layers_to_transform ?? null;
  const inLayer = (name: string): boolean => layers === null || [layers].flat().includes(Number(name.split('.')[2]));
  const adapted = all.filter((name) => isTarget(name) && !isExcluded(name) && inLayer(name) && isHeld(name));
  if (adapted.length === 0) refuse(`target_modules: ${quoted(targets)} names none of ${names.join(', ')}`);
  const rankOf = patternValue(peft.rank_pattern ?? {}, 'rank_pattern', peft.r, refuse);
  const alphaOf = patternValue(peft.alpha_pattern ?? {}, 'alpha_pattern', peft.lora_alpha, refuse);
  const own = (name: string): ModuleLayout => scaled(rankOf(name), alphaOf(name), peft.use_rslora);
  const modules = Object.fromEntries(adapted.map((name) => [name, own(name)]));
  const plain = scaled(peft.r, peft.lora_alpha, peft.use_rslora);
  // In the order that the file has them.
  const whole = names.filter((name) => adapted.some((one) => short(one) === name));
  const listed = typeof targets === 'string' ? [] : targets.filter((target) => whole.includes(target));
  const named = listed.length === whole.length ? listed : whole;
  const isPlain =
    adapted.length === whole.length * config.layers &&
    Object.values(modules).every(({ rank: r, alpha }) => r === plain.rank && alpha === plain.alpha);
  return { ...plain, targets: named, ...(isPlain ? {} : { modules }) };
}

const scaled = (r: number, alpha: number, isStabilised: boolean): ModuleLayout => ({
  rank: r,
  alpha: isStabilised ? alpha * Math.sqrt(r) : alpha,
});

const quotedName = (name: string): string => `'${inOneLine(name)}'`;

/** Which modules a list of names, or of ends of names, or a pattern of whole names stands for. */
function namedBy(names: string | readonly string[], setting: string, refuse: Refuse): (name: string) => boolean {
  if (typeof names !== 'string') return (name) => names.some((one) => name === one || name.endsWith(`.${one}`));
  const pattern = compiled(names, `^(?:${names})$`, setting, refuse);
  return (name) => pattern.test(name);
}

/** The value of the first pattern that matches a module's name, or its end from a point on. */
function patternValue(
  patterns: Readonly<Record<string, number>>,
  setting: string,
  fallback: number,
  refuse: Refuse,
): (name: string) => number {
  const compiledPatterns = Object.entries(patterns).map(
    ([key, value]) => [compiled(key, `^(?:.*\\.)?(?:${key})$`, setting, refuse), value] as const,
  );
  return (name) => compiledPatterns.find(([pattern]) => pattern.test(name))?.[1] ?? fallback;
}

/** No pattern of modules is longer; and none needs more than what Python and JavaScript read alike. */
const LONGEST_PATTERN = 500;

function compiled(source: string, whole: string, setting: string, refuse: Refuse): RegExp {
  if (source.length > LONGEST_PATTERN || !/^(?:[\w.*+?|^$[\]{},-]|\\[.dw]|\((?!\?)|\(\?:|\))*$/.test(source))
    return refuse(`${setting}: the pattern ${quoted(source)} is not supported`);
  try {
    return new RegExp(whole);
  } catch {
    return refuse(`${setting}: ${quoted(source)} is no pattern`);
  }
}
