/** LoRA adapters: layouts, and values passed into a graph. Hu et al. 2021, ΔW = (α / r) B A. */
import { UserError } from '../errors.js';
import { seededRandom } from '../metrics/random.js';
import type { Differentiable } from '../onnx/differentiable.js';
import type { Value } from '../onnx/graph.js';
import type { Tensor } from '../onnx/session.js';
import { projectionShapes } from './config.js';
import type { DecoderConfig } from './config.js';
import type { AdapterValues } from './decoder.js';
import { gaussian } from './gaussian.js';

/** Linear modules of a layer by their short names, as PEFT's `target_modules`. */
export const TARGET_MODULES = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj'] as const;

/** Modules that a family holds as one matrix, with their parts. */
const FUSED_MODULES: Readonly<Record<string, readonly string[]>> = {
  qkv_proj: ['q_proj', 'k_proj', 'v_proj'],
  gate_up_proj: ['gate_proj', 'up_proj'],
};

/** Rank and α of a module: its branch is scaled by α / rank. */
export interface ModuleLayout {
  readonly rank: number;
  readonly alpha: number;
}

export interface AdapterLayout extends ModuleLayout {
  readonly targets: readonly string[];
  /** Where modules differ: those that are adapted, by graph name (`model.layers.0.self_attn.q_proj`), each with its own rank and α. */
  readonly modules?: Readonly<Record<string, ModuleLayout>> | undefined;
}

/** A name for graphs that differ by the adapter's layout. */
export function layoutKey(layout: AdapterLayout | null): string {
  if (layout === null) return 'base';
  const own = layout.modules ? ` ${JSON.stringify(layout.modules)}` : '';
  return `${layout.rank} ${layout.alpha} ${layout.targets.join()}${own}`;
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

/** The settings that adapt what a layout does, ranks and scales of modules' own aside: parts by their own names. */
export function targetsOf(config: DecoderConfig, { rank, alpha, targets }: AdapterLayout): string[] {
  const adapted = [...adaptedModules(config, { rank, alpha, targets })];
  const all: readonly string[] = TARGET_MODULES;
  return adapted.flatMap((name) => FUSED_MODULES[name] ?? [name]).toSorted((a, b) => all.indexOf(a) - all.indexOf(b));
}

function moduleNames(config: DecoderConfig): string[] {
  return [...projectionShapes(config).keys()].map((module) => module.split('.')[1]!);
}

/** Names and shapes of all factors, A before B, in layer order. @throws UserError for a target that the model does not have. */
export function factorShapes(config: DecoderConfig, layout: AdapterLayout): Map<string, [number, number]> {
  const shapes = new Map<string, [number, number]>();
  const adapted = layout.modules ? null : adaptedModules(config, layout);
  for (const [module, [out, into]] of linearModules(config)) {
    const own = layout.modules?.[module] ?? (adapted?.has(module.split('.').at(-1)!) ? layout : null);
    if (own === null) continue;
    shapes.set(`${module}.lora_A`, [own.rank, into]);
    shapes.set(`${module}.lora_B`, [out, own.rank]);
  }
  return shapes;
}

/** The linear modules of all layers by graph name, with their [out, in] shapes. */
export function linearModules(config: DecoderConfig): Map<string, [out: number, into: number]> {
  const layers = Array.from({ length: config.layers }, (_, layer) => `model.layers.${layer}`);
  const modules = [...projectionShapes(config)];
  return new Map(layers.flatMap((layer) => modules.map(([module, shape]) => [`${layer}.${module}`, shape] as const)));
}

/** What a module's branch is scaled by. */
export function scaleOf(layout: AdapterLayout, module: string): number {
  const { rank, alpha } = layout.modules?.[module] ?? layout;
  return alpha / rank;
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
  const factors = new Map<string, { A: Value; B: Value; scale: number }>();
  for (const [name, A] of inputs) {
    if (!name.endsWith('.lora_A')) continue;
    const module = name.slice(0, -'.lora_A'.length);
    factors.set(module, { A, B: inputs.get(`${module}.lora_B`)!, scale: scaleOf(layout, module) });
  }
  return { inputs, values: { adapters, factors } };
}
