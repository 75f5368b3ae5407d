/** How much of a run lies behind it, and how many runs a machine carries at once. Estimates, for progress and for `parallel: auto`. */
import { availableParallelism } from 'node:os';
import { armTrain, isTrained } from './arm-config.js';
import type { Config } from './config.js';
import type { PhaseProgress } from './run-channel.js';

/** Relative costs a task, sample or generation: those of the embedded models on one processor. Other models shift them, evenly enough. */
const COST = { label: 15, probe: 5, sample: 8, attempts: 6, evaluate: 9 };

/** The phases of a run in order, each with its share of the whole. */
export function phaseShares(config: Config): ReadonlyMap<string, { readonly from: number; readonly share: number }> {
  const arms = Object.entries(config.arms);
  const { label, evaluate } = config;
  const costs: (readonly [label: string, cost: number])[] = [
    ['label', label.tasks * COST.label],
    ['train-probe', label.tasks * COST.probe],
  ];
  for (const [name, arm] of arms) {
    if (!isTrained(arm)) continue;
    const { steps, batch } = armTrain(config.train, arm);
    const sample = COST.sample + (arm.reward === 'solver' ? COST.attempts : 0);
    costs.push([`train-generator ${name}`, steps * batch * sample]);
  }
  for (const [name, arm] of arms) {
    costs.push([`evaluate ${name}`, evaluate.generations * COST.evaluate]);
    if (!isTrained(arm) || evaluate.rescoreEvery === 0) continue;
    const { steps, batch } = armTrain(config.train, arm);
    costs.push([`re-score ${name}`, (steps / evaluate.rescoreEvery) * batch * COST.attempts]);
  }
  const total = costs.reduce((sum, [, cost]) => sum + cost, 0);
  const shares = new Map<string, { from: number; share: number }>();
  let from = 0;
  for (const [name, cost] of costs) {
    shares.set(name, { from, share: cost / total });
    from += cost / total;
  }
  return shares;
}

/** Share of a run that lies behind a phase's progress; null for what is not one of its phases, e.g. the engine's start. */
export function shareDone(
  shares: ReturnType<typeof phaseShares>,
  { label, done, total }: PhaseProgress,
): number | null {
  const phase = shares.get(label);
  return phase === undefined ? null : phase.from + phase.share * Math.min(1, done / Math.max(1, total));
}

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
