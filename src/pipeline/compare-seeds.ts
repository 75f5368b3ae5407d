/** The runs of a comparison, each a process of its own: a crash is contained, a lock is one run's, and processors are used at once. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { lockRunFolder, RunLockedError } from '../store/lock.js';
import type { Config } from './config.js';
import type { RunProgress } from './progress.js';
import { isPhaseProgress, sendStop } from './run-channel.js';
import type { PhaseProgress } from './run-channel.js';
import { RunPace } from './run-pace.js';

/** How a seed's run is. */
export type SeedStatus =
  | { readonly state: 'waiting' }
  | (RunProgress & {
      readonly state: 'running';
      /** The phase it is in; null until it says. */
      readonly phase: PhaseProgress | null;
    })
  | { readonly state: 'finished'; readonly seconds: number }
  | { readonly state: 'stopped' }
  | { readonly state: 'failed'; readonly why: string };

export interface SeedRuns {
  readonly config: Config;
  readonly seeds: readonly number[];
  readonly atOnce: number;
  /** Program and first arguments that start `propel`. */
  readonly command: readonly string[];
  readonly argumentsOf: (seed: number) => readonly string[];
  readonly folderOf: (seed: number) => string;
  readonly progress: (seed: number, status: SeedStatus) => void;
  readonly signal: AbortSignal;
}

/** How a run ended. */
export interface SeedEnd {
  readonly seed: number;
  /** The exit code; null for a process that was killed. */
  readonly code: number | null;
  /** Its one line of error, or what killed it; empty when it finished. */
  readonly why: string;
}

/** What a run writes on standard error is kept to this length: its last line counts. */
const ERRORS_KEPT = 8192;
/** Milliseconds that a run which an earlier comparison left behind has to stop, and between looks at it. */
const PATIENCE = 60_000;
const LOOK = 250;

/** Run every seed, so many at once, in order. One that fails leaves the others running; after an abort those that run stop by themselves. */
export async function runSeeds(runs: SeedRuns): Promise<SeedEnd[]> {
  const ends: SeedEnd[] = [];
  const queue = [...runs.seeds];
  for (const seed of runs.seeds) runs.progress(seed, { state: 'waiting' });
  const worker = async (): Promise<void> => {
    for (let seed = queue.shift(); seed !== undefined && !runs.signal.aborted; seed = queue.shift()) {
      ends.push(await runSeed(runs, seed));
    }
  };
  await Promise.all(Array.from({ length: runs.atOnce }, worker));
  return ends.sort((a, b) => runs.seeds.indexOf(a.seed) - runs.seeds.indexOf(b.seed));
}

async function runSeed(runs: SeedRuns, seed: number): Promise<SeedEnd> {
  await untilUnlocked(runs.folderOf(seed), runs.signal);
  const started = performance.now();
  const [program, ...first] = runs.command;
  // A group of its own: Ctrl-C reaches the comparison alone, which passes it on as a word. Its death, whatever the cause, ends the channel.
  const child = spawn(program!, [...first, ...runs.argumentsOf(seed)], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    detached: process.platform !== 'win32',
  });
  follow(runs, seed, child);
  const end = await ended(child, seed, runs.signal);
  const seconds = (performance.now() - started) / 1000;
  if (end.code === 0) runs.progress(seed, { state: 'finished', seconds });
  else if (runs.signal.aborted) runs.progress(seed, { state: 'stopped' });
  else runs.progress(seed, { state: 'failed', why: end.why });
  return end;
}

/** A comparison that was killed leaves runs behind for as long as they take to notice: wait for that, and no longer. */
async function untilUnlocked(folder: string, signal: AbortSignal): Promise<void> {
  const until = performance.now() + PATIENCE;
  while (existsSync(folder) && !signal.aborted && performance.now() < until) {
    try {
      lockRunFolder(folder).release();
      return;
    } catch (error) {
      // What else is wrong with the folder, the run says itself.
      if (!(error instanceof RunLockedError)) return;
    }
    await wait(LOOK);
  }
}

/** Tell how far a run is as it says. */
function follow(runs: SeedRuns, seed: number, child: ChildProcess): void {
  const pace = new RunPace(runs.config);
  runs.progress(seed, { state: 'running', phase: null, share: 0, secondsLeft: null });
  child.on('message', (message) => {
    if (!isPhaseProgress(message)) return;
    const progress = pace.at(message, performance.now());
    if (progress !== null) runs.progress(seed, { state: 'running', phase: message, ...progress });
  });
}

function ended(child: ChildProcess, seed: number, signal: AbortSignal): Promise<SeedEnd> {
  let errors = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (errors = (errors + text).slice(-ERRORS_KEPT)));
  const stop = (): void => sendStop(child);
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop);
  return new Promise((resolve) => {
    const end = (code: number | null, why: string): void => {
      signal.removeEventListener('abort', stop);
      resolve({ seed, code, why });
    };
    child.on('error', (error) => end(null, error.message));
    child.on('close', (code, killedBy) => {
      if (code === 0) end(0, '');
      else end(code, killedBy === null ? lastError(errors, code) : `ended by ${killedBy}`);
    });
  });
}

/** A command's one line of error, without its name. */
function lastError(errors: string, code: number | null): string {
  const line = errors.split('\n').findLast((text) => text.startsWith('propel: '));
  return line === undefined ? `ended with code ${code}` : line.slice('propel: '.length);
}
