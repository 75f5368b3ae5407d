/** What a model's graphs trade speed for memory by. */
import { hasLoop } from '../onnx/session.js';
import type { ExecutionProvider } from '../onnx/session.js';
import { parameterCount } from './config.js';
import type { DecoderConfig } from './config.js';
import { familyOf } from './families.js';

/** `fast` keeps all that speeds a pass up, `small` as little as it can; `auto` decides by the model's size alone. */
export const MEMORY_SETTINGS = ['auto', 'fast', 'small'] as const;
export type MemorySetting = (typeof MEMORY_SETTINGS)[number];

export interface MemoryPlan {
  /** One session for all graphs of a checkpoint, its weights the file's own pages; else a session a graph, with weights laid out for it. */
  readonly shareWeights: boolean;
  /** Rows whose logits exist at once in an update; null: all. */
  readonly headRows: number | null;
  /** Keep each layer's input alone for the backward pass, and compute the rest again. */
  readonly recompute: boolean;
}

/** How an update's graph saves memory. */
export type UpdateMemory = Pick<MemoryPlan, 'headRows' | 'recompute'>;

/** float32 weights from which copies of them count. */
const LARGE_WEIGHTS = 64 * 2 ** 20;
const LARGE_VOCABULARY = 16_384;
/** Bytes of activations a token from which a layer is computed twice. */
const LARGE_ACTIVATIONS = 2 ** 20;
/** Bytes of one chunk's logits. */
const CHUNK_BYTES = 32 * 2 ** 20;
const LEAST_CHUNK = 16;

/**
 * Providers where an If's weights stay where they are. Not webgpu: it has an If, but ONNX Runtime's binding for Node.js places results by
 * their rank among those asked for, so that one session cannot keep some on the device and hand out others.
 */
const SHARING: ReadonlySet<ExecutionProvider> = new Set(['cpu', 'cuda']);

/** What a model gets on a provider: by its size alone, never by a batch or the machine, so that a run's rows stay the same. */
export function memoryPlan(config: DecoderConfig, setting: MemorySetting, provider: ExecutionProvider): MemoryPlan {
  if (setting === 'fast') return { shareWeights: false, headRows: null, recompute: false };
  const small = setting === 'small';
  const chunk = Math.max(LEAST_CHUNK, Math.floor(CHUNK_BYTES / (4 * config.vocabulary)));
  return {
    shareWeights: SHARING.has(provider) && (small || 4 * parameterCount(config) >= LARGE_WEIGHTS),
    headRows: hasLoop(provider) && (small || config.vocabulary >= LARGE_VOCABULARY) ? chunk : null,
    recompute: small || activationBytes(config) >= LARGE_ACTIVATIONS,
  };
}

/** Bytes that a plain forward pass keeps of a token for the backward pass, scores aside. */
function activationBytes(config: DecoderConfig): number {
  const { layers, width, heads, kvHeads, headDim, feedForward } = config;
  const streams = familyOf(config).normsAround ? 6 : 4;
  // Two norms and two sums, and two norms more around them; queries and keys before and after rotation, values, attention by heads and merged; gate, up, σ, silu, product.
  return 4 * layers * (streams * width + 4 * heads * headDim + 3 * kvHeads * headDim + 5 * feedForward);
}
