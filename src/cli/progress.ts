/** The progress line on standard error: how far, how fast, how long yet. */
import type { Progress, RunProgress } from '../pipeline/progress.js';
import { count, duration, percent } from '../report/format.js';

/** Where progress is written; standard error is one. */
export interface ProgressStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/** Milliseconds between lines. A terminal's one line is rewritten; a log gets new lines, fewer the longer a phase lasts. */
const TERMINAL_INTERVAL = 100;
const LOG_INTERVAL = { least: 5000, most: 60_000 };
/** The time since a phase's start between two lines of a log. */
const LOG_SHARE = 1 / 6;
const CLEAR_LINE = '\r\u001B[2K';

/**
 * Progress of one phase. The rate counts from the first update, so that what an earlier run has done does not flatter it.
 * @param now milliseconds
 */
export function createProgress(
  label: string,
  stream: ProgressStream = process.stderr,
  now: () => number = () => performance.now(),
): Progress {
  const started = now();
  const isTerminal = stream.isTTY === true;
  const interval = (at: number): number =>
    isTerminal
      ? TERMINAL_INTERVAL
      : Math.min(LOG_INTERVAL.most, Math.max(LOG_INTERVAL.least, LOG_SHARE * (at - started)));
  let first: { readonly done: number; readonly at: number } | null = null;
  let written = isTerminal ? -Infinity : started;

  return {
    update(done, total, extra, run) {
      const at = now();
      first ??= { done, at };
      if (at - written < interval(at)) return;
      written = at;
      const rate = (1000 * (done - first.done)) / (at - first.at);
      const line = describe(label, done, total, rate, extra, run ?? null);
      stream.write(isTerminal ? CLEAR_LINE + line.slice(0, (stream.columns || 80) - 1) : `${line}\n`);
    },
    done(summary) {
      stream.write(`${isTerminal ? CLEAR_LINE : ''}${label}: ${summary} (${duration((now() - started) / 1000)})\n`);
    },
  };
}

/** `run 34%, 12 min left · label 500/1,500 · 100/s · 10 s left · in band 23%`. @param rate units a second; not positive while nothing is known */
function describe(
  label: string,
  done: number,
  total: number,
  rate: number,
  extra: string | undefined,
  run: RunProgress | null,
): string {
  return [
    ...(run === null
      ? []
      : [`run ${percent(run.share, 0)}${run.secondsLeft === null ? '' : `, ${left(run.secondsLeft)}`}`]),
    `${label} ${count(done)}/${count(total)}`,
    ...(rate > 0 ? [speed(rate), left((total - done) / rate)] : []),
    ...(extra === undefined ? [] : [extra]),
  ].join(' · ');
}

const left = (seconds: number): string => `${duration(seconds)} left`;

/** Units a second; of slow ones how long each takes. */
function speed(rate: number): string {
  return rate < 0.95 ? `${duration(1 / rate)} each` : `${rate.toFixed(rate < 9.95 ? 1 : 0)}/s`;
}
