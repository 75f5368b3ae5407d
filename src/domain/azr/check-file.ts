/** Runs recorded tasks again and compares what comes out with what was recorded: the work behind `propel check`. */
import { RunError } from '../../errors.js';
import type { CallResult, Limits, Outcome, ProgramResult, Sandbox } from '../../sandbox/sandbox.js';
import { mapBounded } from './bounded.js';
import { QUEUED_PER_WORKER } from './grading.js';
import { readJsonLines } from './jsonl.js';
import { literalEqual } from './literal.js';
import { readRecordedTask, type RecordedTask } from './recorded-task.js';

export interface CheckFileRow {
  /** Counted from 0. */
  readonly index: number;
  /**
   * `ok`: the recorded output to the character; `literal_equal`: an equal value written another way;
   * `recorded_output_differs`: it ran to another value; else the sandbox's outcome.
   */
  readonly outcome: Outcome | 'literal_equal' | 'recorded_output_differs';
  /** Whether `repr(f(input))` is the recorded output, to the character; of an induction row, every one. */
  readonly reproduced: boolean;
  readonly detail: string;
}

export interface CheckFileReport {
  readonly rows: number;
  readonly reproduced: number;
  /** Rows of equal value whose text differs; not among `reproduced`. */
  readonly literalEqual: number;
  /** Outcome → rows. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Rows by wall-clock, start-up excluded. */
  readonly programsPerSecond: number;
  /** Of one program's first run in the sandbox. */
  readonly medianMilliseconds: number;
  readonly startupMilliseconds: number;
  readonly results: readonly CheckFileRow[];
}

export interface CheckFileOptions {
  readonly limits?: Partial<Limits>;
  /** Called after each row with the rows done so far. */
  readonly onRow?: (done: number) => void;
}

/**
 * Checks every row of a JSON Lines file; the file is streamed. The sandbox is opened here, so that its start is timed, and closed.
 * @throws {UserError} for a file or row that is not what it should be
 * @throws {RunError} when the sandbox fails
 */
export async function checkFile(
  path: string,
  openSandbox: () => Promise<Sandbox>,
  options: CheckFileOptions = {},
): Promise<CheckFileReport> {
  const opening = performance.now();
  const sandbox = await openSandbox();
  try {
    const started = performance.now();
    let done = 0;
    const checked = await mapBounded(readJsonLines(path), sandbox.size * QUEUED_PER_WORKER, async (row, index) => {
      const result = await checkRow(readRecordedTask(path, row), index, sandbox, options.limits);
      options.onRow?.(++done);
      return result;
    });
    const seconds = (performance.now() - started) / 1000;
    const results = checked.map(({ row }) => row);
    return {
      rows: results.length,
      reproduced: results.filter(({ reproduced }) => reproduced).length,
      literalEqual: results.filter(({ outcome }) => outcome === 'literal_equal').length,
      outcomes: countOutcomes(results),
      programsPerSecond: results.length / seconds,
      medianMilliseconds: median(checked.map(({ milliseconds }) => milliseconds)),
      startupMilliseconds: started - opening,
      results,
    };
  } finally {
    await sandbox.close();
  }
}

async function checkRow(
  task: RecordedTask,
  index: number,
  sandbox: Sandbox,
  limits: Partial<Limits> = {},
): Promise<{ readonly row: CheckFileRow; readonly milliseconds: number }> {
  const result = await sandbox.run({ code: task.code, calls: task.inputs }, { limits });
  return { row: compare(task, index, result, sandbox.name), milliseconds: result.milliseconds };
}

/** Of several calls the first that ran to another value or not at all speaks for the row, else the first that is only of equal value. */
function compare(task: RecordedTask, index: number, { calls }: ProgramResult, sandboxName: string): CheckFileRow {
  const results = task.outputs.map((output, i) => compareCall(output, calls[i], sandboxName));
  const at = results.findIndex(({ outcome }) => outcome !== 'ok' && outcome !== 'literal_equal');
  const worst =
    at >= 0
      ? at
      : Math.max(
          0,
          results.findIndex(({ outcome }) => outcome !== 'ok'),
        );
  const { outcome, detail } = results[worst]!;
  const which = results.length > 1 && detail !== '' ? `call ${worst + 1} of ${results.length}: ` : '';
  return { index, outcome, reproduced: outcome === 'ok', detail: `${which}${detail}` };
}

function compareCall(
  recorded: string,
  call: CallResult | undefined,
  sandboxName: string,
): Pick<CheckFileRow, 'outcome' | 'detail'> {
  if (call === undefined || call.outcome === 'sandbox_failure') {
    throw new RunError(`the ${sandboxName} sandbox keeps failing: ${call?.detail ?? 'no result'}`);
  }
  const { outcome, repr, detail } = call;
  if (outcome !== 'ok' || repr === null) return { outcome, detail };
  if (repr === recorded) return { outcome: 'ok', detail: '' };
  const difference = `${describeRecording(recorded, repr)}, came out as ${shorten(repr)}`;
  return { outcome: literalEqual(repr, recorded) ? 'literal_equal' : 'recorded_output_differs', detail: difference };
}

/** A recording may be empty, or cut in the middle: `[1, 2...8, 9]`. */
function describeRecording(recorded: string, repr: string): string {
  if (recorded === '') return 'recorded nothing';
  const cut = recorded.indexOf('...');
  const isCut = cut > 0 && repr.startsWith(recorded.slice(0, cut)) && repr.endsWith(recorded.slice(cut + 3));
  return `recorded ${shorten(recorded)}${isCut ? ' (cut in the middle)' : ''}`;
}

function shorten(text: string): string {
  return text.length <= 100 ? text : `${text.slice(0, 97)}...`;
}

function countOutcomes(results: readonly CheckFileRow[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { outcome } of results) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? 0;
  const lower = sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
  return (upper + lower) / 2;
}
