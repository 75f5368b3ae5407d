/** The channel between a comparison and the runs that it starts: progress goes up, the word to stop comes down, and its end is the end. */
import type { ChildProcess } from 'node:child_process';
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

/** What a comparison says to a run. */
const STOP = 'stop';

/** Ask a run to stop after the batch that it is in. */
export function sendStop(child: ChildProcess): void {
  if (child.connected) child.send(STOP, () => undefined);
}

/**
 * Hear the process that started this one: `stop` when it asks for that, `leave` when it is gone, whatever ended it.
 */
export function listenToParent(stop: () => void, leave: () => void): void {
  if (process.channel === undefined) return;
  process.on('message', (message) => {
    if (message === STOP) stop();
  });
  process.once('disconnect', leave);
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
