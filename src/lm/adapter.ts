/** LoRA adapters: values passed into a graph, read and written as PEFT folders. Hu et al. 2021, ΔW = (α / r) B A. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { inOneLine, UserError } from '../errors.js';
import { seededRandom } from '../metrics/random.js';
import type { Differentiable } from '../onnx/differentiable.js';
import type { Value } from '../onnx/graph.js';
import type { Tensor } from '../onnx/session.js';
import { makeFolder, writeFileAtomic } from '../store/files.js';
import { projectionShapes } from './config.js';
import type { DecoderConfig } from './config.js';
import type { AdapterValues } from './decoder.js';
import { gaussian } from './gaussian.js';
import { parseHubModel } from './hub/cache.js';
import { parseFields } from './json-file.js';
import { readTensors, writeTensors } from './safetensors.js';

/** Linear modules of a layer by their short names, as PEFT's `target_modules`. */
export const TARGET_MODULES = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj'] as const;

/** Modules that a family holds as one matrix, with their parts. */
const FUSED_MODULES: Readonly<Record<string, readonly string[]>> = {
  qkv_proj: ['q_proj', 'k_proj', 'v_proj'],
  gate_up_proj: ['gate_proj', 'up_proj'],
};

export interface AdapterLayout {
  readonly rank: number;
  readonly alpha: number;
  readonly targets: readonly string[];
}

/** A name for graphs that differ by the adapter's layout. */
export function layoutKey(layout: AdapterLayout | null): string {
  return layout ? `${layout.rank} ${layout.alpha} ${layout.targets.join()}` : 'base';
}

/** Factors by graph name: `model.layers.0.self_attn.q_proj.lora_A` [rank, in] and `….lora_B` [out, rank]. */
export interface Adapter {
  readonly layout: AdapterLayout;
  readonly factors: ReadonlyMap<string, Tensor>;
}

/**
 * The modules of a model that a layout adapts, in the model's own names: where it holds modules as one matrix, all of its parts together
 * stand for it.
 */
function adaptedModules(config: DecoderConfig, layout: AdapterLayout): Set<string> {
  const own = moduleNames(config);
  const asked = new Set(layout.targets);
  const adapted = own.filter((name) => asked.has(name) || FUSED_MODULES[name]?.every((part) => asked.has(part)));
  const covered = new Set(adapted.flatMap((name) => [name, ...(FUSED_MODULES[name] ?? [])]));
  const missing = layout.targets.find((target) => !covered.has(target));
  if (missing === undefined) return new Set(adapted);
  throw new UserError(
    `a ${config.family} model has no module '${missing}' to adapt by itself; its own are ${own.join(', ')}`,
  );
}

function moduleNames(config: DecoderConfig): string[] {
  return [...projectionShapes(config).keys()].map((module) => module.split('.')[1]!);
}

/** Names and shapes of all factors, A before B, in layer order. @throws UserError for a target that the model does not have. */
export function factorShapes(config: DecoderConfig, layout: AdapterLayout): Map<string, [number, number]> {
  const shapes = new Map<string, [number, number]>();
  const adapted = adaptedModules(config, layout);
  for (let layer = 0; layer < config.layers; layer++) {
    for (const [module, [out, into]] of projectionShapes(config)) {
      if (!adapted.has(module.split('.')[1]!)) continue;
      shapes.set(`model.layers.${layer}.${module}.lora_A`, [layout.rank, into]);
      shapes.set(`model.layers.${layer}.${module}.lora_B`, [out, layout.rank]);
    }
  }
  return shapes;
}

/** A fresh adapter: A Gaussian with variance 1 / in, B zero, so that it starts as the identity. */
export function initialAdapter(config: DecoderConfig, layout: AdapterLayout, seed: number): Adapter {
  const random = seededRandom(seed);
  const factors = new Map<string, Tensor>();
  for (const [name, shape] of factorShapes(config, layout)) {
    const size = shape[0] * shape[1];
    const data = name.endsWith('lora_A') ? gaussian(random, size, 1 / Math.sqrt(shape[1])) : new Float32Array(size);
    factors.set(name, { shape, data });
  }
  return { layout, factors };
}

/** The factors as inputs of a graph: differentiable ones of one adapter, or those of several, stacked. */
export function adapterInputs(
  g: Differentiable,
  config: DecoderConfig,
  layout: AdapterLayout,
  adapters: number | null = null,
): { inputs: Map<string, Value>; values: AdapterValues } {
  const inputs = new Map(
    [...factorShapes(config, layout)].map(([name, shape]) => [
      name,
      adapters === null ? g.input(name, shape, 'float32', true) : g.input(name, [adapters, ...shape]),
    ]),
  );
  const factors = new Map<string, { A: Value; B: Value }>();
  for (const [name, A] of inputs) {
    if (!name.endsWith('.lora_A')) continue;
    const module = name.slice(0, -'.lora_A'.length);
    factors.set(module, { A, B: inputs.get(`${module}.lora_B`)! });
  }
  return { inputs, values: { scale: layout.alpha / layout.rank, adapters, factors } };
}

const CONFIG_FILE = 'adapter_config.json';
const WEIGHTS_FILE = 'adapter_model.safetensors';
const PREFIX = 'base_model.model.';

/**
 * Write a PEFT folder. `base` names the model that the adapter belongs to: a folder, or a hub id, whose revision PEFT wants apart.
 */
export function writeAdapter(folder: string, adapter: Adapter, base: string): void {
  makeFolder(folder);
  const { rank, alpha } = adapter.layout;
  // As the model calls them, which the settings need not.
  const targets = [...new Set([...adapter.factors.keys()].map((name) => name.split('.').at(-2)!))];
  const hub = base.includes('@') ? parseHubModel(base) : null;
  const config = {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    base_model_name_or_path: hub?.id ?? base,
    revision: hub?.revision ?? null,
    r: rank,
    lora_alpha: alpha,
    lora_dropout: 0,
    target_modules: targets,
    bias: 'none',
    fan_in_fan_out: false,
    inference_mode: true,
  };
  const tensors = new Map([...adapter.factors].map(([name, t]) => [`${PREFIX}${name}.weight`, t]));
  writeTensors(join(folder, WEIGHTS_FILE), tensors);
  writeFileAtomic(join(folder, CONFIG_FILE), `${JSON.stringify(config, null, 2)}\n`);
}

const configSchema = z.looseObject({
  peft_type: z.literal('LORA'),
  r: z
    .int()
    .positive()
    .max(2 ** 24),
  lora_alpha: z.number().positive(),
  /** Names, or a pattern of them. */
  target_modules: z.union([z.string(), z.array(z.string()).nonempty()]),
  exclude_modules: z.union([z.string(), z.array(z.string())]).nullish(),
  // The scale is α / √r (Kalajdzievski 2023).
  use_rslora: z.boolean().default(false),
  bias: z.literal('none').optional(),
  // Others start from weights of the base that they have changed.
  init_lora_weights: z.union([z.boolean(), z.enum(['gaussian', 'orthogonal', 'eva'])]).optional(),
});
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

/** A setting that is on and unknown here: `alpha_pattern`, `use_dora`, `alora_invocation_tokens`, and whatever comes next. */
function otherSetting(json: Readonly<Record<string, unknown>>): string | undefined {
  const isOff = (value: unknown): boolean =>
    value === null || value === false || (typeof value === 'object' && Object.keys(value).length === 0);
  return Object.keys(json).find((key) => !HARMLESS.has(key) && !isOff(json[key]));
}

/** Read a PEFT folder for a model. @throws UserError when a file is missing, corrupt, of another kind, or does not fit the model. */
export function readAdapter(folder: string, config: DecoderConfig): Adapter {
  const file = join(folder, CONFIG_FILE);
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    throw new UserError(`${file} cannot be read as JSON: ${inOneLine((cause as Error).message)}`, { cause });
  }
  const only = 'only plain LoRA adapters are supported';
  const { r, lora_alpha, target_modules, exclude_modules, use_rslora } = parseFields(configSchema, json, file, only);
  const other = otherSetting(json as Record<string, unknown>);
  if (other !== undefined) throw new UserError(`${file}: ${inOneLine(other)} is not supported; ${only}`);
  const weights = join(folder, WEIGHTS_FILE);
  const tensors = readTensors(weights);
  const targets = targetsOf(exclude_modules?.length ? '' : target_modules, moduleNames(config), tensors.keys());
  if (typeof targets === 'string') throw new UserError(`${file}: target_modules: ${targets}`);
  const layout = { rank: r, alpha: use_rslora ? lora_alpha * Math.sqrt(r) : lora_alpha, targets };
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

/**
 * The modules that an adapter adapts. Names are taken as they are; a pattern, or names with a path before them, stand for the modules whose
 * factors the file holds, and so do names of which some are excluded. A text is why there are none.
 */
function targetsOf(
  named: string | readonly string[],
  modules: readonly string[],
  tensors: Iterable<string>,
): readonly string[] | string {
  if (typeof named !== 'string' && !named.some((target) => target.includes('.'))) {
    const unknown = named.find((target) => !modules.includes(target));
    return unknown === undefined ? named : `'${inOneLine(unknown)}' is not one of ${modules.join(', ')}`;
  }
  const held = new Set([...tensors].map((name) => name.split('.').at(-3)!));
  const found = modules.filter((module) => held.has(module));
  return found.length > 0 ? found : `no factors of ${modules.join(', ')} are in ${WEIGHTS_FILE}`;
}
