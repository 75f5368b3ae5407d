/** One progress line a seed on standard error: which phase, how far, how long yet. */
import type { SeedStatus } from '../pipeline/compare-seeds.js';
import { count, duration, percent } from '../report/format.js';
import type { ProgressStream } from './progress.js';

/** Milliseconds between lines of a seed: a terminal's lines are rewritten, a log gets new ones. */
const TERMINAL_INTERVAL = 200;
const LOG_INTERVAL = 15_000;

/**
 * Lines for these seeds, in order.
 * @param now milliseconds
 */
export function createSeedBoard(
  seeds: readonly number[],
  stream: ProgressStream = process.stderr,
  now: () => number = () => performance.now(),
): (seed: number, status: SeedStatus) => void {
  return stream.isTTY === true ? terminalBoard(seeds, stream, now) : logBoard(stream, now);
}

function terminalBoard(
  seeds: readonly number[],
  stream: ProgressStream,
  now: () => number,
): (seed: number, status: SeedStatus) => void {
  const lines = new Map(seeds.map((seed) => [seed, describe(seed, { state: 'waiting' })]));
  let drawn = false;
  let written = -Infinity;
  return (seed, status) => {
    lines.set(seed, describe(seed, status));
    if (status.state === 'running' && now() - written < TERMINAL_INTERVAL) return;
    written = now();
    const width = (stream.columns || 80) - 1;
    const text = [...lines.values()].map((line) => `\u001B[2K${line.slice(0, width)}\n`).join('');
    stream.write(drawn ? `\u001B[${seeds.length}A${text}` : text);
    drawn = true;
  };
}

function logBoard(stream: ProgressStream, now: () => number): (seed: number, status: SeedStatus) => void {
  const written = new Map<number, number>();
  return (seed, status) => {
    const at = now();
    if (status.state === 'waiting') return;
    if (status.state === 'running' && (status.phase === null || at - (written.get(seed) ?? -Infinity) < LOG_INTERVAL)) {
      return;
    }
    written.set(seed, at);
    stream.write(`${describe(seed, status)}\n`);
  };
}

/** `seed 0 · 34% · train-generator propel 12/40 · 3 min 10 s left` */
function describe(seed: number, status: SeedStatus): string {
  return [`seed ${seed}`, ...words(status)].join(' · ');
}

function words(status: SeedStatus): string[] {
  switch (status.state) {
    case 'waiting':
      return ['waiting'];
    case 'running': {
      const { phase, share, secondsLeft } = status;
      if (phase === null) return ['starting'];
      const left = secondsLeft === null ? [] : [`${duration(secondsLeft)} left`];
      return [percent(share, 0), `${phase.label} ${count(phase.done)}/${count(phase.total)}`, ...left];
    }
    case 'finished':
      return [`finished (${duration(status.seconds)})`];
    case 'stopped':
      return ['stopped'];
    case 'failed':
      return [`failed: ${status.why}`];
  }
}
