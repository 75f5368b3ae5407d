/** What an error tells the user, and the exit code that goes with it. */
import { CommanderError } from 'commander';
import { RunError, UserError } from '../errors.js';
import { Stopped } from '../pipeline/workspace.js';

/** What a shell reports of a program ended by Ctrl-C. */
export const STOPPED = 130;

/** 2: bad input or usage. 1: the run cannot go on. 130: the user stopped it. 0: help or version was asked for. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof Stopped) return STOPPED;
  return error instanceof UserError || error instanceof RunError ? error.exitCode : 1;
}

/** One line, and an error's details a line each; with `PROPEL_DEBUG` set, the stack and the causes too. */
export function messageOf(error: unknown, debug = process.env['PROPEL_DEBUG'] !== undefined): string {
  if (!(error instanceof Error)) return oneLine(String(error));
  if (debug) return withCauses(error);
  if (error instanceof RunError) return [oneLine(error.message), ...error.details].join('\n');
  const isExpected = error instanceof UserError || error instanceof Stopped;
  return isExpected
    ? oneLine(error.message)
    : `${oneLine(error.message)} (unexpected; set PROPEL_DEBUG=1 for the stack)`;
}

function oneLine(text: string): string {
  const lines = text.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '').join(' ');
}

function withCauses(error: Error): string {
  const own = error.stack ?? error.message;
  return error.cause instanceof Error ? `${own}\ncaused by ${withCauses(error.cause)}` : own;
}
