/** The channel between a comparison and the runs that it starts: progress goes up as messages, and its end tells a run to stop. */
import type { ProgressFactory } from './progress.js';

/** How far a phase of a run is. */
export interface PhaseProgress {
  readonly label: string;
  readonly done: number;
  readonly total: number;
}

/** Milliseconds between messages of a phase. */
const INTERVAL = 250;

/** Progress sent to the process that started this one; null when nobody listens. */
export function channelProgress(): ProgressFactory | null {
  if (process.send === undefined) return null;
  return (label) => {
    let sent = -Infinity;
    return {
      update(done, total) {
        const now = performance.now();
        if (now - sent < INTERVAL) return;
        sent = now;
        send({ label, done, total });
      },
      done: () => send({ label, done: 1, total: 1 }),
    };
  };
}

/** Call `stop` when the process that started this one lets go of the channel, by choice or by its death. */
export function onChannelEnd(stop: () => void): void {
  if (process.channel === undefined) return;
  process.once('disconnect', stop);
  // Listening keeps no run alive that has come to its end.
  process.channel.unref();
}

function send(progress: PhaseProgress): void {
  if (!process.connected) return;
  process.send!(progress, undefined, {}, () => {
    // The listener has gone in this moment: the run is told by the channel's end.
  });
}

export function isPhaseProgress(message: unknown): message is PhaseProgress {
  return typeof message === 'object' && message !== null && 'label' in message && 'done' in message;
}
