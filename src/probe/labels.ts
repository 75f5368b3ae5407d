/** The labels that probes learn from. */
import { RunError } from '../errors.js';
import { isInBand } from './count-head.js';
import type { Band } from './count-head.js';

/** A valid task with all its attempts graded. */
export interface LabelledTask {
  readonly id: string;
  /** What the reference model reads. */
  readonly text: string;
  readonly passes: number;
  /** The kind of task, where there are several. */
  readonly type?: string;
}

export interface Labels {
  /** Solves of each task. */
  readonly counts: readonly number[];
  /** Attempts a task. */
  readonly k: number;
  readonly band: Band;
}

/** The first task of each text, so that no text stands on both sides of a split. */
export function distinctTexts<Task extends { readonly text: string }>(tasks: readonly Task[]): Task[] {
  const seen = new Set<string>();
  return tasks.filter(({ text }) => !seen.has(text) && seen.add(text));
}

/** Whether each task is in band. */
export function inBandOf({ counts, band }: Labels): boolean[] {
  return counts.map((count) => isInBand(count, band));
}

/** @throws RunError when fewer than `least` tasks are in band or out of it. */
export function requireBothClasses(labels: Labels, least: number): void {
  const { counts, band, k } = labels;
  const inside = inBandOf(labels).filter(Boolean).length;
  if (inside >= least && counts.length - inside >= least) return;
  throw new RunError(
    `${inside} of ${counts.length} labelled tasks are in band (${band.min} to ${band.max} of ${k}); a probe needs at least ${least} in ` +
      `and ${least} out of it: label more tasks, or use a solver nearer to their difficulty`,
  );
}
