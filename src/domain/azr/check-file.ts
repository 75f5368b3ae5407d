/** Runs recorded tasks again and compares what comes out with what was recorded: the work behind `propel check`. */
import type { Limits, Sandbox } from '../../sandbox/sandbox.js';
import { mapBounded } from './bounded.js';
import { compareCall, type ComparedCall } from './compare-call.js';
import { QUEUED_PER_WORKER } from './grading.js';
import { readJsonLines } from './jsonl.js';
import { readRecordedTask, type RecordedTask } from './recorded-task.js';
import { sameValue } from './recorded-value.js';

export interface CheckFileRow {
  /** Counted from 0. */
  readonly index: number;
  readonly outcome: ComparedCall['outcome'];
  /** Whether `repr(f(input))` is the recorded output, to the character; of an induction row, every one. */
  readonly reproduced: boolean;
  readonly detail: string;
}

export interface CheckFileReport {
  readonly rows: number;
  readonly reproduced: number;
  /** Rows of equal value whose text differs, or is no literal; neither are among `reproduced`. */
  readonly literalEqual: number;
  readonly valueEqual: number;
  /** Of all rows; an induction row has several. */
  readonly calls: {
    readonly total: number;
    /** Those whose imports are allowed and whose output was recorded whole. */
    readonly counted: number;
    /** Of these, those with an equal value. */
    readonly equal: number;
  };
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
    const calls = checked.flatMap((row) => row.calls);
    const counted = calls.filter(({ counts }) => counts);
    return {
      rows: results.length,
      reproduced: results.filter(({ reproduced }) => reproduced).length,
      literalEqual: results.filter(({ outcome }) => outcome === 'literal_equal').length,
      valueEqual: results.filter(({ outcome }) => outcome === 'value_equal').length,
      calls: { total: calls.length, counted: counted.length, equal: counted.filter(isEqual).length },
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

interface CheckedRow {
  readonly row: CheckFileRow;
  readonly calls: readonly ComparedCall[];
  readonly milliseconds: number;
}

async function checkRow(
  task: RecordedTask,
  index: number,
  sandbox: Sandbox,
  limits: Partial<Limits> = {},
): Promise<CheckedRow> {
  const result = await sandbox.run({ code: task.code, calls: task.inputs }, { limits });
  const calls = await Promise.all(
    task.outputs.map(async (output, i) => {
      const compared = compareCall(output, result.calls[i], sandbox.name);
      if (compared.outcome !== 'recorded_output_differs') return compared;
      const isSame = await sameValue(output, result.calls[i]!.repr!, { sandbox, limits });
      return isSame ? { ...compared, outcome: 'value_equal' as const } : compared;
    }),
  );
  return { row: speakForRow(calls, index), calls, milliseconds: result.milliseconds };
}

/** Of several calls the first that ran to another value or not at all speaks for the row, else the first that is only of equal value. */
function speakForRow(calls: readonly ComparedCall[], index: number): CheckFileRow {
  const different = calls.findIndex((call) => !isEqual(call));
  const unlike = calls.findIndex(({ outcome }) => outcome !== 'ok');
  const worst = Math.max(0, different >= 0 ? different : unlike);
  const { outcome, detail } = calls[worst]!;
  const which = calls.length > 1 && detail !== '' ? `call ${worst + 1} of ${calls.length}: ` : '';
  return { index, outcome, reproduced: outcome === 'ok', detail: `${which}${detail}` };
}

function isEqual({ outcome }: ComparedCall): boolean {
  return outcome === 'ok' || outcome === 'literal_equal' || outcome === 'value_equal';
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
