/** How a phase tells whoever watches how far it is. */
export interface Progress {
  /** `done` of `total` units, with a few words on how it goes, and how the run goes that the phase is a part of. */
  update(done: number, total: number, extra?: string, run?: RunProgress | null): void;
  /** The phase has ended. */
  done(summary: string): void;
}

/** How far a run is that has several phases. */
export interface RunProgress {
  /** Of the whole run. */
  readonly share: number;
  /** Null until there is something to go by. */
  readonly secondsLeft: number | null;
}

/** What to say of tasks that lost attempts to failures; empty of none. */
export function ungradedNote(tasks: number): string {
  return tasks > 0 ? `, ${tasks} not graded: attempts lost to failures` : '';
}

/** Opens the progress of a phase, e.g. `label`. */
export type ProgressFactory = (label: string) => Progress;
