/** How many runs a machine carries at once, for `parallel: auto`. An estimate. */
import { availableParallelism } from 'node:os';
import type { Config } from './config.js';

const GIB = 2 ** 30;
/** Bytes of a run of models that weigh nothing: Node, ONNX Runtime's arenas, an interpreter. Measured: 1.0 GiB. */
export const RUN_MEMORY = 1.1 * GIB;
/**
 * Runs at once: as many as are asked for, or as processors and memory carry; at least one, at most one a seed.
 * @param runBytes what one run may take
 */
export function runsAtOnce(
  { engine }: Pick<Config, 'engine'>,
  seeds: number,
  parallel: 'auto' | number,
  runBytes: number,
): number {
  if (parallel !== 'auto') return Math.min(parallel, seeds);
  const processors = Math.floor(availableParallelism() / engine.threads);
  const memory = Math.floor(process.availableMemory() / runBytes);
  return Math.max(1, Math.min(seeds, processors, memory));
}
