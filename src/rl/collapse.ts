/**
 * When a generator in training can no longer be trusted: rules over what its steps recorded, and nothing else, so that the run that stops,
 * the run that goes on after a kill and the report of either say the same.
 */
import { smallest } from '../metrics/extremes.js';

/** What the rules look at of a step. Its samples were written by the policy as it was after the step before. */
export interface StepFigures {
  readonly step: number;
  /** Nats from the reference. */
  readonly klPerSequence: number;
  /** Valid / all. */
  readonly validity: number;
  /** Whether the step's samples say anything of what to do better, see {@link hasSignal}. */
  readonly signal: boolean;
}

export interface StopRules {
  /** Nats a sequence; null: no limit. */
  readonly klStop: number | null;
  /** Steps in a row without a signal. */
  readonly noSignalStop: number;
}

export interface Collapse {
  readonly reason: string;
  /** The first step whose samples show it: the policy that wrote them is not trusted, nor is any after it. */
  readonly since: number;
}

/** Advantages this small are rounding: equal rewards of a group leave some 1e-12. */
const ROUNDING = 1e-6;

/** Whether any sample did better or worse than the others of its group; without, the policy gradient of a step is zero. */
export function hasSignal(advantages: readonly number[]): boolean {
  return advantages.some((advantage) => Math.abs(advantage) > ROUNDING);
}

/**
 * What shows that training has collapsed; null while nothing does.
 * @param steps the last of an arm's steps, ascending, at least `noSignalStop` of them where there are so many
 * @param ended whether no step follows: then steps without a signal count though there were fewer of them than the rule asks for, if there
 *   were no others
 */
export function collapseOf(steps: readonly StepFigures[], rules: StopRules, ended: boolean): Collapse | null {
  const found = [klAbove(steps, rules), withoutSignal(steps, rules, ended)].filter((collapse) => collapse !== null);
  if (found.length === 0) return null;
  return {
    reason: found.map(({ reason }) => reason).join(', and '),
    since: smallest(found.map(({ since }) => since)),
  };
}

function klAbove(steps: readonly StepFigures[], { klStop }: StopRules): Collapse | null {
  const last = steps.at(-1);
  if (last === undefined || klStop === null || last.klPerSequence <= klStop) return null;
  return { reason: `KL of ${last.klPerSequence.toFixed(2)} nats a sequence, above ${klStop}`, since: last.step };
}

/** The steps at the end in which there was nothing to learn from. */
export function silentSteps<Step extends Pick<StepFigures, 'signal'>>(steps: readonly Step[]): readonly Step[] {
  return steps.slice(steps.findLastIndex(({ signal }) => signal) + 1);
}

function withoutSignal(steps: readonly StepFigures[], { noSignalStop }: StopRules, ended: boolean): Collapse | null {
  const silent = silentSteps(steps);
  const [first, last] = [silent[0], silent.at(-1)];
  if (first === undefined || last === undefined) return null;
  if (silent.length < (ended ? Math.min(noSignalStop, last.step) : noSignalStop)) return null;
  const which = first === last ? `step ${first.step}` : `steps ${first.step} to ${last.step}`;
  const what = silent.every(({ validity }) => validity === 0)
    ? `no valid task in ${which}`
    : `all samples of a task type earned the same in ${which}`;
  return { reason: `${what}, so there was nothing to learn from`, since: first.step };
}

/**
 * Of steps that have a checkpoint, ascending, the last that training trusted: one that a step sampled from before the collapse showed. 0, the
 * policy before training, where there is none.
 */
export function lastTrusted(checkpoints: readonly number[], { since }: Collapse): number {
  return checkpoints.findLast((step) => step + 1 < since) ?? 0;
}
