/** How much of a run lies behind it, and how long it still takes. Estimates, for progress. */
import { armTrain, isTrained } from './arm-config.js';
import { phasesNeeded } from './config.js';
import type { Config } from './config.js';
import type { ProgressFactory, RunProgress } from './progress.js';
import type { PhaseProgress } from './run-channel.js';

/** Relative costs a task, sample or generation: those of the embedded models on one processor. Other models shift them, evenly enough. */
const COST = { label: 15, probe: 5, sample: 8, attempts: 6, evaluate: 9 };

/** The phases of a run in order, each with its share of the whole. */
export function phaseShares(config: Config): ReadonlyMap<string, { readonly from: number; readonly share: number }> {
  const arms = Object.entries(config.arms);
  const { label, evaluate } = config;
  const needed = phasesNeeded(config);
  const costs: (readonly [label: string, cost: number])[] = [];
  if (needed.labels) costs.push(['label', label.tasks * COST.label]);
  if (needed.probes) costs.push(['train-probe', label.tasks * COST.probe]);
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

/** How a run goes on: its share, and the time left by the rate since the first that was heard of it: what an earlier start has done is no merit of this one. */
export class RunPace {
  readonly #shares: ReturnType<typeof phaseShares>;
  #first: { readonly share: number; readonly at: number } | null = null;

  constructor(config: Config) {
    this.#shares = phaseShares(config);
  }

  /** Null of what is not one of the run's phases. @param now milliseconds */
  at(phase: PhaseProgress, now: number): RunProgress | null {
    const share = shareDone(this.#shares, phase);
    if (share === null) return null;
    this.#first ??= { share, at: now };
    const rate = (share - this.#first.share) / ((now - this.#first.at) / 1000);
    return { share, secondsLeft: rate > 0 ? (1 - share) / rate : null };
  }
}

/** Progress of phases that also says how far the whole run is. */
export function runProgress(
  config: Config,
  progress: ProgressFactory,
  now: () => number = () => performance.now(),
): ProgressFactory {
  const pace = new RunPace(config);
  return (label) => {
    const phase = progress(label);
    return {
      update(done, total, extra) {
        phase.update(done, total, extra, pace.at({ label, done, total }, now()));
      },
      done: (summary) => phase.done(summary),
    };
  };
}
