/** The progress line on standard error: how far, how fast, how long yet. */
import type { Progress } from '../pipeline/progress.js';
import { count, duration } from '../report/format.js';

/** Where progress is written; standard error is one. */
export interface ProgressStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/** Milliseconds between lines: a terminal's one line is rewritten, a log gets a new line. */
const TERMINAL_INTERVAL = 100;
const LOG_INTERVAL = 5000;
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
  const interval = isTerminal ? TERMINAL_INTERVAL : LOG_INTERVAL;
  let first: { readonly done: number; readonly at: number } | null = null;
  let written = isTerminal ? -Infinity : started;

  return {
    update(done, total, extra) {
      const at = now();
      first ??= { done, at };
      if (at - written < interval) return;
      written = at;
      const rate = (1000 * (done - first.done)) / (at - first.at);
      const line = describe(label, done, total, rate, extra);
      stream.write(isTerminal ? CLEAR_LINE + line.slice(0, (stream.columns || 80) - 1) : `${line}\n`);
    },
    done(summary) {
      stream.write(`${isTerminal ? CLEAR_LINE : ''}${label}: ${summary} (${duration((now() - started) / 1000)})\n`);
    },
  };
}

/** @param rate units a second; not positive while nothing is known */
function describe(label: string, done: number, total: number, rate: number, extra: string | undefined): string {
  const speed = rate > 0 ? [`${rate.toFixed(rate < 10 ? 1 : 0)}/s`, `${duration((total - done) / rate)} left`] : [];
  return [`${label} ${count(done)}/${count(total)}`, ...speed, ...(extra === undefined ? [] : [extra])].join(' · ');
}
