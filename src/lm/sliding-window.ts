/** Layers whose tokens attend to the latest positions alone, as a `config.json` names them. Child et al. 2019; Beltagy et al. 2020. */
import { z } from 'zod';
import { FAMILIES } from './families.js';
import type { Family, FamilyName } from './families.js';

export interface SlidingWindow {
  /** Latest positions that a token attends to, itself included. */
  readonly positions: number;
  /** By layer: whether it has the window. Without it a token attends to all before it. */
  readonly layers: readonly boolean[];
  /** Base of these layers' rotations, which are not scaled; null: they rotate as the others. */
  readonly ropeTheta: number | null;
}

/** What of a `config.json` is about windows. */
interface WindowFields {
  readonly num_hidden_layers: number;
  readonly sliding_window?: number | null | undefined;
  readonly use_sliding_window?: boolean | null | undefined;
  readonly max_window_layers?: number | null | undefined;
  readonly sliding_window_pattern?: number | null | undefined;
  readonly layer_types?: readonly string[] | null | undefined;
}

const GEMMA_PATTERN = 6;
const QWEN_WINDOW_LAYERS = 28;

const positiveSchema = z.number().positive();

/** Which layers see only so far; null where all attend to all; a text is why it cannot be used. @param local their rotations */
export function readWindow(
  c: WindowFields,
  { window, defaults }: Family,
  local: Readonly<Record<string, unknown>> | null,
): SlidingWindow | null | string {
  if (window === 'never' || (window === 'switched' && c.use_sliding_window !== true)) return null;
  const layers = windowLayers(c, window);
  if (layers.length !== c.num_hidden_layers)
    return `layer_types names ${layers.length} layers, num_hidden_layers says ${c.num_hidden_layers}`;
  if (!layers.includes(true)) return null;
  const positionsBack = c.sliding_window === undefined ? defaults.slidingWindow : c.sliding_window;
  if (local === null) return positionsBack ? { positions: positionsBack, layers, ropeTheta: null } : null;
  if (!positionsBack) return 'sliding_window is null, but layer_types names layers that have one';
  if ((local['rope_type'] ?? local['type'] ?? 'default') !== 'default' || (local['partial_rotary_factor'] ?? 1) !== 1)
    return 'rope_parameters.sliding_attention: scaled rotations of layers with a window are not supported';
  const theta = positiveSchema.safeParse(local['rope_theta']);
  return theta.success
    ? { positions: positionsBack, layers, ropeTheta: theta.data }
    : 'rope_parameters.sliding_attention: rope_theta is no positive number';
}

/** By layer: whether it has a window. */
function windowLayers(c: WindowFields, window: Family['window']): boolean[] {
  if (window !== 'always' && c.layer_types) return c.layer_types.map((type) => type === 'sliding_attention');
  const [pattern, others] = [c.sliding_window_pattern ?? GEMMA_PATTERN, c.max_window_layers ?? QWEN_WINDOW_LAYERS];
  return Array.from({ length: c.num_hidden_layers }, (_, layer) => {
    if (window === 'pattern') return (layer + 1) % pattern !== 0;
    return window === 'always' || layer >= others;
  });
}

export interface WindowedConfig {
  readonly slidingWindow: SlidingWindow | null;
  readonly maxPositions: number;
}

/** Positions of the window that some layers have; null where there is none that a sequence could be longer than. */
export function modelWindow({ slidingWindow, maxPositions }: WindowedConfig): number | null {
  return slidingWindow !== null && slidingWindow.positions < maxPositions ? slidingWindow.positions : null;
}

/** Latest positions that a token of a layer attends to, itself included; null: all before it. */
export function windowOf(config: WindowedConfig, layer: number): number | null {
  return config.slidingWindow?.layers[layer] === true ? modelWindow(config) : null;
}

/** The layers with a window, where the family has any; a null for none, as the family's default may be one. */
export function formatWindow({
  family,
  layers,
  slidingWindow,
}: {
  readonly family: FamilyName;
  readonly layers: number;
  readonly slidingWindow: SlidingWindow | null;
}): Record<string, unknown> {
  const { window } = FAMILIES[family];
  if (window === 'never') return {};
  if (slidingWindow === null) {
    const allFull = Array.from({ length: layers }, () => 'full_attention');
    return window === 'pattern' ? { layer_types: allFull } : { sliding_window: null, use_sliding_window: false };
  }
  const types = slidingWindow.layers.map((has) => (has ? 'sliding_attention' : 'full_attention'));
  return {
    sliding_window: slidingWindow.positions,
    ...(window === 'switched' ? { use_sliding_window: true } : {}),
    ...(window === 'always' ? {} : { layer_types: types }),
    ...(slidingWindow.ropeTheta === null ? {} : { rope_local_base_freq: slidingWindow.ropeTheta }),
  };
}
